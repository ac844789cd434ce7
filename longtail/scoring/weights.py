"""Where the weight vectors of labels come from: free rows, label texts, a label graph, or a mixture of these.

| class | weights of label l | system |
| --- | --- | --- |
| `Free` | w_l, a row of its own | Astec, InceptionXML |
| `FromText` | R(E z_l), the label's text through the word table (LTE) | first phases of DECAF |
| `FromGraph` | R(Σ_m Ĝ_lm E z_m), the texts of its neighbours (GALE) | ECLARE |
| `Gated` | σ(α) ⊙ text + σ(β) ⊙ w_l | DECAF |
| `Blended` | Σ_i a_i part_i, the a_i by attention | ECLARE, InceptionXML-LF |

Each computes the rows that a step needs and no others: `rows(labels (U,)) → (U, d)`. Weights made from texts are
functions of rows of the word table, so their gradients also train word vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from longtail.encoders.bag import Bags, bag_vectors
from longtail.encoders.held import Held
from longtail.encoders.residual import Form, Residual
from longtail.encoders.sums import WeightedSums
from longtail.encoders.table import Table, compact


class LabelWeights(nn.Module, ABC):
    """Base class: weight vectors of K labels or clusters."""

    width: int  # d

    @abstractmethod
    def rows(self, labels: Tensor) -> Tensor:
        """The weights (U, d) of labels (U,). No label may be given twice."""

    @torch.no_grad()
    def all_rows(self, K: int, block: int = 8192) -> Tensor:
        """The weights of all labels (K, d), computed in blocks: what prediction needs."""
        device = next((tensor.device for tensor in self.state_dict().values()), torch.device("cpu"))
        numbers = torch.arange(K, device=device).split(block)
        return torch.cat([self.rows(part).float() for part in numbers]) if K else torch.zeros(0, self.width)


class Free(LabelWeights):
    """w_l: a row of its own for each label."""

    def __init__(self, table: Table):
        super().__init__()
        self.table, self.width = table, table.width

    def rows(self, labels: Tensor) -> Tensor:
        return self.table.rows(labels)


class FromText(LabelWeights):
    """R(E z_l): the label's text through the word table E and a residual block of its own (LTE)."""

    def __init__(self, E: Table, texts: Bags, form: Form, dropout: float = 0.0):
        super().__init__()
        self.words = [E]  # in a list: the table belongs to the encoder and must not be saved twice
        self.texts, self.width = Held(texts), E.width
        self.residual, self.dropout = Residual(E.width, form), nn.Dropout(dropout)
        self._frozen: Tensor | None = None  # E z of all labels, while word vectors do not change

    def rows(self, labels: Tensor) -> Tensor:
        return self.residual(self.dropout(self.vectors(labels)))

    def vectors(self, labels: Tensor) -> Tensor:
        """E z_l (U, D). While E is frozen, they are computed once for all labels."""
        if self.words[0].trainable:
            self._frozen = None
            return self.summed(labels)
        if self._frozen is None or self._frozen.device != labels.device:
            with torch.no_grad():
                self._frozen = self.summed(torch.arange(len(self.texts.value), device=labels.device))
        return self._frozen[labels]

    def summed(self, labels: Tensor) -> Tensor:
        """E z_l (U, D): the word vectors of each text, added up by their TF-IDF weights."""
        return bag_vectors(self.words[0], self.texts.value.take(labels))


class FromGraph(FromText):
    """R(Σ_m Ĝ_lm E z_m): the texts of a label's neighbours (GALE).

    Texts are summed first, then neighbours: the rows of Ĝ·Z have many times the entries of Ĝ and Z together.
    """

    def __init__(self, E: Table, texts: Bags, graph: Bags, form: Form, dropout: float = 0.0):
        super().__init__(E, texts, form, dropout)
        self.graph = Held(graph)  # Ĝ (K, K), each row a bag of labels

    def summed(self, labels: Tensor) -> Tensor:
        """Σ_m Ĝ_lm E z_m (U, D)."""
        around = self.graph.value.take(labels)
        neighbours, at = compact(around.words, around.vocabulary)
        vectors = bag_vectors(self.words[0], self.texts.value.take(neighbours))
        summed: Tensor = WeightedSums.apply(vectors, at, around.ptr, around.weights)  # type: ignore[no-untyped-call]
        return summed


class Gated(LabelWeights):
    """σ(α) ⊙ text + σ(β) ⊙ w_l, with α, β (d,) learnt (DECAF)."""

    def __init__(self, text: LabelWeights, free: LabelWeights):
        super().__init__()
        self.text, self.free, self.width = text, free, free.width
        self.alpha, self.beta = nn.Parameter(torch.zeros(free.width)), nn.Parameter(torch.zeros(free.width))

    def rows(self, labels: Tensor) -> Tensor:
        return torch.sigmoid(self.alpha) * self.text.rows(labels) + torch.sigmoid(self.beta) * self.free.rows(labels)


class Blended(LabelWeights):
    """Σ_i a_i part_i with a = softmax(T·[P part_1, …, P part_n]), P bounded by its spectral norm (ECLARE).

    The parts are text, graph and (except in first phases) w_l. T and P are multiplied first, and the parts are never
    stacked: T and P are a few rows, and labels are many. The ReLU and dropout that the authors' code has between P and
    T are left out for this reason.
    """

    def __init__(self, parts: dict[str, LabelWeights]):
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.width = d = next(iter(parts.values())).width
        self.project = spectral_norm(nn.Linear(d, d, bias=False))
        self.attend = nn.Linear(len(parts) * d, len(parts))

    def rows(self, labels: Tensor) -> Tensor:
        parts = [part.rows(labels) for part in self.parts.values()]  # type: ignore[operator]  # n of (U, d)
        T = self.attend.weight.unflatten(1, (len(parts), -1))  # (n, n, d)
        TP = T @ self.project.weight  # (n, n, d)
        by_part = (functional.linear(part, TP[:, i]) for i, part in enumerate(parts))
        attention = sum(by_part, self.attend.bias).softmax(1)  # (U, n)
        rows = attention[:, 0, None] * parts[0]
        for i, part in enumerate(parts[1:], 1):
            rows = torch.addcmul(rows, attention[:, i, None], part)
        return rows  # (U, d)
