"""`longtail info`: what a saved model is."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import add_model, command

EXAMPLES = """
longtail info model
longtail info model --json
"""


def add(commands: Any) -> None:
    """Options of `info`."""
    parser = command(
        commands, "info", "show recipe, settings, scores and size of a saved model, without loading it", EXAMPLES
    )
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="the whole manifest as JSON")


def run(args: argparse.Namespace) -> None:
    """Read the manifest and show it."""
    from longtail.cli.show import calibration_table, console, cut_off_line, dump, scores_table, size, table
    from longtail.store import describe

    about = describe(args.model)
    if args.json:
        print(dump(about))  # noqa: T201
        return
    training = about["about"]
    corpus = training.get("corpus", {})
    rows = [
        ["recipe", about["recipe"]],
        ["settings", ", ".join(f"{k}={v}" for k, v in about["settings"].items()) or "all defaults"],
        *members(training),
        ["labels", f"{about['labels']['count']:,}" + (" with text" if "labels.texts.data" in about["arrays"] else "")],
        *([["edited labels", edits(training["edited"])]] if "edited" in training else []),
        ["corpus", f"{corpus.get('name', '–')} (digest {corpus.get('digest', '–')[:12]})"],
        ["seed", str(training.get("seed", "–"))],
        ["trained in", f"{training.get('seconds', 0):.1f} s"],
        ["size", size(about["bytes"])],
        ["made by", f"longtail {about['longtail']}, format version {about['version']}"],
        *([["package", "{name} {version}".format(**about["package"])]] if "package" in about else []),
        ["generation", about["generation"]],
    ]
    out = console()
    out.print(table(["", ""], rows, str(args.model)))
    if "validation" in training:
        validation = training["validation"]
        title = f"Validation: {validation['points']:,} points, {validation['source']}"
        out.print(scores_table(validation["scores"], title))
    if "calibration" in training:
        out.print(calibration_table(training["calibration"]))
    if "cut_off" in training:
        out.print(cut_off_line(training["cut_off"]), markup=False)


def members(training: dict[str, Any]) -> list[list[str]]:
    """What an ensemble is made of, and how it is fused; nothing for other models."""
    if "members" not in training:
        return []
    named = ", ".join(member["name"] for member in training["members"])
    fused = ", ".join(f"{key} {value}" for key, value in training["fused"].items())
    return [["members", named], ["fused", fused]]


def edits(edited: dict[str, int]) -> str:
    """How many labels were added, removed and renamed after training."""
    shown = [f"{count:,} {what}" for what, count in edited.items() if count]
    return f"{', '.join(shown) or 'none'} (`longtail labels list` shows all)"
