"""Curves of scores against steps, missing runs, and claims that wait for a system, from results made by hand."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import longtail.recipes  # noqa: F401  (recipes by name)
from longtail.cli.main import main
from longtail.evidence.bench import Bench
from longtail.evidence.child import curve
from longtail.evidence.claim import Arm, Claim, Part
from longtail.evidence.corpora import Corpora
from longtail.evidence.curves import Curve
from longtail.evidence.missing import bench_command, missing_runs
from longtail.evidence.reproduce import decide
from longtail.evidence.results import Results
from longtail.evidence.trials import System, Trial
from longtail.report import html
from longtail.report.curves import curve_picture, curve_table

WITH, WITHOUT = Arm("with", System.of("xr-linear", {"beam": 2})), Arm("without", System.of("xr-linear"))
CLAIM = Claim(
    "T14", "000 F5", "ahead", (Part("curve", "validation part", (WITH, WITHOUT), ("P@1", "PSP@5")),), ("toys",)
)


def history(scores: Sequence[float], each: int, network: int = 1) -> list[dict[str, Any]]:
    """What a model keeps of its training: one row for each epoch."""
    return [
        {
            "network": network,
            "phase": "joint",
            "epoch": i + 1,
            "step": each * (i + 1),
            "loss": 1.0,
            "validation": {"P@1": score, "P@5": 1.0, "PSP@1": 1.0, "PSP@5": score / 2, "mean": 1.0},
        }
        for i, score in enumerate(scores)
    ]


def test_the_curve_of_a_run_is_that_of_its_first_network() -> None:
    rows = history([10.00004, 20.0], 50)
    told = curve({"training": [*rows, *history([99.0], 50, network=2)]})["curve"]
    assert [row["step"] for row in told] == [50, 100]
    assert told[0] == {"phase": "joint", "epoch": 1, "step": 50, "P@1": 10.0, "P@5": 1.0, "PSP@1": 1.0} | {
        "PSP@5": 5.0,
        "mean": 1.0,
    }
    assert curve({}) == {}
    assert curve({"training": [{"phase": "joint", "epoch": 1, "loss": 0.3}]}) == {}  # trained without `curve`


def record(results: Results, arm: Arm, seed: int, scores: Sequence[float] | None, each: int = 50) -> None:
    """A line of the results, as a run would have written it."""
    own = Trial.of("toys", "d", arm.system, seed).record() | {"status": "done", "points": 9, "seconds": {"train": 1.0}}
    own |= {"scores": {f"{f}@{k}": 1.0 for f in ("P", "PSP", "C", "nDCG") for k in (1, 3, 5)}, "peak_mb": 1.0}
    own |= {"by_frequency": {"k": 5, "bins": []}, "machine": {"cpu": "c", "cores": 1, "threads": 1}, "versions": {}}
    results.add("toys", own | ({} if scores is None else curve({"training": history(scores, each)})))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Results(tmp_path / "results"), Corpora())


def record_all(bench: Bench) -> None:
    for seed in CLAIM.seeds:
        record(bench.results, WITH, seed, [10 + seed, 20 + seed, 40 + seed, 41 + seed], each=50)
        record(bench.results, WITHOUT, seed, [5.0, 15.0], each=100)


def test_curves_are_means_over_the_seeds(bench: Bench) -> None:
    record_all(bench)
    outcome = decide(bench, CLAIM, "toys", draw=False)
    assert outcome.verdict == "reported"
    assert not outcome.missing
    with_, without = outcome.parts[0].curves
    assert with_.steps == (50, 100, 150, 200)
    assert with_.values["P@1"] == pytest.approx((11, 21, 41, 42))
    assert without.values["PSP@5"] == pytest.approx((2.5, 7.5))


def test_an_arm_without_a_curve_leaves_the_claim_open(bench: Bench) -> None:
    record_all(bench)
    record(bench.results, WITH, 1, None)  # made again without a curve: the later line counts
    outcome = decide(bench, CLAIM, "toys", draw=False)
    assert outcome.verdict == "not measured"
    assert outcome.parts[0].curves == ()


CURVES = [
    Curve("with <Gandalf>", (50, 100, 150, 200), {"P@1": (10.0, 20.0, 40.0, 41.0)}),
    Curve("without", (100, 210), {"P@1": (5.0, 15.0)}),
]


def test_the_table_of_curves_has_steps_that_lie_on_all_of_them() -> None:
    columns, rows = curve_table(CURVES, ["P@1"])
    assert columns == ["step", "with <Gandalf>, P@1", "without, P@1"]
    assert rows[0] == ["100", "20.00", "5.00"]
    assert rows[-1] == ["200", "41.00", f"{5 + 10 * 100 / 110:.2f}"]
    assert len(rows) == 8


def test_the_picture_has_a_line_through_every_point() -> None:
    root = ET.fromstring(curve_picture(CURVES, ["P@1"]))
    lines = [
        path for path in root.iter() if str(path.get("class", "")).startswith("line-") and "L" in path.get("d", "")
    ]
    assert [path.get("d", "").count("L") for path in lines] == [3, 1]
    assert "with <Gandalf>" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_in_a_file_has_its_colours_written_out_for_both_modes() -> None:
    """Only browsers know var(…); other viewers would draw every line in black."""
    picture = curve_picture(CURVES, ["P@1"])
    assert "var(" not in picture
    light, dark = picture.split("@media (prefers-color-scheme: dark)")
    assert all(f"stroke: {html.LIGHT[name]}" in light and f"stroke: {html.DARK[name]}" in dark for name in ("c0", "c1"))


def test_missing_runs_are_named_with_the_command_that_makes_them(bench: Bench) -> None:
    record(bench.results, WITH, 0, [1.0])
    outcomes = [decide(bench, CLAIM, "toys", draw=False)] * 2  # two claims may share arms
    assert missing_runs(outcomes) == {"toys": {WITH.system: (1, 2), WITHOUT.system: (0, 1, 2)}}
    network = System.of("decaf", {"augment": "self", "steps": 3}, "small")
    assert bench_command("toys", network, (1, 2)) == (
        "longtail bench toys --data FOLDER --threads 1 --recipe decaf --preset small --set augment=self --set steps=3 "
        "--seeds 1 2"
    )


def test_the_page_shows_curves_missing_runs_and_what_a_claim_waits_for(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record_all(bench)
    third = Arm("third", System.of("xr-linear", {"beam": 3}))
    waiting = Arm("r", System.of("no-such-recipe", {"augment": "none"}, "small"))
    claims = (
        CLAIM,
        Claim("T2", "–", "open", (Part("ahead", "o", (third, WITH), ("P@1",)),), ("toys",)),
        Claim("T9", "–", "waits", (Part("level", "w", (waiting,), ()),), ("toys",)),
    )
    monkeypatch.setattr("longtail.evidence.claims.CLAIMS", claims)
    place = tmp_path / "page" / "page.md"
    assert main(["reproduce", "--from-results", "--results", str(bench.results.folder), "--page", str(place)]) == 0
    shown = capsys.readouterr().out
    assert "Missing on toys" in shown
    assert "longtail reproduce T2 --corpus toys" in shown
    page = place.read_text()
    assert "| 200 | 42.00 | 15.00 | 21.00 | 7.50 |" in page
    assert "![validation part](results-T14-toys.svg)" in page
    ET.fromstring((place.parent / "results-T14-toys.svg").read_text())
    assert "--recipe xr-linear --set beam=3 --seeds 0 1 2" in page
    assert "not measured: needs no-such-recipe" in page
