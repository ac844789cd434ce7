"""A memory of points: texts with known labels that a model looks up beside its labels (RAE-XMC, 2025)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import StoreError
from longtail.core.ranking import scores_csr, total_scores
from longtail.search.exact import Exact
from longtail.search.index import Floats, SearchSettings, Storage
from longtail.store.parts import pack_csr, unpack_csr

Keys = NDArray[np.uint64]


class Lookup(NamedTuple):
    """How much a memory counts: λ, τ and b of p = softmax(q Kᵀ / τ) V, V = [λ I; (1 − λ) Y], over the b nearest."""

    share: float = 1.0  # λ, the share of labels; the rest is that of remembered points, and 1 leaves the memory out
    temperature: float = 0.05  # τ
    neighbours: int = 100  # b, of labels and of points each

    def __str__(self) -> str:
        return f"share {self.share:g}, temperature {self.temperature:g}, {self.neighbours} neighbours"


@dataclass(frozen=True)
class Memory:
    """M points: vectors of their texts (M, d), their targets Y (M, L), and keys by which they are found again.

    Texts are not kept. A key is a hash: of the name that the point was given, or of its text. Memories never change:
    `with_points` and `without` make new ones. The search is exact; `storage` is that of `SearchSettings`.
    """

    vectors: Floats
    Y: sp.csr_matrix
    keys: Keys
    storage: Storage = "float32"

    def __len__(self) -> int:
        return len(self.keys)

    @functools.cached_property
    def _index(self) -> Exact:
        return Exact.of(self.vectors, SearchSettings(storage=self.storage))

    def with_points(self, vectors: Floats, Y: sp.csr_matrix, keys: Keys) -> Memory:
        """With these points added; a point whose key is there already replaces it."""
        keys, last = np.unique(keys[::-1], return_index=True)  # of a key given twice the last one counts
        rows = len(vectors) - 1 - last
        kept = self.without(keys)[0]
        both = sp.vstack([kept.Y, Y[rows]], "csr")
        both_vectors, both_keys = np.concatenate([kept.vectors, vectors[rows]]), np.concatenate([kept.keys, keys])
        return replace(self, vectors=both_vectors, Y=both, keys=both_keys)

    def without(self, keys: Keys) -> tuple[Memory, int]:
        """Without the points that have one of these keys; and how many these were."""
        kept = ~np.isin(self.keys, keys)
        if kept.all():
            return self, 0
        memory = replace(self, vectors=self.vectors[kept], Y=self.Y[kept], keys=self.keys[kept])
        return memory, int((~kept).sum())

    def of_labels(self, L: int) -> Memory:
        """The same over a label space that has grown to L labels."""
        arrays = (self.Y.data, self.Y.indices, self.Y.indptr)
        return replace(self, Y=sp.csr_matrix(arrays, shape=(len(self), L)))

    def nearest(self, queries: Floats, count: int) -> tuple[NDArray[np.int32], Floats]:
        """The nearest points (B, count) of vectors (B, d), padded by −1, and their inner products."""
        if not len(self):
            return np.full((len(queries), count), -1, np.int32), np.full((len(queries), count), -np.inf, np.float32)
        return self._index.search(queries, count)

    def scores(
        self,
        labels: NDArray[np.int32],
        label_scores: Floats,
        points: NDArray[np.int32],
        point_scores: Floats,
        lookup: Lookup,
    ) -> sp.csr_matrix:
        """p (B, L) from the nearest labels (B, m) and points (B, n), both with their scores, padded by −1 and −inf.

        Each is weighed by the softmax over both together; a label has λ times its own weight, and (1 − λ) times those
        of the points that have it.
        """
        logits = np.concatenate([label_scores, point_scores], axis=1).astype(np.float64) / lookup.temperature
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        m = labels.shape[1]
        own = scores_csr(labels, lookup.share * weights[:, :m], self.Y.shape[1], ordered=False)
        votes = scores_csr(points, (1 - lookup.share) * weights[:, m:], len(self), ordered=False) @ self.Y
        return total_scores([own, votes])

    def state(self) -> dict[str, NDArray[Any]]:
        """Vectors, keys and targets as arrays, for the model folder."""
        arrays: dict[str, NDArray[Any]] = {"vectors": self.vectors, "keys": self.keys}
        return arrays | pack_csr("Y", self.Y)

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], storage: Storage = "float32") -> Memory:
        """The memory that `state` described."""
        Y = unpack_csr("Y", arrays)
        if Y is None or "vectors" not in arrays or "keys" not in arrays:
            raise StoreError("the memory of the model is damaged: arrays are missing; save the model again")
        vectors, keys = arrays["vectors"], arrays["keys"]
        if vectors.ndim != 2 or keys.shape != vectors.shape[:1] or Y.shape[0] != len(keys):
            raise StoreError("the memory of the model is damaged: its arrays differ in length; save the model again")
        return cls(vectors, Y, keys, storage)


def keys_of(names: Iterable[str]) -> Keys:
    """The keys (n,) of names or texts: 64 bits of a hash."""
    digests = b"".join(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, "<u8").astype(np.uint64)
