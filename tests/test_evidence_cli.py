"""`longtail bench` and `longtail reproduce`, end to end on a tiny corpus."""

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from corpora import topic_corpus, write_corpus

from longtail.cli.main import main
from longtail.evidence.claim import Arm, Claim, Part
from longtail.evidence.trials import System
from longtail.store.lines import read_lines

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_corpus(topic_corpus(), folder / "topics")
    return folder


@pytest.fixture(autouse=True)
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LONGTAIL_THREADS", "1")
    monkeypatch.delenv("LONGTAIL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def out_of(capsys: Capture, *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    return capsys.readouterr().out


def grid(data: Path, *more: object) -> list[object]:
    return ["bench", "topics", "--data", data, "--recipe", "xr-linear", "--grid", "beam=1,10", *more]


def test_bench_runs_a_grid_and_shows_the_full_table(data: Path, capsys: Capture) -> None:
    plan = out_of(capsys, *grid(data, "--seeds", 0, 1, "--dry-run"))
    assert plan.count("to run") == 4
    assert not Path("bench").exists()
    out = out_of(capsys, *grid(data, "--seeds", 0, 1, "--table"))
    for words in (
        "Precision",
        "nDCG",
        "Propensity-scored",
        "Coverage",
        "By label frequency",
        "Share of the true labels",
        "Time and memory",
    ):
        assert words in out
    assert "xr-linear beam=1" in out
    records = read_lines(Path("bench/results/topics.jsonl"))
    assert Counter(record["kind"] for record in records) == {"run": 4, "intervals": 2}
    assert out_of(capsys, *grid(data, "--seeds", 0, 1, "--dry-run")).count("recorded (done)") == 4
    # from the results alone, elsewhere: no training, no corpus, no predictions
    shown = out_of(capsys, *grid(data, "--seeds", 0, 1, "--table", "--markdown"))
    assert out_of(capsys, "bench", "topics", "--table", "--markdown", "--quiet") == shown
    assert "| xr-linear beam=1 |" in shown
    assert len(read_lines(Path("bench/results/topics.jsonl"))) == len(records)


def test_bench_says_what_failed_and_tries_again(data: Path, capsys: Capture) -> None:
    words = ["bench", data / "topics", "--recipe", "xr-linear", "--set", "hierarchy=none.tsv", "--results", "r"]
    out_of(capsys, *words, code=1)
    (record,) = read_lines(Path("r/topics.jsonl"))
    assert record["status"] == "failed"
    assert main([str(word) for word in words]) == 1
    assert "--again-failed" in capsys.readouterr().err
    assert len(read_lines(Path("r/topics.jsonl"))) == 1
    out_of(capsys, *words, "--again-failed", code=1)
    assert len(read_lines(Path("r/topics.jsonl"))) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topics"], "give the recipes to run"),
        (["topics", "--recipe", "xr-lienar"], "Did you mean 'xr-linear'"),
        (["topics", "--recipe", "xr-linear", "--set", "beem=1"], "Did you mean 'beam'"),
        (["topics", "--recipe", "xr-linear", "--grid", "beam=1,,2"], "--grid takes KEY=VALUE,VALUE"),
        (["topics", "--recipe", "xr-linear", "--grid", "beam=1", "--grid", "beam=2"], "--grid has a parameter twice"),
        (["topics", "--recipe", "xr-linear", "--markdown"], "--markdown needs --table"),
        (["topics", "--table"], "no run on 'topics'"),
        (["topics", "--recipe", "popular", "--data", "nowhere"], "no folder nowhere"),
    ],
)
def test_wrong_usage_of_bench(words: list[str], message: str, data: Path, capsys: Capture) -> None:
    more = [] if "--data" in words else ["--data", str(data)]
    assert main(["bench", *words, *more]) == 2
    assert message in capsys.readouterr().err


def test_a_corpus_that_is_not_there_is_an_error_of_bench(capsys: Capture) -> None:
    assert main(["bench", "topics", "--recipe", "popular"]) == 1
    assert "LONGTAIL_DATA" in capsys.readouterr().err


def start(data: Path, *more: object) -> subprocess.Popen[str]:
    # a job in the background of a shell ignores Ctrl-C and hands that down, so the default is put back first
    listens = "import signal, sys, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = listens + "runpy.run_module('longtail', run_name='__main__', alter_sys=True)"
    words = [sys.executable, "-c", program, *map(str, grid(data, *more))]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def test_two_benches_at_once_share_the_work(data: Path) -> None:
    both = [start(data, "--seeds", 0, 1), start(data, "--seeds", 0, 1)]
    for bench in both:
        bench.communicate(timeout=300)
        assert bench.returncode == 0
    records = read_lines(Path("bench/results/topics.jsonl"))
    assert Counter(record["id"] for record in records).most_common(1)[0][1] == 1
    assert len(records) == 4


def test_interrupted_it_loses_nothing_and_goes_on(data: Path, capsys: Capture) -> None:
    results = Path("bench/results/topics.jsonl")
    bench = start(data, "--seeds", *range(20))
    deadline = time.monotonic() + 300
    while not results.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    bench.send_signal(signal.SIGINT)
    said = bench.communicate(timeout=300)[1]
    assert bench.returncode == 130
    assert "Traceback" not in said
    before = results.read_bytes()
    records = read_lines(results)
    assert 1 <= len(records) < 40
    assert all(record["status"] == "done" for record in records)
    out_of(capsys, *grid(data, "--seeds", 0))
    assert results.read_bytes().startswith(before)
    assert {record["seed"] for record in records} <= set(range(20))


# ---- claims


WIDE, NARROW, POPULAR = (
    Arm("wide", System.of("xr-linear")),
    Arm("narrow", System.of("xr-linear", {"beam": 1})),
    Arm("floor", System.of("popular")),
)
TINY = (
    Claim("T1", "ours", "wide over the floor", (Part("ahead", "w", (WIDE, POPULAR), ("P@1", "PSP@1")),), ("topics",)),
    Claim("T2", "ours", "the floor over wide", (Part("ahead", "f", (POPULAR, WIDE), ("P@1",)),), ("topics",)),
    Claim("T3", "ours", "wide is itself", (Part("equal", "e", (WIDE, WIDE), ("P@1", "C@5")),), ("topics", "elsewhere")),
    Claim(
        "T4",
        "ours",
        "it rises, and the head is as it is",
        (
            Part("trend", "rises", (POPULAR, NARROW, WIDE), ("P@1", "nDCG@5")),
            Part("level", "as it is", (WIDE, NARROW, POPULAR), ("bin 1",)),
        ),
        ("topics",),
    ),
    Claim("T5", "ours", "the floor is fast", (Part("faster", "f", (POPULAR, WIDE), ()),), ("topics",)),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail.evidence.claims.CLAIMS", TINY)


def verdicts(text: str) -> dict[str, str]:
    """The last column of the overview of a page."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| T")]
    return {row[0]: row[-1].strip("*") for row in rows if row[-1].startswith("**")}


@pytest.mark.usefixtures("tiny")
def test_reproduce_runs_decides_and_writes_the_page(data: Path, capsys: Capture, tmp_path: Path) -> None:
    out = out_of(capsys, "reproduce", "--data", data, "--seeds", 0, 1)
    assert "no corpus" in out  # elsewhere is nowhere, and no error
    page = Path("docs/results.md").read_text()
    expected = {"T1": "reproduced", "T2": "contradicted", "T3": "reproduced", "T4": "reproduced"}
    found = verdicts(page)
    assert {id: found[id] for id in expected} == expected
    assert found["T5"] == "contradicted"  # however fast it is, its P@1 is far lower
    assert re.search(r"contradicted \(time ratio \d+\.\d{3}\)", page)
    assert "| C@5 | nDCG@5 | bin 1 | train s |" in page  # what a claim names is shown with its arms
    records = read_lines(Path("bench/results/topics.jsonl"))
    kinds = Counter(record["kind"] for record in records)
    assert kinds == {"run": 6, "comparison": 3, "premise": 1}  # T1 and T4 share a comparison
    assert str(data) not in page and str(tmp_path) not in page

    # a fresh clone has the results and the table of claims, nothing else
    out_of(capsys, "reproduce", "--from-results", "--seeds", 0, 1, "--page", "again.md")
    assert Path("again.md").read_text() == page
    clone = tmp_path / "clone"
    (clone / "bench").mkdir(parents=True)
    Path("bench/results").rename(clone / "bench" / "results")
    Path("cache").rename("gone")
    out_of(capsys, "reproduce", "--from-results", "--seeds", 0, 1, "--results", clone / "bench" / "results")
    assert (clone / "bench" / "results" / "results.md").read_text() == page
    out = out_of(capsys, "reproduce", "T1", "--seeds", 0, 1, "--results", clone / "bench" / "results")
    assert "reproduced" in out  # without the corpus, what is recorded decides
    assert (clone / "bench" / "results" / "results.md").read_text() == page


@pytest.mark.usefixtures("tiny")
def test_reproduce_of_one_claim_runs_what_it_needs_and_tells_of_all(data: Path, capsys: Capture) -> None:
    plan = out_of(capsys, "reproduce", "T1", "--data", data, "--seeds", 0, "--dry-run")
    assert plan.count("to run") == 2
    out_of(capsys, "reproduce", "t1", "--data", data, "--seeds", 0)
    kinds = Counter(record["kind"] for record in read_lines(Path("bench/results/topics.jsonl")))
    assert kinds == {"run": 2, "comparison": 1, "premise": 1}
    found = verdicts(Path("docs/results.md").read_text())
    assert found["T1"] == "reproduced"
    assert found["T2"] == "not measured"  # the runs are there, the difference was not asked for
    assert found["T4"] == "not measured"


@pytest.mark.usefixtures("tiny")
def test_nothing_recorded_gives_a_page_too(capsys: Capture) -> None:
    out_of(capsys, "reproduce", "--from-results")
    assert set(verdicts(Path("docs/results.md").read_text()).values()) == {"not measured"}


def test_the_list_of_claims_and_wrong_names(capsys: Capture) -> None:
    out = out_of(capsys, "reproduce", "--list")
    assert "G13" in out and "eurlex57k-titles" in out
    assert main(["reproduce", "G99"]) == 2
    assert "no claim 'G99'" in capsys.readouterr().err
    assert main(["reproduce", "G2", "--corpus", "debian"]) == 2
    assert "Did you mean 'debian-related'" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_a_failed_arm_leaves_the_claim_open(data: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Arm("broken", System.of("xr-linear", {"hierarchy": "none.tsv"}))
    claim = Claim("T1", "ours", "broken", (Part("ahead", "b", (broken, WIDE), ("P@1",)),), ("topics",))
    monkeypatch.setattr("longtail.evidence.claims.CLAIMS", (claim,))
    assert main(["reproduce", "--data", str(data), "--seeds", "0"]) == 1
    assert "failed" in capsys.readouterr().err
    page = Path("docs/results.md").read_text()
    assert verdicts(page) == {"T1": "not measured"}
    assert "xr-linear hierarchy=none.tsv, seed 0: failed" in page


def test_the_page_in_the_repository_is_what_its_results_give(capsys: Capture) -> None:
    root = Path(__file__).parent.parent
    if not (root / "docs" / "results.md").is_file():
        pytest.skip("not a checkout")
    out_of(capsys, "reproduce", "--from-results", "--results", root / "bench" / "results", "--page", "page.md")
    assert Path("page.md").read_text() == (root / "docs" / "results.md").read_text()
    kept, drawn = ({p.name: p.read_text() for p in place.glob("results-*.svg")} for place in (root / "docs", Path()))
    assert drawn == kept  # the pictures of curves too
    for name, again in (("results.html", "page.html"), ("quality-time.svg", "quality-time.svg")):
        assert Path(again).read_bytes() == (root / "docs" / name).read_bytes()


def test_the_table_says_what_a_recipe_chose(data: Path, capsys: Capture) -> None:
    out = out_of(capsys, "bench", "topics", "--data", data, "--recipe", "auto", "--table")
    (record,) = [r for r in read_lines(Path("bench/results/topics.jsonl")) if r["kind"] == "run"]
    assert record["recipe"] == "auto"
    assert record["chosen"]["recipe"] in out.partition("chose")[2]
