"""The papers' tables: every row can be trained, and recorded runs fill them, on the papers' own corpora too."""

import re
from pathlib import Path

import orjson
import pytest
from corpora import topic_corpus

import longtail.recipes  # noqa: F401
from longtail.cli.main import main
from longtail.core.errors import ParameterError
from longtail.data.corpus import Corpus
from longtail.evidence.bench import Bench
from longtail.evidence.claims import CLAIMS
from longtail.evidence.corpora import Corpora
from longtail.evidence.filled import figure, fill
from longtail.evidence.papers.table import GIGABYTES, HOURS, PaperTable
from longtail.evidence.papers.tables import TABLES, split_ids, table_of
from longtail.evidence.results import Results
from longtail.evidence.table import SystemRuns
from longtail.evidence.trials import Trial, trials_of
from longtail.report.paper_tables import shown
from longtail.store.lines import append_line

Capture = pytest.CaptureFixture[str]
OURS = {"debian-related", "man-seealso", "eurlex57k-titles"}


@pytest.fixture(autouse=True)
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LONGTAIL_THREADS", "1")
    monkeypatch.delenv("LONGTAIL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def write_as_the_repository_does(corpus: Corpus, folder: Path) -> None:
    """A corpus of texts as trn.json, tst.json and lbl.json."""
    folder.mkdir(parents=True)
    for part, data in corpus.parts():
        rows = [data.Y.indices[a:b].tolist() for a, b in zip(data.Y.indptr, data.Y.indptr[1:], strict=False)]
        points = [
            {"uid": f"{part}{i}", "title": text, "target_ind": rows[i], "target_rel": [1.0] * len(rows[i])}
            for i, text in enumerate(data.texts)
        ]
        (folder / f"{'trn' if part == 'train' else 'tst'}.json").write_bytes(b"\n".join(map(orjson.dumps, points)))
    texts = list(corpus.labels.texts or [])
    labels = [{"uid": key, "title": text} for key, text in zip(corpus.labels.keys, texts, strict=True)]
    (folder / "lbl.json").write_bytes(b"\n".join(map(orjson.dumps, labels)))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_as_the_repository_does(topic_corpus(), folder / "Eurlex-4K")
    return folder


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_a_table_is_whole(table: PaperTable) -> None:
    for corpus in table.corpora:
        figures = table.printed(corpus)
        assert [len(row) for row in figures] == [len(table.metrics)] * len(table.rows)
        for metric, column in zip(table.metrics, zip(*figures, strict=True), strict=True):
            found = [value for value in column if value is not None]
            assert all(value > 0 for value in found)
            assert metric in (HOURS, GIGABYTES) or all(value < 100 for value in found)
        for row in figures:  # P@1 is at least P@3, and that P@5
            named = dict(zip(table.metrics, row, strict=True))
            falling = [named[name] for name in ("P@1", "P@3", "P@5") if named.get(name) is not None]
            assert falling == sorted(falling, reverse=True)
    for row in table.rows:
        for corpus in (*table.corpora, *table.beside):
            system = row.on(corpus, table)
            if system is not None:
                system.made()
    assert set(table.beside) <= OURS and set(table.beside.values()) <= set(table.corpora)
    assert set(table.claims) <= {claim.id for claim in CLAIMS}


def test_the_papers_figures_keep_their_decimals() -> None:
    found = [table for table in (table_of("003-T4"), table_of("001-T1.3")) if table is not None]
    assert [table.decimals(table.corpora[0]) for table in found] == [1, 2]
    assert [shown(value, HOURS) for value in (147.6, 0.9, 128.0, 0.036)] == ["147.6", "0.9", "128", "0.04"]
    assert [shown(value, "P@1", 1) for value in (87.1, None)] == ["87.1", "–"]


def test_tables_are_found_by_id_and_by_number_alone() -> None:
    assert len({table.id for table in TABLES}) == len(TABLES)
    assert table_of("t1.3") is table_of("001-T1.3") is not None
    with pytest.raises(ParameterError, match="003-T5, 004-T5|004-T5, 003-T5"):
        table_of("T5")
    claims = [claim.id for claim in CLAIMS]
    ids, tables = split_ids(["g4", "T1.3", "003-T2"], claims)
    assert ids == ["g4"] and [table.id for table in tables] == ["001-T1.3", "003-T2"]
    with pytest.raises(ParameterError, match="Did you mean 'T1.3'"):
        split_ids(["T1.33"], claims)


def out_of(capsys: Capture, *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    return capsys.readouterr().out


def cells(page: str, table: str, corpus: str) -> dict[str, list[str]]:
    """The figures of a panel whose first block is of `corpus`, by the title of the row."""
    section = page[page.index(f'<section id="{table}">') :]
    panel = section[section.index(f">{corpus}<span>") :]
    rows = re.findall(r"<tr><td>(.*?)</td>(.*?)</tr>", panel[: panel.index("</table>")])
    return {re.sub(r"<span>.*", "", title): re.findall(r"<td[^>]*>(?:<b>)?([^<]*)", rest) for title, rest in rows}


def test_a_papers_corpus_on_disk_fills_the_papers_table(data: Path, capsys: Capture) -> None:
    asked = ["reproduce", "003-T2", "--corpus", "Eurlex-4K", "--data", data, "--recipe", "xr-linear", "parabel"]
    plan = out_of(capsys, *asked, "--dry-run")
    assert plan.count("to run") == 2 and "parabel" in plan
    out = out_of(capsys, *asked)
    assert "003-T2 on Eurlex-4K" in out
    page = Path("docs/results.html").read_text()
    found = cells(page, "003-T2", "Eurlex-4K")
    results = Results().of("Eurlex-4K")
    scores = {record["recipe"]: record["scores"] for record in results.run.values()}
    assert set(scores) == {"xr-linear", "parabel"}
    for title, recipe, paper in (("XR-Linear", "xr-linear", "84.14"), ("Parabel", "parabel", "82.12")):
        assert found[title][:3] == [f"{scores[recipe][f'P@{k}']:.2f}" for k in (1, 3, 5)]
        assert found[title][3] == paper  # the paper's figures on the same corpus stand beside
    assert found["DiSMEC"] == ["–", "–", "–", "83.21", "70.39", "58.73"]
    assert ">Eurlex-4K<span>measured here, 40 test points, seed 0</span>" in page
    assert ">Eurlex-4K<span>the paper’s figures, 3,865 test points</span>" in page
    assert out_of(capsys, *asked, "--dry-run").count("recorded (done)") == 2
    again = out_of(capsys, "reproduce", "003-T2", "--from-results", "--page", "again/results.md")
    assert "again/results.md" in again and "003-T2 on Eurlex-4K" in again and "(84.14)" in again
    assert Path("again/results.html").read_text() == page  # elsewhere, without the corpus
    assert main(["reproduce", "003-T2", "--corpus", "Eurlex-4k", "--data", str(data)]) == 2
    assert "Did you mean 'Eurlex-4K'" in capsys.readouterr().err


def recorded(corpus: str, name: str, trial: Trial, p1: float) -> dict[str, object]:
    bins = [{"name": f"bin {i}", "contribution": 1.0} for i in range(1, 6)]
    more = {"scores": {"P@1": p1, "P@3": p1, "P@5": p1}, "by_frequency": {"k": 5, "bins": bins}}
    costs = {"seconds": {"train": 7200.0}, "peak_mb": 1500.0, "machine": {"threads": 1}, "status": "done"}
    return trial.record() | more | costs | {"points": 10, "shortlist_recall_levels": [90.0, 80.0]}


def test_our_corpora_stand_beside_the_papers_and_the_preset_stands_in(tmp_path: Path) -> None:
    bench = Bench(Results(tmp_path), Corpora())
    table = table_of("003-T4")
    assert table is not None
    assert not any(panel.measured for panel in fill(bench, table).panels)
    row = next(i for i, row in enumerate(table.rows) if row.title == "LightXML-1")
    for corpus, preset, p1 in (("eurlex57k-titles", None, 50.0), ("Wiki10-31K", "small", 60.0)):
        system = table.rows[row].on(corpus, table, preset)
        assert system is not None
        for trial in trials_of(corpus, f"digest of {corpus}", [system], (0, 1)):
            append_line(bench.results.path(corpus), recorded(corpus, "run", trial, p1 + trial.seed))
    first, second, *rest = fill(bench, table).panels
    assert [(block.corpus, block.kind) for block in first.blocks] == [("Wiki10-31K", "here"), ("Wiki10-31K", "paper")]
    assert first.blocks[0].figures[row] == [60.5, 60.5, 60.5, 2.0]  # means over seeds; hours
    assert first.blocks[0].systems[row] == "lightxml --preset small" and first.blocks[0].seeds == (0, 1)
    assert second.blocks[1].kind == "elsewhere" and second.blocks[1].corpus == "Wiki10-31K"
    assert second.blocks[0].figures[row][0] == 50.5
    assert [panel.blocks[0].corpus for panel in rest] == ["Wiki-500K", "Amazon-670K"]


def test_costs_and_shortlists_are_figures_too() -> None:
    record = {"seconds": {"train": 1800.0}, "peak_mb": 2500.0, "shortlist_recall_levels": [90.0, 80.0], "scores": {}}
    pool = SystemRuns((), (record, record))
    assert figure(pool, HOURS) == 0.5 and figure(pool, GIGABYTES) == 2.5
    assert figure(pool, "recall 2") == 80.0 and figure(pool, "recall 3") is None
    assert figure(pool, "P@1") is None


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = (Path(__file__).parent.parent / "docs" / "results.html").read_text()
    assert len(page.encode()) < 1_000_000
    assert not re.search(r"https?:|<script|<link|<img|src=|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page and "@media print" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
