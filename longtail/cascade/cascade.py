"""The one cascade: an encoder and levels from coarse to fine, as the training loop sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from longtail.cascade.joins import Join, PathJoin
from longtail.cascade.mixing import Mixing
from longtail.encoders.encoder import Encoder
from longtail.encoders.export import Exported
from longtail.encoders.held import Held
from longtail.encoders.table import Table
from longtail.labels.tree import LabelTree
from longtail.scoring.candidates import Below, Scored, nodes_at
from longtail.scoring.level import Level, numbers
from longtail.scoring.points import Points
from longtail.scoring.targets import Targets, Truth
from longtail.train.learner import Figures, Learner
from longtail.train.phase import Phase, Structure


class Cascade(Learner):
    """Levels 0, …, T − 1 over one encoder; level T − 1, the last that any phase trains, is that of the labels.

    A recipe's phases build what they train: `set_tree` uses clusters of labels, `set_level` puts classifiers in
    place. `join` says how the scores of levels become one in prediction.
    """

    encoder: Any  # an `Encoder`; recipes know of which kind
    label_known: Tensor  # (L,): whether a label has a text with known words

    def __init__(
        self,
        points: Points,
        encoder: Encoder,
        phases: Sequence[Phase],
        seed: int = 0,
        mixing: Mixing | None = None,
        about: dict[str, Any] | None = None,
    ):
        super().__init__()
        self.data, self.encoder, self.phases, self.points = points, encoder, phases, len(points)
        self.seed, self.mixing = seed, mixing
        self.depth = 1 + max((t for phase in phases for t in phase.levels), default=0)  # T
        self.join: Join = PathJoin()
        self.about = dict(about or {})  # for the model to record, as where vectors come from
        self.memo: dict[str, Any] = {}  # what a recipe computes once and needs in several phases
        self.tree: LabelTree | None = None
        self.tokens = Held(points.tokens)
        self.label_tokens = None if points.label_tokens is None else Held(points.label_tokens)
        if points.label_rows is not None:
            self.register_buffer("label_known", torch.from_numpy(points.label_known()), persistent=False)  # (L,)
        self.levels = nn.ModuleDict()
        self._targets = nn.ModuleDict({self._key(self.depth - 1): Targets(points.Y)})
        self._costs = nn.ModuleDict()
        self._ignored = nn.ModuleDict()
        if points.ignore is not None:
            self._ignored[self._key(self.depth - 1)] = Targets(points.ignore)

    @staticmethod
    def _key(t: int) -> str:
        return str(t)

    # --- what phases build

    def set_tree(self, structure: Structure) -> LabelTree:
        """Use the tree of a structure (see `tree_structure`): its clusters become targets of the levels above.

        A cluster all of whose labels are ignored for a point is ignored too.
        """
        self.tree = tree = tree_of(structure)
        if len(tree.levels) != self.depth:
            raise ValueError(f"a tree of {len(tree.levels)} levels for a cascade of {self.depth}")
        for t in range(self.depth - 1):
            self._targets[self._key(t)] = Targets(tree.targets(self.data.Y, t))
            self.register_buffer(f"above{t}", torch.from_numpy(tree.nodes(t)), persistent=False)  # (L,)
            if self.data.ignore is not None:
                self._ignored[self._key(t)] = Targets(tree.all_of(self.data.ignore, t))
        return tree

    def set_costs(self, t: int, costs: sp.csr_matrix) -> None:
        """What the loss of true pairs of level t is multiplied by: (N, K_t), entries where the targets have them."""
        self._costs[self._key(t)] = Targets(costs)

    def set_level(self, t: int, level: Level) -> None:
        """Use these classifiers for level t, instead of any that it has."""
        self.levels[self._key(t)] = level

    def drop_level(self, t: int) -> None:
        """Delete the classifiers of level t."""
        self.levels.pop(self._key(t))

    def level(self, t: int) -> Level:
        """The classifiers of level t."""
        found = self.levels[self._key(t)]
        if not isinstance(found, Level):
            raise TypeError(f"level {t} is a {type(found).__name__}")
        return found

    def has_level(self, t: int) -> bool:
        """Whether level t has classifiers."""
        return self._key(t) in self.levels

    def below(self, t: int, beam: int) -> Below:
        """Candidates of level t: children of the best `beam` nodes of the level above."""
        return Below(self.known_tree(), t, beam)

    def known_tree(self) -> LabelTree:
        """The tree, which some phase must have set."""
        if self.tree is None:
            raise RuntimeError("there are no clusters yet: a phase must build them first")
        return self.tree

    def size(self, t: int) -> int:
        """K_t, the number of nodes of a level."""
        return self.data.labels if t == self.depth - 1 else len(self.known_tree().levels[t]) - 1

    def bias_of_shares(self, t: int) -> Table:
        """Biases (K_t, 1) begun at the log odds with which a point belongs to each node.

        From zero, the first hundreds of steps would only teach that nearly all nodes are wrong.
        """
        shares = np.asarray(self.targets_of(t).sum(0)).ravel() / self.points
        return log_odds(shares, 0.5 / self.points)

    def bias_of_candidates(self, candidates: int, t: int | None = None) -> Table:
        """Biases (K_t, 1) begun at the log odds with which one of so many candidates of level t is true.

        Without `t`, of labels.
        """
        t = self.depth - 1 if t is None else t
        K, true = self.size(t), self.targets_of(t).sum() / max(self.points, 1)
        return log_odds(np.full(K, true / max(candidates, 1)), 0.5 / K)

    def targets_of(self, t: int) -> sp.csr_matrix:
        """Y^(t) (N, K_t)."""
        return self.data.Y if t == self.depth - 1 else self.known_tree().targets(self.data.Y, t)

    def begun_bias(self, t: int, below: Below | None, at_odds: bool) -> Table:
        """Biases (K_t, 1) begun at the log odds of a node among its candidates, or at 0."""
        if not at_odds:
            return Table.of(np.zeros((self.size(t), 1)))
        return self.bias_of_shares(t) if below is None else self.bias_of_candidates(below.width, t)

    # --- training

    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, Figures]:
        """The losses of the phase's levels, each times its weight, added up; and the recall of shortlists."""
        truths = {t: self.targets(t).of(points) for t in phase.levels}
        ignored = {t: found for t in phase.levels if (found := self.ignored(t, points)) is not None}
        embedded = self.encoder.embed(self.tokens.value.take(points))
        if self.mixing is not None:
            embedded, truths, ignored = self.mixing.apply(self, points, embedded, truths, ignored)
        detached = frozenset(self.level(t).feature for t, share in phase.detached if done < share)
        features = self.encoder.encode(embedded, detached)
        figures: Figures = {}
        loss = torch.zeros((), device=points.device)
        above: Scored | None = None
        for t in phase.levels:
            level = self.level(t)
            listed = level.candidates(points, truths[t], above)
            logits = level.logits(features, listed.nodes)  # (B, C), or (B, K) where all nodes are candidates
            costs = self.costs(t, points)
            if listed.nodes is None and costs is None:
                own = level.loss.of_all(logits, truths[t], ignored.get(t))
            else:
                nodes, counted, targets = listed.nodes, listed.counted, listed.targets
                if nodes is None:
                    nodes = numbers(level.K, logits).expand_as(logits).contiguous()
                    counted = torch.ones_like(logits)
                targets = truths[t].at(nodes) if targets is None else targets
                if t in ignored:
                    counted = ignored[t].at(nodes).eq_(0).mul_(counted)
                if costs is not None:
                    counted = counted * torch.where(targets > 0, costs.at(nodes), 1.0)
                own = level.loss(logits, targets, counted)
            if listed.recall is not None:
                figures[self.recall_name(t)] = listed.recall
            loss = loss + level.weight * own
            above = Scored(listed.nodes, logits, truths[t])
        return loss, figures

    def recall_name(self, t: int) -> str:
        """The name of a level's shortlist recall among the figures; that of the labels has no number."""
        return "shortlist recall" if t == self.depth - 1 else f"shortlist recall of level {t}"

    def targets(self, t: int) -> Targets:
        """Y on level t."""
        found = self._targets[self._key(t)]
        if not isinstance(found, Targets):
            raise TypeError(f"the targets of level {t} are a {type(found).__name__}")
        return found

    def ignored(self, t: int, points: Tensor) -> Truth | None:
        """The pairs of points and nodes of level t that count neither way; None if the corpus has no such pairs."""
        if self._key(t) not in self._ignored:
            return None
        found: Truth = self._ignored[self._key(t)].of(points)  # type: ignore[operator]
        return found

    def costs(self, t: int, points: Tensor) -> Truth | None:
        """What the loss of true pairs of level t is multiplied by; None: all alike."""
        if self._key(t) not in self._costs:
            return None
        found: Truth = self._costs[self._key(t)].of(points)  # type: ignore[operator]
        return found

    def nodes_of(self, labels: Tensor, t: int) -> Tensor:
        """The node of level t that each label belongs to: the label itself on the last level."""
        return labels if t == self.depth - 1 else self.get_buffer(f"above{t}")[labels]

    # --- between phases

    @property
    def device(self) -> torch.device:
        """The device that the training points are on."""
        return next(iter(self.tokens.buffers())).device

    def blocks(self) -> Iterator[Tensor]:
        """The numbers of all training points, some at a time."""
        yield from torch.arange(self.points, device=self.device).split(self.encoder.block)

    @torch.no_grad()
    def features(self, name: str, tokens: Any = None) -> NDArray[np.float32]:
        """A feature (N, d) of all training points, or of other texts with these `tokens`."""
        self.eval()
        tokens = self.tokens.value if tokens is None else Held(tokens).to(self.device).value
        blocks = torch.arange(len(tokens), device=self.device).split(self.encoder.block)
        return torch.cat([self.encoder(tokens.take(rows))[name].cpu() for rows in blocks]).float().numpy()

    @torch.no_grad()
    def best_nodes(self, t: int, beam: int) -> NDArray[np.int32]:
        """The `beam` best nodes of level t for each training point (N, beam), padded by −1; best first.

        They are searched as `PathJoin` does in prediction: by the product of σ down the path, from level 0 on.
        """
        self.eval()
        found, tokens = [], self.tokens.value
        for points in self.blocks():
            nodes, scores = self.search(t, self.encoder(tokens.take(points)))
            places = scores.topk(min(beam, scores.shape[1])).indices
            found.append(nodes_at(nodes, places).int())
        return torch.cat(found).cpu().numpy()

    def search(self, t: int, features: dict[str, Tensor]) -> tuple[Tensor | None, Tensor]:
        """The nodes of level t that a search reaches (B, C), and their scores; None: all nodes.

        Scores of level 0 are logits, those below it are logarithms of products.
        """
        nodes, scores = None, self.level(0).logits(features)  # (B, K_0)
        for s in range(1, t + 1):
            below = self.level(s).below()
            if below is None:
                raise RuntimeError(f"level {s} has no candidates with a tree, so that no search can reach it")
            known = functional.logsigmoid(scores) if nodes is None else scores
            places = known.topk(min(below.beam, known.shape[1])).indices  # (B, k)
            nodes = below.below(nodes_at(nodes, places))  # (B, k·W)
            width = nodes.shape[1] // places.shape[1]
            path = known.gather(1, places).repeat_interleave(width, 1)  # (B, k·W)
            scores = functional.logsigmoid(self.level(s).logits(features, nodes)) + path
            scores = scores.masked_fill(nodes < 0, -torch.inf)
        return nodes, scores

    # --- afterwards

    @torch.no_grad()
    def export(self) -> Exported:
        """Encoder, levels and join as arrays: what prediction needs (cascade/served.py)."""
        self.eval()
        encoder, join = self.encoder.export(), self.join.export()
        levels = [self.level(t).export() for t in range(self.depth) if self.has_level(t)]
        if self.join.descends and any("beam" not in level.meta for level in levels[1:]):
            raise RuntimeError("a level below the first needs candidates with a tree, so that prediction can reach it")
        arrays = encoder.under("encoder") | join.under("join")
        for t, level in enumerate(levels):
            arrays |= level.under(f"level{t}")
        return Exported(arrays, {"encoder": encoder.meta, "levels": [lv.meta for lv in levels], "join": join.meta})


def tree_structure(tree: LabelTree) -> Structure:
    """A tree as the arrays of a phase's structure: the order of labels, and the ends of each level's clusters."""
    return {"order": tree.order} | {f"level{t}": ends for t, ends in enumerate(tree.levels[:-1])}


def tree_of(structure: Structure) -> LabelTree:
    """The reverse of `tree_structure`."""
    order = structure["order"]
    ends = [structure[f"level{t}"] for t in range(sum(name.startswith("level") for name in structure))]
    return LabelTree(order, (*ends, np.arange(len(order) + 1)))


def log_odds(shares: NDArray[np.floating[Any]], least: float) -> Table:
    """log(p / (1 − p)) as a table of one column, p held between `least` and a half."""
    p = np.clip(shares, min(least, 0.5), 0.5)
    return Table(torch.from_numpy(np.log(p / (1 - p)).astype(np.float32))[:, None])
