"""A trained linear model: one tree of classifiers, or several whose scores are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from longtail.core.explanation import Explanation
from longtail.core.labels import Labels
from longtail.core.model import Inputs
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.linear.blocks import FeatureBlock, blocks_from_state, blocks_state, check_blocks
from longtail.linear.edit import edit_labels
from longtail.linear.explain import explain
from longtail.linear.features import Features
from longtail.linear.ranker import Ranker
from longtail.store import Saved, StoredModel

MORE = 50  # labels each tree of several names beyond k, so that the trees have them in common


class BeamSettings(NamedTuple):
    """How prediction searches a tree."""

    beam: int  # nodes kept at each level
    post: str  # how margins become scores


class LinearModel(StoredModel):
    """Feature blocks, whose columns stand side by side, and the rankers that read them.

    The blocks all read texts, or there is one that reads a given matrix. `search` says how trees are searched; without
    it, the recipe does.
    """

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        blocks: Sequence[FeatureBlock],
        rankers: list[Ranker],
        about: dict[str, Any] | None = None,
        search: BeamSettings | None = None,
    ):
        super().__init__(recipe, labels, about)
        check_blocks(blocks)
        self.own_search = search
        self.blocks, self.rankers, self.width = list(blocks), rankers, rankers[0].width
        if self.width != sum(block.width for block in blocks):
            raise ValueError(f"rankers of {self.width:,} features do not fit the blocks {[b.width for b in blocks]}.")

    @property
    def search(self) -> BeamSettings:
        """How trees are searched."""
        recipe: Any = self.recipe
        return self.own_search or BeamSettings(recipe.beam, recipe.post)

    @property
    def accepts(self) -> str | int:
        """ "text", or the number of columns of the given matrix."""
        return "text" if self.blocks[0].reads == "text" else self.width

    def features(self, x: Inputs) -> Features:
        """The columns of all blocks for N points; the rows of each block have length 1."""
        if len(self.blocks) == 1 and not self.blocks[0].dense:  # saves a single query a tenth of its time
            return Features(self.blocks[0].encode_arrays(x), self.width)
        return Features.of([block.encode(x) for block in self.blocks])

    def rank(self, x: Inputs, k: int) -> Ranking:
        """Beam search in each tree; the mean of the scores."""
        (beam, post), L = self.search, len(self.labels)
        features, k, gone = self.features(x), min(k, L), self.labels.removed
        if len(self.rankers) == 1:
            return Ranking(*self.rankers[0].search(features, k, beam, post, gone), self.labels)
        more = min(k + MORE, L)
        found = (ranker.search(features, more, beam, post, gone) for ranker in self.rankers)
        return Ranking.mean([Ranking(*each, self.labels) for each in found], k)

    def explain(self, x: Any, k: int | None = None, labels: Sequence[str] | None = None) -> Explanation:
        """Why each of the k best labels (or each of `labels`) was suggested: exact, word by word."""
        return explain(self, x, k, labels)

    def edit_labels(self, labels: Labels) -> LinearModel:
        """This model with labels renamed, removed or added; new ones get a place and weights from their texts."""
        return edit_labels(self, labels)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Blocks, trees and weights."""
        arrays, blocks = blocks_state(self.blocks)
        for i, ranker in enumerate(self.rankers):
            arrays |= ranker.state(f"tree{i}")
        levels = [len(ranker.levels) for ranker in self.rankers]
        search = {} if self.own_search is None else {"search": self.own_search._asdict()}
        return arrays, {"levels": levels, "width": self.width, "blocks": blocks, **search}

    @classmethod
    def from_state(cls, saved: Saved) -> LinearModel:
        """The model that `state` described."""
        arrays, meta = saved.arrays, saved.meta
        levels = enumerate(meta["levels"])
        rankers = [Ranker.from_state(arrays, f"tree{i}", count, meta["width"]) for i, count in levels]
        for ranker in rankers:
            ranker.tree.check(len(saved.labels))
        search = BeamSettings(**meta["search"]) if "search" in meta else None
        return cls(saved.recipe, saved.labels, blocks_from_state(arrays, meta), rankers, saved.about, search)
