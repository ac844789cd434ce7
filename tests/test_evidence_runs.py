"""Runs as processes: what is recorded if they succeed, fail, are killed or take too long; no run is repeated."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from corpora import topic_corpus, write_corpus
from encoders import tiny_encoder
from training import StoppedError, stop_at

import longtail
import longtail.recipes
from longtail.core.errors import DataError
from longtail.core.ranking import Ranking
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.evidence.bench import Bench, checkpoints_of, claimed
from longtail.evidence.corpora import Corpora
from longtail.evidence.paired import compare_runs, intervals_of, recorded_comparison
from longtail.evidence.predictions import predictions
from longtail.evidence.process import How, execute
from longtail.evidence.results import Results
from longtail.evidence.score import score
from longtail.evidence.trials import System, Trial
from longtail.metrics import compare
from longtail.store.cache import cache_folder
from longtail.store.lines import read_lines
from longtail.train.loop import Loop


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(topic_corpus(), tmp_path_factory.mktemp("data") / "topics")


@pytest.fixture(scope="module")
def corpus(place: Path) -> Corpus:
    return longtail.read(place)


@pytest.fixture
def bench(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    return Bench(Results(tmp_path / "results"), Corpora(place.parent))


def beams(bench: Bench, *values: int, seeds: tuple[int, ...] = (0,)) -> list[Trial]:
    return bench.trials("topics", [System.of("xr-linear", {"beam": beam}) for beam in values], seeds)


def lines(bench: Bench) -> list[dict[str, Any]]:
    return read_lines(bench.results.path("topics"))


def test_a_run_is_recorded_with_all_that_is_known_of_it(bench: Bench, corpus: Corpus, place: Path) -> None:
    bench.run("topics", beams(bench, 1))
    (record,) = lines(bench)
    assert record["status"] == "done"
    assert record["settings"] == {"beam": 1}
    assert record["corpus"] == {"name": "topics", "digest": corpus.digest}
    assert set(record["seconds"]) == {"read", "train", "predict", "wall"}
    assert record["seconds"]["wall"] > record["seconds"]["train"] > 0
    assert 20 < record["peak_mb"] < 5000
    assert 0 < record["model_mb"] < 10 and 1 < record["p50_us"] < 1e6
    assert record["versions"]["numpy"] == np.__version__
    assert record["versions"]["longtail"] == longtail.__version__
    assert record["machine"]["threads"] == 1
    model = longtail.recipe("xr-linear", beam=1).fit(corpus, Run(seed=0))
    report = score(model, corpus, "test").report()
    assert record["scores"] == {name: pytest.approx(value, abs=1e-4) for name, value in report.scores.items()}
    for row, told in zip(report.by_frequency, record["by_frequency"]["bins"], strict=True):
        assert told == {name: pytest.approx(value, abs=1e-4) for name, value in asdict(row).items()} | {
            "name": row.name
        }
    text = bench.results.path("topics").read_text()
    for secret in (str(place.parent), str(Path.home()), os.uname().nodename):
        assert secret not in text


def test_the_predictions_kept_are_those_of_the_model(bench: Bench, corpus: Corpus) -> None:
    (trial,) = beams(bench, 10)
    assert predictions(trial.id, corpus) is None
    bench.run("topics", [trial])
    kept = predictions(trial.id, corpus)
    assert kept is not None and corpus.test is not None
    model = longtail.recipe("xr-linear").fit(corpus, Run(seed=0))
    np.testing.assert_array_equal(kept.indices, model.predict(corpus.test.x, 5).indices)


def test_no_run_is_made_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    caplog.set_level("INFO", "longtail")
    bench.run("topics", beams(bench, 1))
    before = bench.results.path("topics").read_bytes()
    bench.run("topics", beams(bench, 1, 10))
    assert "1 of 2 runs are recorded already" in caplog.text
    after = bench.results.path("topics").read_bytes()
    assert after.startswith(before)
    assert len(lines(bench)) == 2
    monkeypatch.setattr("longtail.evidence.bench.execute", lambda *_: pytest.fail("nothing is left to run"))
    bench.run("topics", beams(bench, 1, 10))


def test_settings_that_act_after_training_share_one_training(
    bench: Bench, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"reader": "words", "vectors": "learnt", "dimension": 8, "steps": 5, "epochs": 1}
    systems = [
        System.of("unidec", words | late, "small") for late in ({"share": "none"}, {"share": "0.0"}, {"share": 1.0})
    ]
    trials = bench.trials("topics", systems, [0])
    assert len({trial.id for trial in trials}) == 3
    trained = []
    monkeypatch.setattr("longtail.evidence.bench.execute", lambda *a: (trained.append(len(a[0])), execute(*a))[1])
    bench.run("topics", trials)
    assert trained == [3]
    records = lines(bench)
    assert [record["id"] for record in records] == [trial.id for trial in trials]
    assert len({record["seconds"]["train"] for record in records}) == 1
    for record, share in zip(records[1:], (0.0, 1.0), strict=True):  # as a training with this share gives
        alone = longtail.recipe("unidec", preset="small", **words, share=share).fit(
            corpus, longtail.Run(seed=0, threads=1)
        )
        assert score(alone, corpus, "test").report().scores["P@1"] == pytest.approx(record["scores"]["P@1"], abs=1e-3)


def test_trainings_that_differ_in_their_last_stage_share_a_network(
    bench: Bench, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = {"encoder": tiny_encoder(), "length": 16, "batch": 8, "steps": 20, "resolutions": "2:4", "beams": "2:4"}
    systems = [System.of("cascadexml", tiny | {"ranker": ranker}) for ranker in ("none", "dismec")]
    trials = bench.trials("topics", systems, [0])
    folders = []
    monkeypatch.setattr("longtail.evidence.bench.execute", lambda *a: (folders.append(a[3]), execute(*a))[1])
    bench.run("topics", trials)
    assert len(folders) == 2 and folders[0] == folders[1]
    assert not folders[0].exists()  # checkpoints go when all is recorded
    network, both = lines(bench)
    assert both["seconds"]["train"] > 0.5 * network["seconds"]["train"]  # its own time, and that of the network
    alone = longtail.recipe("cascadexml", **tiny, ranker="dismec").fit(corpus, Run(seed=0, threads=1))
    assert score(alone, corpus, "test").report().scores["P@1"] == pytest.approx(both["scores"]["P@1"], abs=1e-3)


def test_an_interrupted_run_goes_on_from_its_checkpoint(
    bench: Bench, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an interrupted bench leaves behind is where the next one goes on, and the time of both counts."""
    words = {"reader": "words", "vectors": "learnt", "dimension": 8, "steps": 30, "epochs": 1}
    (trial,) = bench.trials("topics", [System.of("unidec", words, "small")], [0])
    folder, recipe, data = checkpoints_of(trial), trial.system.made(), replace(corpus, test=None)
    whole = recipe.fit(data, Run(seed=0, threads=1))
    with monkeypatch.context() as patched:
        done, begin = stop_at(patched, 0, 20), Loop.train
        patched.setattr(Loop, "train", lambda loop: (setattr(loop, "_began", loop._began - 1000), begin(loop))[1])
        with pytest.raises(StoppedError):
            recipe.fit(data, Run(folder=folder, seed=0, threads=1))
    assert len(done) == 20
    bench.run("topics", [trial])
    (record,) = lines(bench)
    assert record["seconds"]["train"] > 1000
    assert record["scores"]["P@1"] == pytest.approx(score(whole, corpus, "test").report().scores["P@1"], abs=1e-3)
    assert not folder.exists()


def test_a_setting_of_the_training_cannot_be_changed_afterwards(corpus: Corpus) -> None:
    model = longtail.recipe("popular").fit(corpus)
    with pytest.raises(longtail.LongtailError, match="beam of recipe 'popular' needs a training"):
        model.with_settings(beam=1)


def test_a_failed_run_is_recorded_and_left_alone_until_asked(bench: Bench, tmp_path: Path) -> None:
    system = System.of("xr-linear", {"hierarchy": str(tmp_path / "no-such-file.tsv")})
    trials = bench.trials("topics", [system], [0])
    bench.run("topics", trials)
    (record,) = lines(bench)
    assert record["status"] == "failed"
    assert "no-such-file.tsv" in record["error"]
    assert str(tmp_path) not in record["error"]
    bench.run("topics", trials)
    assert len(lines(bench)) == 1
    again = Bench(bench.results, bench.corpora, bench.how, again_failed=True)
    again.run("topics", trials)
    assert [line["status"] for line in lines(bench)] == ["failed", "failed"]


def test_a_run_that_kills_itself_is_recorded_as_killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    # the first thing a run writes is its predictions: there the process ends as the system ends one without memory
    monkeypatch.setenv("LONGTAIL_STORE_KILL_AT", "1")
    (trial,) = beams(bench, 1)
    (record,) = execute([trial], bench.corpora.place("topics"), bench.how)
    assert record["status"] == "killed"
    assert record["error"].startswith("ended by SIGKILL")
    assert "scores" not in record
    assert record["peak_mb"] > 10


@pytest.fixture(scope="module")
def slow() -> tuple[list[Trial], Path]:
    """A run that takes minutes."""
    corpora = Corpora()
    digest = corpora.get("debian-related").digest
    system = System.of("xr-linear", {"trees": 100})
    return [Trial.of("debian-related", digest, system, 0)], corpora.place("debian-related")


def test_a_run_killed_from_outside_is_recorded_as_killed(slow: tuple[list[Trial], Path]) -> None:
    def kill_soon(pid: int) -> None:
        threading.Timer(1.5, os.kill, (pid, signal.SIGKILL)).start()

    (record,) = execute(*slow, How(started=kill_soon))
    assert record["status"] == "killed"
    assert record["seconds"]["wall"] > 1


def test_a_run_that_takes_too_long_is_stopped_and_recorded(slow: tuple[list[Trial], Path]) -> None:
    started: list[int] = []
    (record,) = execute(*slow, How(timeout=1.0, started=started.append))
    assert record["status"] == "timed-out"
    assert record["error"] == "stopped after 1 s"
    assert not alive(started[0])


ORPHAN = """
import sys
import longtail.recipes
from longtail.evidence.corpora import Corpora
from longtail.evidence.process import How, execute
from longtail.evidence.trials import System, Trial
trial = Trial.of("debian-related", sys.argv[1], System.of("xr-linear", {"trees": 100}), 0)
execute([trial], Corpora().place("debian-related"), How(started=lambda pid: print(pid, flush=True)))
"""


def test_a_run_does_not_outlive_the_bench(slow: tuple[list[Trial], Path]) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN, slow[0][0].digest], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(2.0)
    assert alive(child)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def alive(pid: int) -> bool:
    """Whether a process is running; a zombie process does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_corpus_without_test_is_refused(tmp_path: Path) -> None:
    folder = write_corpus(topic_corpus(), tmp_path / "topics")
    (folder / "test.jsonl").unlink()
    with pytest.raises(DataError, match="no test part"):
        Bench(Results(tmp_path), Corpora(tmp_path)).trials("topics", [System.of("popular")], [0])


def test_a_corpus_that_changes_meanwhile_is_not_measured(bench: Bench, place: Path) -> None:
    trial = Trial.of("topics", "another digest", System.of("popular"), 0)
    (record,) = execute([trial], place, bench.how)
    assert record["status"] == "failed"
    assert "has changed" in record["error"]


def test_corpora_are_found_by_name(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Corpora().available("topics")
    assert Corpora(place.parent).place("topics") == place
    assert Corpora().available("debian-related")
    monkeypatch.setenv("LONGTAIL_DATA", os.pathsep.join([str(tmp_path), str(place.parent)]))
    assert Corpora().place("topics") == place
    assert Corpora().place(str(place)) == place
    with pytest.raises(DataError, match="LONGTAIL_DATA"):
        Corpora().place("nowhere")


# ---- intervals


def test_a_comparison_is_that_of_compare_and_is_drawn_once(bench: Bench, corpus: Corpus) -> None:
    worse, better = beams(bench, 1, seeds=(0, 1)), beams(bench, 10, seeds=(0, 1))
    bench.run("topics", [*worse, *better])
    record = compare_runs(bench, "topics", worse, better)
    assert corpus.test is not None
    sides: list[list[Ranking]] = []
    for beam in (1, 10):
        models = [longtail.recipe("xr-linear", beam=beam).fit(corpus, Run(seed=seed)) for seed in (0, 1)]
        sides.append([model.predict(corpus.test.x, 5) for model in models])
    expected = compare(*sides, corpus.test.Y, corpus.labels, ignore=corpus.test.ignore)
    rows = {r.metric: [r.a, r.b, r.difference, r.low, r.high] for r in expected.rows}
    assert set(record["rows"]) == {f"{family}@{k}" for family in ("P", "nDCG", "PSP", "C") for k in (1, 3, 5)}
    for metric, row in record["rows"].items():
        assert row == pytest.approx(rows[metric], abs=1e-4)
    before = len(lines(bench))
    assert compare_runs(bench, "topics", worse, better) == lines(bench)[-1]
    assert len(lines(bench)) == before


def test_lost_predictions_are_made_again_only_where_they_are_needed(bench: Bench, corpus: Corpus) -> None:
    trials = beams(bench, 1)
    bench.run("topics", trials)
    first = intervals_of(bench, "topics", trials)
    for entry in cache_folder().glob("*/cache.json"):
        entry.unlink()
    assert predictions(trials[0].id, corpus) is None
    assert intervals_of(bench, "topics", trials) == first  # recorded: nothing is run
    assert predictions(trials[0].id, corpus) is None
    others = beams(bench, 10)
    bench.run("topics", others)
    compare_runs(bench, "topics", trials, others)
    assert predictions(trials[0].id, corpus) is not None
    assert [line["kind"] for line in lines(bench)] == ["run", "intervals", "run", "comparison"]  # the same figures


def test_a_run_made_again_with_other_figures_counts_anew(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    (trial,) = beams(bench, 1)
    bench.run("topics", [trial])
    (record,) = lines(bench)
    moved = record | {"scores": record["scores"] | {"P@1": 99.0}}
    bench.results.path("topics").write_bytes(orjson.dumps(moved) + b"\n")
    bench.repeat("topics", [trial], lambda _: len(lines(bench)) == 1)
    assert "its figures differ from the recorded ones" in caplog.text
    assert bench.results.of("topics").run[trial.id]["scores"] == record["scores"]


def test_a_difference_is_of_runs_as_they_are(bench: Bench) -> None:
    """Repeated elsewhere, a run may have other scores: a difference computed before is then out of date."""
    a, b = ([trial] for trial in beams(bench, 1, 10))
    bench.run("topics", [*a, *b])
    drawn = compare_runs(bench, "topics", a, b)
    assert recorded_comparison(bench, a, b) == drawn
    record = bench.results.of("topics").run[a[0].id]
    bench.results.add("topics", record | {"scores": record["scores"] | {"P@1": record["scores"]["P@1"] + 1}})
    assert recorded_comparison(bench, a, b) is None
    assert len(lines(bench)) == 4
    intervals_of(bench, "topics", b)
    assert len(lines(bench)) == 5, "that of the other system is not asked for again"
    intervals_of(bench, "topics", b)
    assert len(lines(bench)) == 5


# ---- two benches at once


def test_a_run_that_another_bench_makes_is_waited_for(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "longtail")
    busy, free = beams(bench, 1, 10)
    holding, made = threading.Event(), threading.Event()

    def other() -> None:
        with claimed(busy.id, wait=False) as ours:
            assert ours
            holding.set()
            made.wait(300)
            bench.results.add("topics", busy.record() | {"status": "done", "scores": {"P@1": 1.0}})

    thread = threading.Thread(target=other)
    thread.start()
    holding.wait(300)
    threading.Timer(2.5, made.set).start()
    bench.run("topics", [busy, free])
    thread.join()
    assert "waiting for 1 run(s) that another bench is making" in caplog.text
    assert sorted(line["id"] for line in lines(bench)) == sorted([busy.id, free.id])
    assert bench.results.of("topics").run[busy.id]["scores"] == {"P@1": 1.0}
