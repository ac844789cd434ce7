"""How many of the co-labels that Gandalf gives label texts are true, against a literal count."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import feature_corpus, topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.augment import Augmentation
from longtail.augment import premise as module
from longtail.augment.premise import HIGH, LOW, Premise, advice, premise, same_texts
from longtail.cli.main import main
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset


def literal(data: Dataset, labels: Labels, delta: float, shrink: float) -> Premise:
    """The same figures, pair by pair."""
    N, L = data.Y.shape
    texts = list(labels.texts or [""] * L)
    ignore = np.zeros((N, L), bool) if data.ignore is None else data.ignore.toarray()
    usable = [bool(text.strip()) and (labels.removed is None or not labels.removed[j]) for j, text in enumerate(texts)]
    points = list(data.texts)
    links = [(n, j) for n in range(N) for j in range(L) if usable[j] and (points[n] == texts[j] or ignore[n, j])]
    Y = (data.Y.toarray() > 0) & ~ignore
    for n, j in links:
        Y[n, j] = False
    G = Y.T.astype(int) @ Y.astype(int)
    given = true = 0
    for n, j in links:
        for i in range(L):
            if i != j and not ignore[n, i] and G[j, j] and G[i, j] / (G[j, j] + shrink) > delta:
                given += 1
                true += bool(Y[n, i])
    return Premise(len(links), given, true, sum(int(Y[n].sum()) for n, _ in links))


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Dataset, Labels]:
    """Few different texts, so that many points and labels share one; some labels without text, some removed."""
    N, L = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    texts = np.array(["vim", "nano: small", "emacs", "ed", ""])
    points = Texts.of(texts[rng.integers(0, 4, N)].tolist())
    own = Texts.of(texts[rng.integers(0, 5, L)].tolist())
    Y = sp.csr_matrix((rng.random((N, L)) < 0.4) * rng.choice([0.5, 1.0], (N, L)).astype(np.float32))
    ignore = sp.csr_matrix(rng.random((N, L)) < 0.15) if draw(st.booleans()) else None
    labels = Labels.of([str(j) for j in range(L)], own)
    if draw(st.booleans()):
        labels = labels.remove(["0"])
    return Dataset(points, Y, ignore), labels


@settings(deadline=None, max_examples=60)
@given(corpora(), st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([0.0, 2.0]), st.sampled_from([1, 2, 100]))
def test_the_figures_are_those_of_a_count_pair_by_pair(
    drawn: tuple[Dataset, Labels], delta: float, shrink: float, block: int
) -> None:
    data, labels = drawn
    method = {"method": "gandalf-shrunk", "shrink": shrink} if shrink else {"method": "gandalf"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        found = premise(data, labels, Augmentation.of(**method, delta=delta))
    assert found == literal(data, labels, delta, shrink)


def pages(mutual: bool) -> tuple[Dataset, Labels]:
    """Four pages in two pairs; a page names its partner and its partner's index, which names it only if `mutual`."""
    names = ["a", "b", "c", "d", "x", "y"]
    links = {"a": "bx", "b": "ax", "c": "dy", "d": "cy", "x": "ab" if mutual else "y", "y": "cd" if mutual else "x"}
    rows = [(n, names.index(to)) for n, name in enumerate(names) for to in links[name]]
    Y = sp.csr_matrix((np.ones(len(rows), np.float32), tuple(zip(*rows, strict=True))), shape=(6, 6))
    return Dataset(Texts.of(names), Y, sp.identity(6, dtype=bool, format="csr")), Labels.of(names, names)


def test_a_mutual_relation_has_a_higher_share() -> None:
    both, one_way = (premise(*pages(mutual)).share for mutual in (True, False))
    assert both is not None
    assert one_way is not None
    assert both > 0.9
    assert one_way < both - 0.2


def test_a_point_does_not_confirm_the_targets_of_its_own_label() -> None:
    """Label b occurs at the point "b" alone, together with c: that says nothing about other points."""
    data = Dataset(Texts.of(["b", "z"]), sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1]], np.float32)))
    found = premise(data, Labels.of(["b", "c", "e"], ["b", "c", "e"]))
    assert found == Premise(texts=1, given=0, true=0, known=1)
    assert found.share is None
    assert "gives no co-labels" in str(found)


def test_without_label_texts_or_texts_there_is_nothing_to_compare() -> None:
    for corpus in (topic_corpus(label_text=False), feature_corpus()):
        assert not same_texts(corpus.train, corpus.labels).nnz
        assert premise(corpus.train, corpus.labels) == Premise(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "prefer"), (LOW, "prefer"), ((LOW + HIGH) / 2, "compare"), (HIGH, "likely"), (1.0, "likely")],
)
def test_the_advice_follows_the_share(share: float, words: str) -> None:
    assert words in advice(share)


def folder_of(data: Dataset, labels: Labels, folder: Path) -> str:
    """A corpus as files, with its filter pairs."""
    folder.mkdir()
    rows = [data.Y.indices[a:b].tolist() for a, b in zip(data.Y.indptr[:-1], data.Y.indptr[1:], strict=True)]
    lines = [json.dumps({"text": text, "labels": row}) for text, row in zip(data.texts, rows, strict=True)]
    (folder / "train.jsonl").write_text("\n".join(lines))
    own = [json.dumps({"key": key, "text": text}) for key, text in zip(labels.keys, labels.texts or [], strict=True)]
    (folder / "labels.jsonl").write_text("\n".join(own))
    if data.ignore is not None:
        at = data.ignore.tocoo()
        (folder / "filter_labels_train.txt").write_text(
            "\n".join(f"{n} {j}" for n, j in zip(at.row, at.col, strict=True))
        )
    return str(folder)


@pytest.mark.parametrize("words", [["inspect"], ["graph", "a"]])
def test_inspect_and_graph_say_it(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, labels = pages(mutual=True)
    folder = folder_of(data, labels, tmp_path / "pages")
    found = premise(data, labels)
    assert main([words[0], folder, *words[1:], "--quiet"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert str(found) in shown
    assert main([words[0], folder, *words[1:], "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gandalf_premise"] == found.to_json()


@pytest.mark.parametrize("words", [["inspect"], ["graph", "cooking"]])
def test_without_such_texts_it_is_said_or_left_out(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = topic_corpus()
    folder = folder_of(corpus.train, corpus.labels, tmp_path / "topics")
    assert main([words[0], folder, *words[1:], "--quiet"]) == 0
    assert "No training text is also a label text" in " ".join(capsys.readouterr().out.split())
    bare = topic_corpus(label_text=False)
    (tmp_path / "bare").mkdir()
    lines = [
        json.dumps({"text": t, "labels": [bare.labels.keys[int(j)] for j in bare.train.Y[n].indices]})
        for n, t in enumerate(bare.train.texts)
    ]
    (tmp_path / "bare" / "train.jsonl").write_text("\n".join(lines))
    assert main([words[0], str(tmp_path / "bare"), *words[1:], "--quiet"]) == 0
    assert "Gandalf" not in capsys.readouterr().out
    assert main([words[0], str(tmp_path / "bare"), *words[1:], "--quiet", "--json"]) == 0
    assert "gandalf_premise" not in json.loads(capsys.readouterr().out)
