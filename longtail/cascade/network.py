"""An encoder and a list of levels, as the training loop sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.cascade.candidates import Family, Shortlist, below_parents, with_truth
from longtail.cascade.level import Level
from longtail.cascade.losses import bce, bce_of_all
from longtail.cascade.mixing import LABELS, META, Mixing
from longtail.cascade.targets import Targets, Truth
from longtail.encoders.table import Table
from longtail.labels.tree import LabelTree
from longtail.train.learner import Figures, Learner, Phase, Structure


class Tokens(Protocol):
    """Encoded texts of which some can be taken: `Bags`, or sequences of words."""

    def take(self, rows: Tensor) -> Any: ...

    def __len__(self) -> int: ...


class Encoder(Protocol):
    """Tokens to word vectors to named features. What is in between is where texts are mixed."""

    widths: dict[str, int]

    def embed(self, tokens: Any) -> Any: ...

    def encode(self, embedded: Any) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class Corpus:
    """What a cascade learns from: N points, L labels with their texts if there are any, and pairs to be ignored."""

    tokens: Any  # (N)
    Y: sp.csr_matrix  # (N, L), soft targets in (0, 1]
    ignore: sp.csr_matrix | None = None  # (N, L)
    texts: sp.csr_matrix | None = None  # (L, V): TF-IDF of the label texts
    label_tokens: Any = None  # (L): the label texts as the encoder reads texts
    label_known: Tensor | None = None  # (L,): whether a label has a text at all


def log_odds(shares: NDArray[np.floating[Any]], least: float) -> Table:
    """log(p / (1 − p)) as a table of one column, p held between `least` and a half."""
    p = np.clip(shares, min(least, 0.5), 0.5)
    return Table(torch.from_numpy(np.log(p / (1 - p)).astype(np.float32))[:, None])


class Cascade(Learner):
    """Two levels: clusters of labels, then the labels. Subclasses say what is built before each phase.

    In a phase of both levels, labels are candidates below the clusters that score best (truth first); in a phase of the
    labels alone they come from `static`, a shortlist for each point that was made before.
    """

    def __init__(
        self, corpus: Corpus, encoder: nn.Module, phases: list[Phase], parents: int, mixing: Mixing | None = None
    ):
        super().__init__()
        self.corpus, self.encoder, self.phases, self.points = corpus, encoder, phases, corpus.Y.shape[0]
        self.parents, self.mixing = parents, mixing
        self.levels = nn.ModuleDict()
        self.labels = Targets(corpus.Y)
        self.clusters: Targets | None = None
        self.ignored = nn.ModuleDict()  # targets by level, where there are any
        if corpus.ignore is not None:
            self.ignored[str(LABELS)] = Targets(corpus.ignore)
        self.family: Family | None = None
        self.static: Tensor | None = None  # (N, S), int32, of labels, or of clusters whose labels are meant
        self.tree: LabelTree | None = None

    def _apply(self, fn: Any, recurse: bool = True) -> Cascade:
        """What is no parameter moves to a device with the rest."""
        tokens, texts, known = self.corpus.tokens, self.corpus.label_tokens, self.corpus.label_known
        self.corpus = replace(
            self.corpus,
            tokens=tokens.apply(fn),
            label_tokens=None if texts is None else texts.apply(fn),
            label_known=None if known is None else fn(known),
        )
        self.family = None if self.family is None else self.family.apply(fn)
        self.static = None if self.static is None else fn(self.static)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def set_tree(self, structure: Structure) -> None:
        """Take up the tree of a structure: targets of its clusters, and who stands below whom.

        A cluster all of whose labels are ignored is ignored too: of clusters of one label, those of ignored pairs.
        """
        self.tree = LabelTree(structure["order"], (structure["clusters"], np.arange(len(structure["order"]) + 1)))
        self.clusters = Targets(self.tree.targets(self.corpus.Y, META))
        if self.corpus.ignore is not None:
            ignored = self.tree.counts(self.corpus.ignore, META)
            ignored.data = (ignored.data == np.diff(self.tree.levels[META])[ignored.indices]).astype(np.float32)
            ignored.eliminate_zeros()
            self.ignored[str(META)] = Targets(ignored)
        self.family = Family.of(self.tree, LABELS)

    def cluster_bias(self) -> Table:
        """The log odds (K, 1) with which a point belongs to a cluster.

        From zero, the first hundreds of steps would go into learning that nearly all clusters are wrong.
        """
        if self.tree is None:
            raise RuntimeError("there are no clusters yet")
        shares = np.asarray(self.tree.targets(self.corpus.Y, META).sum(0)).ravel() / self.points
        return log_odds(shares, 0.5 / self.points)

    def label_bias(self, candidates: int) -> Table:
        """The log odds (L, 1) with which one of so many candidates is true: the same for every label."""
        L, true = self.corpus.Y.shape[1], self.corpus.Y.sum() / max(self.points, 1)
        return log_odds(np.full(L, true / max(candidates, 1)), 0.5 / L)

    def set_level(self, t: int, level: Level) -> None:
        """Put a level in its place."""
        self.levels[str(t)] = level

    def level(self, t: int) -> Level:
        """Of clusters (META) or of labels."""
        found = self.levels[str(t)]
        if not isinstance(found, Level):
            raise TypeError(f"level {t} is a {type(found).__name__}")
        return found

    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, Figures]:
        """The losses of the phase's levels, added up."""
        truths = {t: self.targets(t).of(points) for t in phase.levels}
        ignored = {t: found for t in phase.levels if (found := self.ignored_of(t, points)) is not None}
        embedded = self.encoder.embed(self.corpus.tokens.take(points))  # type: ignore[operator]
        if self.mixing is not None:
            embedded, truths, ignored = self.mixing.apply(self, points, embedded, truths, ignored)
        features = self.encoder.encode(embedded)  # type: ignore[operator]
        figures: Figures = {}
        loss = torch.zeros((), device=points.device)
        logits = None
        for t in phase.levels:
            if t == META:
                logits = self.level(META).logits(features)  # (B, K)
                loss = loss + bce_of_all(logits, truths[META], ignored.get(META))
                continue
            shortlist = self.shortlist(points, truths, logits)
            figures["shortlist recall"] = shortlist.recall
            loss = loss + self.label_loss(features, shortlist, truths[LABELS], ignored.get(LABELS))
        return loss, figures

    def label_loss(
        self, features: dict[str, Tensor], shortlist: Shortlist, truth: Truth, ignored: Truth | None
    ) -> Tensor:
        """Of the candidates; an ignored pair counts neither way."""
        candidates, counted, targets = shortlist.candidates, shortlist.counted, shortlist.targets
        if targets is None:
            targets = truth.at(candidates)
        if ignored is not None:
            counted = ignored.at(candidates).eq_(0).mul_(counted)
        return bce(self.level(LABELS).logits(features, candidates), targets, counted)

    def shortlist(self, points: Tensor, truths: dict[int, Truth], logits: Tensor | None) -> Shortlist:
        """The labels that points are trained on."""
        if logits is None:
            return with_truth(self.static_labels(points), truths[LABELS])
        if self.family is None:
            raise RuntimeError("a phase of two levels needs a tree")
        return below_parents(logits, truths[META], truths[LABELS], self.family, self.parents)

    def static_labels(self, points: Tensor) -> Tensor:
        """The shortlists (B, S) of points that were made beforehand; here those below some clusters."""
        if self.static is None or self.family is None:
            raise RuntimeError("a phase of labels alone needs a shortlist made beforehand")
        return self.family.children[self.static[points].long()].flatten(1)

    def parent_of(self, labels: Tensor) -> Tensor:
        """The cluster of each label."""
        if self.family is None:
            raise RuntimeError("there are no clusters yet")
        return self.family.parent[labels]

    def targets(self, t: int) -> Targets:
        """Y on a level."""
        found = self.clusters if t == META else self.labels
        if found is None:
            raise RuntimeError("there are no clusters yet")
        return found

    def ignored_of(self, t: int, points: Tensor) -> Truth | None:
        """The pairs of points and nodes of a level that count neither way; None where no pair of the corpus is such."""
        if str(t) not in self.ignored:
            return None
        found: Truth = self.ignored[str(t)].of(points)  # type: ignore[operator]
        return found

    def level_arrays(self, t: int, name: str) -> dict[str, Any]:
        """The weights and biases of a level, as prediction reads them."""
        level = self.level(t)
        bias = np.zeros(level.K, np.float32) if level.bias is None else level.bias.weight.cpu().numpy()[:, 0]
        return {f"{name}.weights": level.weights.all_rows(level.K).cpu().numpy(), f"{name}.bias": bias}


def cluster(Z: Any, clusters: int, seed: int) -> LabelTree:
    """Labels with vectors Z (L, d) in so many balanced clusters; each is one of its own where they are not more."""
    L = Z.shape[0]
    if clusters >= L:
        return LabelTree(np.arange(L, dtype=np.int32), (np.arange(L + 1), np.arange(L + 1)))
    return LabelTree.in_clusters(sp.csr_matrix(Z), clusters, seed)


def tree_arrays(tree: LabelTree) -> Structure:
    """A tree of one level of clusters as a structure; see `Cascade.set_tree`."""
    return {"order": tree.order, "clusters": tree.levels[META]}
