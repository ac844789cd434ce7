"""`longtail info`."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import command

EXAMPLES = """
longtail info model
longtail info model --json
"""


def add(commands: Any) -> None:
    """Options of `info`."""
    parser = command(commands, "info", "show what a saved model is, without loading it", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")
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
        ["labels", f"{about['labels']['count']:,}" + (" with text" if "labels.texts.data" in about["arrays"] else "")],
        *([["edited since", edits(training["edited"])]] if "edited" in training else []),
        ["corpus", f"{corpus.get('name', '–')} (digest {corpus.get('digest', '–')[:12]})"],
        ["seed", str(training.get("seed", "–"))],
        ["trained in", f"{training.get('seconds', 0):.1f} s"],
        ["size", size(about["bytes"])],
        ["made by", f"longtail {about['longtail']}, format version {about['version']}"],
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


def edits(edited: dict[str, int]) -> str:
    """What has happened to the labels after training."""
    told = [f"{count:,} {what}" for what, count in edited.items() if count]
    return f"{', '.join(told) or 'none'} (`longtail labels list` shows them)"
