"""A label and the labels that occur with it: what `longtail graph` shows."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.defaults import NEIGHBOURS
from longtail.core.errors import ParameterError, shorten
from longtail.core.labels import Labels
from longtail.labels.graph import check_whole, cooccurrence, symmetric, walk
from longtail.labels.kept import Kind

SUGGESTED, SIMILAR = 5, 3
LOOKED_THROUGH = 200_000  # labels; searching more of them for similar names takes seconds


@dataclass(frozen=True)
class Neighbour:
    """A neighbour of label j: `degree` is its entry in the graph, the rest is counted in Y.

    `shared` points have both labels, `points` have the neighbour.
    """

    label: int
    degree: float
    forward: float  # P[this | j]
    backward: float  # P[j | this]
    shared: int
    points: int


@dataclass(frozen=True)
class Neighbourhood:
    """A label (with so many `points`), its strongest neighbours, and the edges between those.

    An edge in `between` is (a, b, ½(P[a | b] + P[b | a])); a stands before b among the neighbours. `found` counts all
    neighbours in the graph, also those that are not listed.
    """

    label: int
    points: int
    kind: Kind
    neighbours: tuple[Neighbour, ...]
    found: int
    between: tuple[tuple[int, int, float], ...]


def neighbourhood(
    Y: sp.csr_matrix, label: int, kind: Kind = "counts", *, top: int = NEIGHBOURS, **settings: Any
) -> Neighbourhood:
    """The `top` strongest neighbours of a label of Y (N, L), in the graph of this kind computed with `settings`.

    Among equal degrees the neighbour with the larger P[label | neighbour] comes first, then the lower label.
    """
    check_whole("top", top, 1)
    if kind == "walk":
        row = walk(Y, labels=[label], top=Y.shape[1], **settings)
    else:
        row = (symmetric if kind == "symmetric" else cooccurrence)(Y, labels=[label], **settings)
    others, degrees = row.indices[row.indices != label], row.data[row.indices != label]
    by_label = (Y > 0).tocsc()
    counts = np.diff(by_label.indptr)
    shared = shared_points(by_label, label, others)
    order = np.lexsort((others, -shared / np.maximum(counts[others], 1), -degrees))[:top]
    neighbours = tuple(
        Neighbour(
            label=int(others[i]),
            degree=float(degrees[i]),
            forward=float(shared[i] / counts[label]),
            backward=float(shared[i] / counts[others[i]]),
            shared=int(shared[i]),
            points=int(counts[others[i]]),
        )
        for i in order
    )
    return Neighbourhood(label, int(counts[label]), kind, neighbours, len(others), edges_among(by_label, others[order]))


def shared_points(by_label: sp.csc_matrix, label: int, others: NDArray[np.integer]) -> NDArray[np.int64]:
    """G_ij: the points that a label shares with each of the others; 0 is possible, as walks go further."""
    points = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
    here = np.zeros(by_label.shape[0], bool)
    here[points] = True
    return np.asarray(here @ by_label[:, others].astype(np.int64)).ravel()


def edges_among(by_label: sp.csc_matrix, labels: NDArray[np.integer]) -> tuple[tuple[int, int, float], ...]:
    """(a, b, ½(P[a | b] + P[b | a])) for all pairs of these labels that share a point, strongest first."""
    few = by_label[:, labels].astype(np.float64)
    shared = (few.T @ few).toarray()  # (top, top)
    counts = np.maximum(shared.diagonal(), 1)
    degree = shared * (1 / counts[:, None] + 1 / counts[None, :]) / 2
    a, b = np.nonzero(np.triu(shared, 1))
    order = np.lexsort((b, a, -degree[a, b]))
    return tuple((int(labels[a[i]]), int(labels[b[i]]), float(degree[a[i], b[i]])) for i in order)


def find_label(labels: Labels, name: str) -> int:
    """The index of the label with this key or text; case matters only between labels that differ by case alone.

    The error for an unknown name suggests similar labels.
    """
    found = labels.indices([name])
    if found[0] >= 0:
        return int(found[0])
    texts = list(labels.keys if labels.texts is None else labels.texts)
    for known in [list(labels.keys), texts] if labels.has_text else [texts]:
        for spell in (str, str.casefold):
            same = [i for i, text in enumerate(known) if spell(text) == spell(name)]
            if len(same) == 1:
                return same[0]
            if same:
                keys = ", ".join(shorten(labels.keys[i]) for i in same[:SUGGESTED])
                raise ParameterError(f"{len(same):,} labels have the name {shorten(name)}; give the key of one: {keys}")
    raise ParameterError(f"no label has the key or text {shorten(name)}.{suggestions(labels, texts, name)}")


def suggestions(labels: Labels, texts: list[str], name: str) -> str:
    """` Similar: …`: labels with a similar key or text, then frequent labels that contain the name as words."""
    whole = re.compile(rf"(?<!\w){re.escape(name.casefold())}(?!\w)")
    held = [
        i
        for i, text in enumerate(texts)
        if name and (whole.search(text.casefold()) or whole.search(labels.keys[i].casefold()))
    ]
    held.sort(key=lambda i: (-int(labels.counts[i]), i))
    near: list[int] = []
    if len(labels) <= LOOKED_THROUGH:
        for known in (list(labels.keys), texts):
            near += [known.index(text) for text in difflib.get_close_matches(name, known, n=SIMILAR, cutoff=0.6)]
    shown = list(dict.fromkeys(near + held))[:SUGGESTED]
    listed = ", ".join(shorten(labels.keys[i]) + text_of(labels, i) for i in shown)
    return (
        f" Similar: {listed}."
        if shown
        else f" Labels have names such as {shorten(labels.keys[0])}{text_of(labels, 0)}."
    )


def text_of(labels: Labels, label: int) -> str:
    """` (text)` if the label has a text that does not begin with its key, else nothing."""
    if labels.texts is None or labels.texts[label].startswith(labels.keys[label]):
        return ""
    return f" ({shorten(labels.texts[label])[1:-1]})"
