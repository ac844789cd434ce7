"""Feature blocks of a linear model: each turns points into columns. Kinds are registered by name, and saved by it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import csr_arrays
from longtail._native.linear import CsrArrays
from longtail._native.terms import unit_rows
from longtail.core.errors import ParameterError, StoreError
from longtail.core.registry import Registry
from longtail.core.texts import Texts
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf
from longtail.linear.features import Rows

Arrays = Mapping[str, NDArray[Any]]


class FeatureBlock(ABC):
    """One part of a model's features.

    `kind` is its registered name; `reads` says whether points are texts or rows of a given matrix; `dense` says whether
    `encode` gives a dense float32 array or a CSR matrix. Either is (N, width), with rows of one length, most often 1
    (or 0).
    """

    kind: ClassVar[str]
    reads: ClassVar[Literal["text", "features"]] = "text"
    dense: ClassVar[bool] = False

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns it has."""

    @abstractmethod
    def encode(self, x: Any) -> Rows:
        """The rows (N, width) of some points: `Texts`, or a CSR matrix."""

    def encode_arrays(self, x: Any) -> CsrArrays:
        """The CSR arrays of `encode`, for a sparse block; overridden where a matrix would cost more."""
        return csr_arrays(self.encode(x))

    @abstractmethod
    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values from which `from_state` builds the block again."""

    @classmethod
    @abstractmethod
    def from_state(cls, arrays: Arrays, meta: dict[str, Any]) -> Self:
        """The block whose `state` was saved."""

    def names(self, columns: Iterable[int]) -> list[str]:
        """What to call columns in explanations."""
        return [f"{self.kind} {column}" for column in columns]


class TfidfBlock(FeatureBlock):
    """TF-IDF of the terms of texts."""

    kind = "tfidf"

    def __init__(self, encoder: Tfidf):
        self.encoder = encoder

    @property
    def width(self) -> int:
        """The size of the vocabulary."""
        return len(self.encoder)

    def encode(self, x: Any) -> sp.csr_matrix:
        """TF-IDF rows; a text without known terms has an empty one."""
        return self.encoder.encode(x)

    def names(self, columns: Iterable[int]) -> list[str]:
        """The terms of these columns."""
        return self.encoder.names(columns)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The vocabulary."""
        return self.encoder.state()

    @classmethod
    def from_state(cls, arrays: Arrays, meta: dict[str, Any]) -> TfidfBlock:
        """The block that `state` described."""
        return cls(Tfidf.from_state(arrays, meta))


class GivenBlock(FeatureBlock):
    """The columns of a matrix that is given instead of texts, its rows scaled to length 1."""

    kind = "features"
    reads = "features"

    def __init__(self, width: int):
        self._width = width

    @property
    def width(self) -> int:
        """The columns of the matrix."""
        return self._width

    def encode(self, x: Any) -> sp.csr_matrix:
        """The same matrix with rows of length 1."""
        return normalise_rows(x)

    def encode_arrays(self, x: Any) -> CsrArrays:
        """The arrays of `encode` without a matrix around them."""
        indptr, indices, data = csr_arrays(x)
        return indptr, indices, unit_rows(indptr, data)

    def names(self, columns: Iterable[int]) -> list[str]:
        """Columns have no names, only numbers."""
        return [f"feature {column}" for column in columns]

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """No arrays; the width."""
        return {}, {"width": self._width}

    @classmethod
    def from_state(cls, arrays: Arrays, meta: dict[str, Any]) -> GivenBlock:
        """The block that `state` described."""
        return cls(int(meta["width"]))


kinds: Registry[type[FeatureBlock]] = Registry("kind of feature block")
kinds.add("tfidf", "longtail.linear.blocks:TfidfBlock")
kinds.add("features", "longtail.linear.blocks:GivenBlock")
kinds.add("embedding", "longtail.linear.embedding:EmbeddingBlock")


def check_blocks(blocks: Sequence[FeatureBlock]) -> None:
    """Refuse blocks that cannot read the same points: texts for all of them, or one given matrix."""
    if not blocks:
        raise ParameterError("a linear model needs at least one feature block")
    if len(blocks) > 1 and any(block.reads != "text" for block in blocks):
        found = ", ".join(f"{block.kind} ({block.reads})" for block in blocks)
        raise ParameterError(f"several feature blocks must all read texts; got {found}")


def in_column_order(blocks: Sequence[FeatureBlock]) -> list[tuple[int, FeatureBlock]]:
    """The blocks with the number of their first column: sparse ones first, as `Features.of` puts them."""
    placed, first = [], 0
    for block in sorted(blocks, key=lambda block: block.dense):
        placed.append((first, block))
        first += block.width
    return placed


def blocks_state(blocks: Sequence[FeatureBlock]) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
    """The arrays of all blocks, those of block i under "block<i>.", and for each its kind and JSON values."""
    arrays: dict[str, NDArray[Any]] = {}
    metas = []
    for i, block in enumerate(blocks):
        own, meta = block.state()
        arrays |= {f"block{i}.{name}": array for name, array in own.items()}
        metas.append({"kind": block.kind, "state": meta})
    return arrays, metas


def blocks_from_state(arrays: Arrays, meta: dict[str, Any]) -> list[FeatureBlock]:
    """The blocks of a saved model, from its arrays and `meta`.

    Models saved before there were blocks have one `encoder` instead, None for a given matrix.
    """
    if "blocks" not in meta:
        if meta["encoder"] is None:
            return [GivenBlock(meta["width"])]
        return [TfidfBlock.from_state(arrays, meta["encoder"])]
    blocks = []
    for i, saved in enumerate(meta["blocks"]):
        if saved["kind"] not in kinds:
            raise StoreError(
                f"it has a feature block of kind {saved['kind']!r}, which is not known here (known: "
                f"{', '.join(kinds)}); use the longtail that wrote it, or train again"
            )
        prefix = f"block{i}."
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        blocks.append(kinds[saved["kind"]].from_state(own, saved["state"]))
    return blocks


def text_columns(blocks: Sequence[FeatureBlock], text: str) -> list[int]:
    """The sparse columns that the known terms of a text stand for."""
    found: list[int] = []
    for first, block in in_column_order(blocks):
        if block.reads == "text" and not block.dense:
            found += (first + block.encode(Texts.of([text])).indices).tolist()
    return found
