"""Other projects on our corpora: the files they read, their processes and environments, and what is recorded."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
import scipy.sparse as sp
from corpora import feature_corpus, topic_corpus, write_corpus

import longtail
from longtail.cli.main import main
from longtail.core.ranking import Ranking
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.evidence.peers import environments, listed
from longtail.evidence.peers.environments import InstallError, environment_folder, installed, made, ready
from longtail.evidence.peers.exchange import Exchange, write_exchange
from longtail.evidence.peers.listed import PEERS, Peer, PeerSystem
from longtail.evidence.peers.run import OUTSIDE, PeerTrial, complaint, measure, run_peer
from longtail.evidence.process import How
from longtail.metrics import evaluate
from longtail.store.lines import read_lines

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parent.parent

# A system of its own, in the layout of a peer: labels of the nearest training points, and ways to fail.
NEAREST = """
import os, signal, sys, time
import numpy as np
from peerside.driver import OnMatrices, best_of

class Nearest(OnMatrices):
    def train(self):
        assert not any(name.partition(".")[0] == "longtail" for name in sys.modules)
        how = self.settings.get("how")
        if how == "crash":
            os.kill(os.getpid(), signal.SIGFPE)
        if how == "raise":
            raise ValueError(f"cannot use {self.place}/model")
        if how == "sleep":
            time.sleep(60)
    def save(self, folder):
        folder.mkdir()
        (folder / "weights").write_bytes(bytes(1_000_000))
    def batch(self, points, k):
        found = best_of((points @ self.X.T @ self.Y).toarray(), k)
        return found[1:] if self.settings.get("how") == "short" else found
    def one(self, x):
        return self.batch(x, 10)
"""


@pytest.fixture(autouse=True)
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LONGTAIL_THREADS", "1")
    monkeypatch.delenv("LONGTAIL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip finds no package at all."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def peer(**settings: object) -> Peer:
    return Peer("nearest", "Nearest", "none", (), (PeerSystem("nearest", "nearest:Nearest", "matrices", settings),))


def driver_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "drivers"
    folder.mkdir(exist_ok=True)
    (folder / "nearest.py").write_text(NEAREST)
    return folder


def exchanged(corpus: Corpus, folder: Path, *reads: str) -> Exchange:
    assert corpus.test is not None
    return write_exchange(corpus, corpus.test, folder, reads)


def run(corpus: Corpus, tmp_path: Path, timeout: float | None = None, **settings: object) -> dict[str, object]:
    """Run the system above in a process of this environment, and judge its predictions."""
    exchange = exchanged(corpus, tmp_path / "exchange", "matrices")
    trial = PeerTrial("topics", corpus.digest, peer(**settings), peer(**settings).systems[0])
    assert corpus.test is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longtail.evidence.peers.run.OUTSIDE", f"{OUTSIDE}{os.pathsep}{driver_folder(tmp_path)}")
        return measure(trial, Path(sys.executable), exchange, corpus, corpus.test, How(timeout=timeout))


# ---- the exchange folder


def test_the_exchange_folder_has_the_features_and_labels_of_xr_linear(tmp_path: Path) -> None:
    corpus = topic_corpus(ignore=True)
    assert corpus.test is not None
    exchange = exchanged(corpus, tmp_path, "matrices", "file")
    X, X_test, Y = (sp.load_npz(tmp_path / f"{name}.npz") for name in ("X", "X_test", "Y"))
    model = longtail.recipe("xr-linear").train(corpus.train, corpus.labels, longtail.Run())
    for matrix, texts in ((X, corpus.train.texts), (X_test, corpus.test.texts)):
        np.testing.assert_allclose(matrix.toarray(), model.features(texts).sparse.toarray(), atol=1e-6)
    hidden = corpus.train.ignore
    assert hidden is not None and (Y.toarray() == np.where(hidden.toarray(), 0, corpus.train.Y.toarray())).all()
    assert (Y.toarray() != corpus.train.Y.toarray()).any()
    assert exchange.k == 10  # 5, and one label of a row may be ignored: 6 would do


def test_the_file_of_points_leaves_rows_out_that_peers_refuse(tmp_path: Path) -> None:
    corpus = topic_corpus()
    texts = [*list(corpus.train.texts)[:-1], ""]  # the last point has no words, the first no labels
    Y = corpus.train.Y.tolil()
    Y[0] = 0
    corpus = replace(corpus, train=replace(corpus.train, x=Texts.of(texts), Y=Y.tocsr()))
    exchanged(corpus, tmp_path, "file")
    read = longtail.read(tmp_path / "train.txt").train
    X = sp.load_npz(tmp_path / "X.npz")
    np.testing.assert_allclose(read.features.toarray(), X[1:-1].toarray(), rtol=1e-6)
    assert (read.Y.toarray() == corpus.train.Y[1:-1].toarray()[:, : read.Y.shape[1]]).all()


def test_texts_and_words_have_one_line_per_point(tmp_path: Path) -> None:
    corpus = topic_corpus(points=3)
    texts = ["The boat,\nthe WIND", "a\u2028recipe\tof x", "pawn pawn"]
    corpus = replace(corpus, train=replace(corpus.train, x=Texts.of(texts)))
    exchanged(corpus, tmp_path, "texts", "words")
    assert (tmp_path / "train.texts").read_text() == "The boat, the WIND\na recipe of x\npawn pawn\n"
    marks = [
        [f"__label__{label}" for label in row] for row in np.split(corpus.train.Y.indices, corpus.train.Y.indptr[1:-1])
    ]
    words = [["the", "boat", "the", "wind"], ["recipe", "of"], ["pawn", "pawn"]]
    expected = "".join(" ".join(mark + line) + "\n" for mark, line in zip(marks, words, strict=True))
    assert (tmp_path / "train.words").read_text() == expected
    assert len((tmp_path / "test.words").read_text().split("\n")) == 41
    assert (tmp_path / "labels.texts").read_text().startswith("cooking: recipe")


def test_features_of_a_corpus_without_texts_are_given_with_length_one(tmp_path: Path) -> None:
    exchanged(feature_corpus(), tmp_path, "matrices")
    np.testing.assert_allclose(sp.linalg.norm(sp.load_npz(tmp_path / "X_test.npz"), axis=1), 1, rtol=1e-6)


# ---- a process, and what is recorded about it


@pytest.mark.parametrize("ignore", [False, True])
def test_a_peer_is_evaluated_as_our_own_models_are(ignore: bool, tmp_path: Path) -> None:
    corpus = topic_corpus(ignore=ignore)
    outcome = run(corpus, tmp_path)
    assert outcome["status"] == "done", outcome
    encoder, counts = Tfidf.fit(corpus.train.texts, TfidfParameters())
    assert corpus.test is not None
    scores = encoder.encode(corpus.test.texts) @ encoder.weigh(counts).T @ corpus.train.truth()
    ranking = Ranking.from_csr(scores, 6, corpus.labels)
    expected = evaluate(ranking, corpus.test.Y, corpus.labels, ignore=corpus.test.ignore)
    found = outcome["scores"]
    assert isinstance(found, dict) and set(found) == set(expected.scores)
    for name, value in expected.scores.items():
        assert found[name] == pytest.approx(value, abs=1e-4), name
    assert outcome["points"] == 40 and outcome["model_mb"] == 1.0
    assert {"features", "load", "train", "save", "predict"} == set(outcome["seconds"])
    assert outcome["p50_us"] > 0 and outcome["peak_mb"] > 10


def test_a_process_that_crashes_fails_or_takes_too_long_is_recorded_so(tmp_path: Path) -> None:
    corpus = topic_corpus()
    crashed = run(corpus, tmp_path, how="crash")
    assert crashed["status"] == "failed" and "SIGFPE" in str(crashed["error"])
    raised = run(corpus, tmp_path, how="raise")
    assert (raised["status"], raised["error"]) == ("failed", "ValueError: cannot use model")  # no folder of the machine
    slow = run(corpus, tmp_path, timeout=2.0, how="sleep")
    assert (slow["status"], slow["error"]) == ("timed-out", "stopped after 2 s")
    short = run(corpus, tmp_path, how="short")
    assert short["status"] == "failed" and "(39, 6)" in str(short["error"])


def test_predictions_that_are_no_labels_are_refused() -> None:
    fine = np.array([[0, 2], [1, -1]], np.int32)
    assert complaint(fine, 2, 3) is None
    assert "wrote no predictions" in str(complaint(None, 2, 3))
    assert "int64" in str(complaint(fine.astype(np.int64), 2, 3))
    assert "label 2, but there are 2" in str(complaint(fine, 2, 2))
    assert "twice for 1 points" in str(complaint(np.array([[1, 0, 1], [-1, -1, 0]], np.int32), 2, 3))
    assert "label -2" in str(complaint(np.array([[-2]], np.int32), 1, 3))


def test_the_id_depends_on_corpus_versions_and_settings_only() -> None:
    def id(corpus: str = "c", pins: str = "a==1", **settings: object) -> str:
        made = replace(peer(**settings), installs=((pins, "numpy"),))
        return PeerTrial("name", corpus, made, made.systems[0]).id

    assert len({id(), id("d"), id(pins="a==2"), id(C=1.0), id(C=2.0)}) == 5
    assert id(C=1.0) == id(C=1.0)


# ---- environments


def small_environment(made_for: Peer, tmp_path: Path) -> None:
    """An environment that borrows numpy and scipy from ours, so that nothing is installed, and has the system above."""
    folder = environment_folder(made_for)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(f"{Path(np.__file__).parent.parent}\n")
    (site / "nearest.py").write_text(NEAREST)
    (folder / environments.READY).write_bytes(orjson.dumps({}))


def test_the_command_records_each_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    write_corpus(topic_corpus(), tmp_path / "topics")
    works, crashes = peer(), replace(peer(how="crash"), name="crashes", installs=((),))
    monkeypatch.setattr(listed, "PEERS", {"crashes": crashes, "nearest": works})
    for one in (works, crashes):
        small_environment(one, tmp_path)
    words = ["peers", "topics", "--data", str(tmp_path)]
    assert main([*words, "--dry-run"]) == 0
    assert capsys.readouterr().out.count("to run") == 2
    assert main(words) == 1  # one has failed, the other went on
    assert "nearest" in capsys.readouterr().out
    failed, done = read_lines(Path("bench/results/topics.jsonl"))
    assert (failed["kind"], failed["peer"], failed["status"]) == ("peer", "crashes", "failed")
    assert done["status"] == "done" and done["scores"]["P@1"] > 80
    assert done["machine"]["threads"] == 1 and done["versions"]["python"]
    assert not re.search(r"/(tmp|home|work)\b", Path("bench/results/topics.jsonl").read_text())
    assert main(words) == 1
    assert len(read_lines(Path("bench/results/topics.jsonl"))) == 2
    assert main([*words, "--again-failed"]) == 1
    assert len(read_lines(Path("bench/results/topics.jsonl"))) == 3
    assert main([*words, "--peer", "nearest"]) == 0
    # repeated at another time: a new line, which counts
    lines = Path("bench/results/topics.jsonl")
    lines.write_bytes(orjson.dumps(done | {"finished": "2001-01-01T00:00:00Z"}) + b"\n")
    capsys.readouterr()
    assert main([*words, "--peer", "nearest", "--again", "--markdown"]) == 0
    table = capsys.readouterr().out
    assert "| nearest |" in table and f"{done['scores']['P@1']:.2f}" in table
    old, new = read_lines(lines)
    assert old["id"] == new["id"] and old["finished"] < new["finished"]
    # the table of everything recorded has peers below our own systems
    assert main(["bench", "topics", "--data", str(tmp_path), "--recipe", "popular", "--quiet"]) == 0
    assert main(["bench", "topics", "--data", str(tmp_path), "--table", "--markdown", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("popular") < shown.index("Other projects: topics, 40 test points") < shown.index("| nearest |")


@pytest.mark.usefixtures("no_index")
def test_a_peer_that_cannot_be_installed_is_recorded_with_the_reason(tmp_path: Path, capsys: Capture) -> None:
    write_corpus(topic_corpus(), tmp_path / "topics")
    assert main(["peers", "topics", "--data", str(tmp_path), "--peer", "omikuji"]) == 1
    record, other = read_lines(Path("bench/results/topics.jsonl"))  # of both systems
    assert record["status"] == "failed" and record["error"] == other["error"] and record["id"] != other["id"]
    assert "omikuji cannot be installed" in record["error"] and "omikuji==0.5.2" in record["error"]
    assert "--again-failed" in capsys.readouterr().err
    assert ready(PEERS["omikuji"]) is None


def test_addresses_and_folders_are_taken_out_of_reasons() -> None:
    said = "WARNING: x\nERROR: Could not open https://user@host.example/simple/a from /opt/packages/a\nERROR: no a==1\n"
    assert environments.reason(said) == "Could not open … from a / no a==1"
    assert environments.reason("line 1\nline 2\nline 3") == "line 2 / line 3"


@pytest.mark.slow
def test_a_real_peer_end_to_end(tmp_path: Path) -> None:
    """omikuji in an environment of its own; skipped where no package index can be reached."""
    omikuji = PEERS["omikuji"]
    try:
        python = made(omikuji)
    except InstallError as error:
        pytest.skip(str(error))
    assert installed(omikuji) == {"omikuji": "0.5.2"}
    corpus = topic_corpus(points=600)
    exchange = exchanged(corpus, tmp_path / "exchange", "file")
    for system in omikuji.systems:
        outcome, found = run_peer(python, system.driver, system.settings, omikuji.packages, exchange, How())
        assert outcome["status"] == "done", outcome
        assert outcome["versions"]["omikuji"] == "0.5.2"
        assert corpus.test is not None and complaint(found, 40, 6) is None and found is not None
        truth = corpus.test.Y.toarray()
        assert np.mean(truth[np.arange(40), found[:, 0]]) > 0.9


# ---- the list


def test_the_list_has_every_peer_with_version_and_licence(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["peers", "--list"]) == 0
    out = capsys.readouterr().out
    for one in PEERS.values():
        assert one.name in out and one.licence in out
        assert all(requirement in out for requirement in one.pinned)
    assert not Path("cache").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topics", "--peer", "omikuij"], "Did you mean 'omikuji'"),
        ([], "give the corpora to measure on"),
    ],
)
def test_wrong_usage(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["peers", *words]) == 2
    assert message in capsys.readouterr().err


def test_peers_that_need_texts_are_left_out_of_a_corpus_of_features(tmp_path: Path, capsys: Capture) -> None:
    longtail.write(feature_corpus(), tmp_path / "features", to="repository")
    assert main(["peers", str(tmp_path / "features"), "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert "napkinXC" in shown.out and "fastText" not in shown.out
    assert "has no texts: left out: fastText" in shown.err


def test_every_driver_exists_and_none_imports_longtail() -> None:
    for path in OUTSIDE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "longtail"], path
    for system in (system for one in PEERS.values() for system in one.systems):
        module, _, name = system.driver.partition(":")
        tree = ast.parse((OUTSIDE / f"{module.replace('.', '/')}.py").read_text())
        assert name in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def test_the_linear_bench_uses_the_same_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.delitem(sys.modules, "linear", raising=False)
    from linear.systems import SYSTEMS

    peers = {system.driver for name, system in SYSTEMS.items() if name.split()[0] in PEERS}
    assert peers <= {system.driver for one in PEERS.values() for system in one.systems}
    assert len(peers) == 4
