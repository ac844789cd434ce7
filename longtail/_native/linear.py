"""The kernels of the linear engine: label clustering, one-vs-all solving, beam search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._native import Csr, _kernels, csr_arrays


def cluster_order(rows: Csr, cuts: list[NDArray[np.int64]], *, rounds: int, seed: int) -> NDArray[np.int32]:
    """The rows in an order made by cuts, each by balanced spherical 2-means of at most `rounds` rounds.

    Rows must be of unit length. `cuts` are (C, 3) arrays of (first, middle, last): the rows first … last of the order
    are arranged so that those before the middle are one cluster and the others the second. The cuts of one array do
    not overlap, and each lies within one cluster of the arrays before it.
    """
    all_cuts = np.ascontiguousarray(np.concatenate([np.empty((0, 3), np.int64), *cuts]))
    round_ptr = np.cumsum([0, *map(len, cuts)]).astype(np.int64)
    return _kernels.cluster_order(*csr_arrays(rows), rows.shape[1], all_cuts, round_ptr, rounds, seed)


def cluster_wide(rows: Csr, k: int, *, rounds: int, seed: int) -> NDArray[np.int32]:
    """The cluster (N,) of each row by spherical k-means without balance; some of the k numbers may be unused."""
    return _kernels.cluster_wide(*csr_arrays(rows), rows.shape[1], k, rounds, seed)


def label_sums(X: Csr, Y: Csr, unit: bool = True) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Σ_i y_il x_i for every label l of Y (N, L), with `unit` scaled to unit length: CSR arrays (L, d)."""
    return _kernels.label_sums(*csr_arrays(X), X.shape[1], *csr_arrays(Y.tocsc()), unit)


class Weights(NamedTuple):
    """Sparse weights of K nodes: node c has features[ptr[c]:ptr[c + 1]] (rising) with those values."""

    ptr: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]


@dataclass(frozen=True)
class Problem:
    """The one-vs-all problems of a tree level.

    Parent g has the training rows rows[row_ptr[g]:row_ptr[g + 1]] and the children child_ptr[g] … child_ptr[g + 1].
    `targets` (N, K) CSC holds y in (0, 1], `costs` beside its entries what multiplies the loss of a positive (None:
    1), `ignore` (N, K) CSC the pairs that count neither way.
    """

    row_ptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    child_ptr: NDArray[np.int64]
    targets: Csr
    costs: NDArray[np.float32] | None = None
    ignore: Csr | None = None


Loss = Literal["squared-hinge", "logistic"]
Solver = Literal["dcd", "newton"]
SOLVED = (("dcd", "squared-hinge"), ("newton", "squared-hinge"), ("newton", "logistic"))


def solve_problem(
    X: Csr,
    problem: Problem,
    *,
    dense: NDArray[np.float32] | None = None,
    bias: float,
    cost_positive: float,
    cost_negative: float,
    eps: float,
    max_passes: int,
    threshold: float,
    weights_per_label: int | None,
    seed: int,
    first_parent: int = 0,
    loss: Loss = "squared-hinge",
    solver: Solver = "dcd",
) -> Weights:
    """min ½‖w‖² + Σ cost · (y·ℓ(m) + (1 − y)·ℓ(−m)), m = w·x, for every child; ℓ(m) = max(0, 1 − m)² or log(1 + e⁻ᵐ).

    Features are the columns of X (N, d), then those of `dense` (N, e), then the bias. Weights smaller than `threshold`
    are dropped, and with `weights_per_label` all but that many of the largest of each child. What is random follows
    from `seed` and the number of the parent, counted from `first_parent`.

    Solvers: dual coordinate descent (squared hinge only; stops when projected gradients differ by less than `eps`, or
    after `max_passes` over the rows), and Newton's method (stops as LIBLINEAR's primal solvers do, when the gradient is
    shorter than eps · min(positives, negatives) / rows times the one at 0, or after `max_passes` steps; it does not use
    `seed`).
    """
    if (solver, loss) not in SOLVED:
        pairs = ", ".join(f"{s} with {of}" for s, of in SOLVED)
        raise ValueError(f"there is no solver {solver!r} for loss {loss!r}; there is {pairs}.")
    none = np.empty(0, np.int64), np.empty(0, np.int32)
    arrays = (
        *csr_arrays(X),
        X.shape[1],
        np.empty((X.shape[0], 0), np.float32) if dense is None else np.ascontiguousarray(dense, np.float32),
        bias,
        np.ascontiguousarray(problem.row_ptr, np.int64),
        np.ascontiguousarray(problem.rows, np.int32),
        np.ascontiguousarray(problem.child_ptr, np.int64),
        *csr_arrays(problem.targets),
        np.empty(0, np.float32) if problem.costs is None else np.ascontiguousarray(problem.costs, np.float32),
        *(none if problem.ignore is None else csr_arrays(problem.ignore)[:2]),
        cost_positive,
        cost_negative,
        eps,
        max_passes,
        threshold,
        -1 if weights_per_label is None else weights_per_label,
    )
    if solver == "newton":
        return Weights(*_kernels.solve_newton(*arrays, loss == "logistic"))
    return Weights(*_kernels.solve_level(*arrays, seed, first_parent))


def sigmoid(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """1/(1 + e⁻ᵛ) of each value, as the logistic solver computes it: the same bits on every machine."""
    flat = np.ascontiguousarray(values, np.float32)
    return _kernels.sigmoids(flat.ravel()).reshape(flat.shape)


WeightKind = Literal["float32", "float16", "int8"]
CsrArrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


class PackedLevel(NamedTuple):
    """The weights of a level as beam search reads them: by parent, by feature, then by child (see src/level.h).

    `form` holds the bytes of a child's number, those of a weight, and the bits of a feature.
    """

    child_ptr: NDArray[np.int64]
    bucket_ptr: NDArray[np.int64]
    data_ptr: NDArray[np.int64]
    buckets: NDArray[np.uint32]
    data: NDArray[np.uint8]
    scales: NDArray[np.float32]
    form: NDArray[np.uint8]

    def arguments(self) -> tuple[Any, ...]:
        """The level as the kernels take it."""
        return (*self[:-1], *self.form[:2].tolist())

    def check_records(self, width: int) -> None:
        """Refuse, by a ValueError, weights that lead out of these arrays; `width` features, the bias among them.

        For levels from a file, after `BeamSearch` has checked the sizes. It reads all weights once.
        """
        _kernels.check_records(*self.arguments(), width)

    @property
    def kind(self) -> WeightKind:
        """The type that weights are stored as."""
        kinds: dict[int, WeightKind] = {1: "int8", 2: "float16", 4: "float32"}
        return kinds[int(self.form[1])]


def feature_bits(width: int) -> int:
    """How many bits the numbers of `width` features need, the bias among them."""
    return max(1, (width - 1).bit_length())


def pack_level(child_ptr: NDArray[np.int64], weights: Weights, width: int, kind: WeightKind = "float32") -> PackedLevel:
    """The weights of the children of each parent, laid out for beam search; features are below `width`."""
    arrays, scales, child_bytes, weight_bytes = _kernels.pack_level(child_ptr, *weights, width, kind)
    form = np.array([child_bytes, weight_bytes, feature_bits(width)], np.uint8)
    return PackedLevel._make((child_ptr, *arrays, scales, form))


def unpack_level(level: PackedLevel, parent: int | None = None, among: NDArray[np.int32] | None = None) -> Weights:
    """The weights of all nodes of a level, or of the children of one parent, each by rising feature.

    With `among`, only those of these features.
    """
    first, last = (0, len(level.child_ptr) - 1) if parent is None else (parent, parent + 1)
    if among is not None and not len(among):
        ptr = np.zeros(level.child_ptr[last] - level.child_ptr[first] + 1, np.int64)
        return Weights(ptr, np.empty(0, np.int32), np.empty(0, np.float32))
    wanted = np.empty(0, np.int32) if among is None else np.ascontiguousarray(among, np.int32)
    width = 1 << int(level.form[2])
    return Weights(*_kernels.unpack_level(*level.arguments(), width, first, last, wanted))


class BeamSearch:
    """Finds the best nodes of the last of some levels; `width` features besides the bias."""

    def __init__(self, width: int, levels: list[PackedLevel]):
        self._search = _kernels.BeamSearch(width)
        for level in levels:
            if level.form[2] != feature_bits(width + 1):
                raise ValueError(f"a level with {level.form[2]}-bit feature numbers does not fit {width:,} features.")
            self._search.add_level(*level.arguments())

    def search(
        self,
        X: Csr | CsrArrays,
        dense: NDArray[np.float32] | None = None,
        *,
        bias: float,
        beam: int,
        k: int,
        post: str,
        names: NDArray[np.int32] | None = None,
        usable: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best nodes (N, k) of the last level and their scores, among those `usable` (K,); pads −1, −inf.

        X holds the sparse features, a matrix (N, d) or its `csr_arrays`; `dense` (N, e), contiguous, the last e
        features. Nodes are given by their number, or by `names` (K,); ties go to the lower one.
        """
        arrays = X if isinstance(X, tuple) else csr_arrays(X)
        mask = None if usable is None else usable.view(np.uint8)
        return self._search.search(*arrays, dense, bias, beam, k, post, names, mask)
