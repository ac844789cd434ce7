"""The one dual network: an encoder, two heads, a table of classifiers, and how a batch is compared with a pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.dual.heads import Head, unit_rows
from longtail.dual.pool import Drawn, Pool, draw_pools, whole_pool
from longtail.encoders.encoder import Encoder
from longtail.encoders.export import Exported
from longtail.encoders.held import Held
from longtail.encoders.table import Table
from longtail.scoring.chunked import ChunkedLoss
from longtail.scoring.losses import PoolLoss
from longtail.scoring.points import Points
from longtail.scoring.targets import Targets, Truth
from longtail.train.learner import Figures, Learner
from longtail.train.phase import Phase
from longtail.train.processes import distinct, of_all, own_share

BLOCK = 4096  # texts encoded at a time, outside of training steps
DE, CLF = 0, 1  # the comparisons, as phases name them in `levels`
NAMES = ("DE", "CLF")


class Draws(NamedTuple):
    """What the pool of a step is made of: β positives and η mined negatives of each query, or all labels.

    The pool of the classifiers has `extra` positives more (β_C).
    """

    positives: int
    negatives: int = 0
    extra: int = 0
    all_labels: bool = False


class Reservoir(NamedTuple):
    """Mined negatives of all points (N, R), padded by −1."""

    labels: Tensor


@dataclass(frozen=True)
class Contrast:
    """How one head compares queries with the labels of a pool.

    The loss is `forth` · (each query against all labels) + (1 − `forth`) · (each label against all queries), times
    `weight`. Scores are divided by `temperature`. With `one_positive` only the positives drawn for a query count as
    true; its other true labels in the pool are then negatives, or left out of all sums (`others_left_out`). A chunked
    loss has no way back: `forth` must be 1.
    """

    loss: PoolLoss | ChunkedLoss
    weight: float = 1.0
    forth: float = 0.5
    temperature: float = 0.05
    one_positive: bool = False
    others_left_out: bool = True

    def __call__(self, queries: Tensor, labels: Tensor, pool: Pool) -> Tensor:
        """The loss, a scalar, of queries (B, d) and the labels of the pool (P, d); 0 if the pool is empty.

        Always in float32: scores over a temperature differ by less than bfloat16 can tell apart.
        """
        truth, ignored = self.pairs(pool)
        with torch.autocast(queries.device.type, enabled=False):
            queries, labels = queries.float(), labels.float()
            if not len(pool.labels):  # no query of the batch has a label, and nothing is mined
                return 0 * (queries.sum() + labels.sum())
            if isinstance(self.loss, ChunkedLoss):
                return self.weight * self.loss.of_vectors(queries, labels, truth, ignored, self.temperature)
            logits = (queries / self.temperature) @ labels.T  # (B, P)
            return self.weight * self.loss.both_ways(logits, truth, ignored, self.forth)

    def pairs(self, pool: Pool) -> tuple[Truth, Truth | None]:
        """The pairs that count as true, and those that are left out."""
        if not self.one_positive:
            return pool.truth, pool.ignored
        others = pool.truth.without(pool.sampled).with_pairs(pool.ignored)
        return pool.sampled, others if self.others_left_out else pool.ignored


class Dual(Learner):
    """Φ_D = norm(g1(Φ(·))) of texts and label texts, Φ_C = g2(Φ(·)) of texts, and Ψ (L, d), one row for each label.

    A phase names the comparisons that it trains by its `levels`: 0 is DE (texts with label texts), 1 is CLF (texts with
    rows of Ψ). `set_negatives` uses what was mined.
    """

    encoder: Encoder
    clusters: NDArray[np.integer[Any]]  # (N,): batches go through one cluster of points after another

    def __init__(
        self,
        points: Points,
        encoder: Encoder,
        heads: Sequence[Head],
        comparisons: Sequence[Contrast],
        phases: Sequence[Phase],
        draws: Draws,
        seed: int = 0,
        about: dict[str, Any] | None = None,
    ):
        super().__init__()
        if points.label_tokens is None:
            raise RuntimeError("a dual encoder needs label texts; its recipe should have refused the corpus")
        self.data, self.encoder, self.heads = points, encoder, nn.ModuleList(heads)
        self.comparisons, self.phases, self.points = tuple(comparisons), phases, len(points)
        self.draws, self.seed, self.about = draws, seed, dict(about or {})
        self.tokens, self.label_tokens = Held(points.tokens), Held(points.label_tokens)
        self.targets = Targets(points.Y)
        self.ignored = None if points.ignore is None else Targets(points.ignore)
        self.reservoir: Held[Reservoir] | None = None
        self.kept: Tensor | None = None  # Φ (N, D) of all points, in a phase that freezes the encoder
        self.clusters = np.zeros(self.points, np.int32)

    def head(self, number: int) -> Head:
        """g1 (DE) or g2 (CLF)."""
        found = self.heads[number]
        if not isinstance(found, Head):
            raise TypeError(f"head {number} is a {type(found).__name__}")
        return found

    # --- what phases build

    def set_negatives(self, mined: NDArray[np.int32] | None) -> None:
        """Take up the reservoir of mined negatives (N, R)."""
        self.reservoir = None if mined is None else Held(Reservoir(torch.from_numpy(np.array(mined))))

    def set_table(self, rows: NDArray[np.float32]) -> None:
        """Let Ψ begin at these rows (L, d)."""
        self.table = Table.of(rows)

    # --- training

    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, Figures]:
        """The comparisons of the phase, added up, over the pool of this batch (B,).

        Several processes encode a part of the texts and labels each and exchange the vectors, so the pool and the loss
        are those of all of them together (train/processes.py).
        """
        batch, drawn = self.batch(points)
        texts = self.features(points)
        labels = self.encoded(self.label_tokens.value, own_share(drawn.texts.labels)) if DE in phase.levels else None
        return self.loss(texts, labels, drawn, phase, len(batch))

    def batch(self, points: Tensor) -> tuple[Tensor, Drawn]:
        """The points of all processes (B,) and their pools, the same for each of them."""
        everyone = of_all(points)
        everyone = everyone[: distinct(everyone)]
        truth: Truth = self.targets.of(everyone)
        ignored = None if self.ignored is None else self.ignored.of(everyone)
        mined = None if self.reservoir is None else self.reservoir.value.labels[everyone]
        positives, negatives, extra, all_labels = self.draws
        if all_labels:
            return everyone, whole_pool(truth, ignored, positives)
        return everyone, draw_pools(truth, ignored, mined, positives, negatives, extra)

    def begin(self, phase: Phase) -> None:
        """Encode all training texts where the phase freezes the encoder: its steps then only look them up."""
        names = [*self.tables(), *(name for name, _ in self.named_parameters())]
        frozen = all(phase.group_of(name) is None for name in names if name.startswith("encoder."))
        found = self.text_vectors(nn.Identity()) if frozen else None
        self.kept = None if found is None else torch.from_numpy(found).to(next(self.parameters()).device)

    def features(self, points: Tensor) -> Tensor:
        """Φ (b, D) of training points."""
        return self.encoded(self.tokens.value, points) if self.kept is None else self.kept[points]

    def encoded(self, tokens: Any, rows: Tensor) -> Tensor:
        """Φ (n, D) of some texts."""
        if not len(rows):  # of a pool without labels
            return torch.zeros((0, self.encoder.widths["text"]), device=rows.device)
        text: Tensor = self.encoder(tokens.take(rows))["text"]
        return text

    def chunks(self, points: Tensor, drawn: Drawn, phase: Phase, size: int) -> list[tuple[Callable[[], Tensor], int]]:
        """What this process encodes in a step, `size` texts at a time: how, and 0 (texts) or 1 (labels).

        For `train.step.GradCached`, which encodes one after the other.
        """
        parts: list[tuple[Callable[[], Tensor], int]]
        parts = [(partial(self.features, rows), 0) for rows in points.split(size)]
        if DE in phase.levels:
            labels, tokens = own_share(drawn.texts.labels), self.label_tokens.value
            parts += [(partial(self.encoded, tokens, rows), 1) for rows in labels.split(size)]
        return parts

    def loss(
        self, texts: Tensor, label_texts: Tensor | None, drawn: Drawn, phase: Phase, queries: int
    ) -> tuple[Tensor, Figures]:
        """The losses of the phase's comparisons, added up, and each for itself.

        `texts` and `label_texts` are Φ of this process's queries and labels (b, D); all together there are `queries`.
        """
        total = torch.zeros((), device=texts.device)
        figures: Figures = {"labels in the pool": torch.tensor(float(len(drawn.texts.labels)))}
        for number in phase.levels:
            head, pool = self.head(number), drawn[number]
            if number == DE and label_texts is not None:
                labels = of_all(head(label_texts), len(pool.labels))  # Φ_D(z) (P, d)
            else:
                labels = self.classifiers(pool.labels)  # Ψ (P, d)
            own = self.comparisons[number](of_all(head(texts), queries), labels, pool)
            total, figures[f"loss of {NAMES[number]}"] = total + own, own.detach()
        return total, figures

    def classifiers(self, labels: Tensor) -> Tensor:
        """The rows of Ψ (P, d), of unit length if Φ_C is."""
        rows = self.table.whole() if self.draws.all_labels else self.table.rows(labels)
        return unit_rows(rows) if self.head(CLF).unit else rows

    # --- between phases, and afterwards

    @torch.no_grad()
    def text_vectors(self, head: nn.Module) -> NDArray[np.float32]:
        """The vectors (N, d) that a head gives the training points."""
        return self._vectors(self.tokens.value, self.points, head)

    @torch.no_grad()
    def label_vectors(self, head: nn.Module) -> NDArray[np.float32]:
        """The vectors (L, d) that a head gives the label texts."""
        return self._vectors(self.label_tokens.value, self.data.labels, head)

    @torch.no_grad()
    def export(self) -> tuple[Exported, NDArray[np.float32]]:
        """Encoder and heads as arrays (dual/served.py), and the vectors of all labels (L, d · heads)."""
        self.eval()
        encoder = self.encoder.export()
        heads = [self.head(number).export() for number in range(len(self.heads))]
        arrays = encoder.under("encoder")
        for number, head in enumerate(heads):
            arrays |= head.under(f"head{number}")
        meta = {"encoder": encoder.meta, "heads": [head.meta for head in heads]}
        vectors = [self.label_vectors(self.head(DE))]
        vectors[0][~self.data.label_known()] = 0  # a text without known tokens says nothing
        if len(heads) > CLF:
            rows = self.table.weight
            rows = unit_rows(rows) if self.head(CLF).unit else rows
            vectors.append(rows.cpu().numpy())
        return Exported(arrays, meta), np.concatenate(vectors, axis=1)

    def _vectors(self, tokens: Any, count: int, head: nn.Module) -> NDArray[np.float32]:
        self.eval()
        device = next(self.parameters()).device
        blocks = torch.arange(count, device=device).split(BLOCK)
        found = [head(self.encoder(tokens.take(block))["text"]).float().cpu().numpy() for block in blocks]
        return np.concatenate(found) if found else np.zeros((0, self.head(DE).width), np.float32)
