"""Several trained models as one: each names its best labels, and a fuser ranks what they name."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError, ParameterError, StoreError
from longtail.core.explanation import Explanation
from longtail.core.labels import Labels
from longtail.core.model import Inputs, Model
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.core.texts import Texts
from longtail.encoders.export import arrays_under
from longtail.ensemble import edit, remember
from longtail.ensemble.candidates import Candidates, top
from longtail.ensemble.explain import explain
from longtail.ensemble.fuser import Fuser, fusers
from longtail.store import Saved, StoredModel, packed, unpacked

BLOCK = 4096  # points whose candidates are held at a time


@dataclass(frozen=True, eq=False)
class Part:
    """A member of a trained ensemble.

    `columns` (L_m,) says which label of the ensemble each label of the member is; None: they are the same.
    """

    name: str
    model: Model
    columns: NDArray[np.int32] | None = None


class EnsembleModel(StoredModel):
    """Members, what fuses them, and how many labels each names (`depth`)."""

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        parts: Sequence[Part],
        fuser: Fuser,
        depth: int,
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.parts, self.fuser, self.depth = tuple(parts), fuser, depth
        if len({part.model.accepts for part in parts}) != 1:
            accepted = {part.name: part.model.accepts for part in parts}
            raise ParameterError(
                f"members of an ensemble must all take texts, or features of one width; got {accepted}"
            )

    @property
    def accepts(self) -> str | int:
        """ "text", or the number of features: what all members take."""
        return self.parts[0].model.accepts

    def rank(self, x: Inputs, k: int) -> Ranking:
        """The candidates of all members, ranked; labels that no member names follow by their frequency."""
        n = len(x) if isinstance(x, Texts) else x.shape[0]
        found = [self.rank_block(self.candidates(x[first : first + BLOCK]), k) for first in range(0, n, BLOCK)]
        indices, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return filled(Ranking(indices, scores, self.labels, self.fuser.gives))

    def rank_block(self, candidates: Candidates, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best candidates of each point and their values; removed labels are left out, last of all."""
        values = self.fuser.values(candidates, self.labels)
        gone = self.labels.removed
        if gone is None or not gone.any():
            return top(candidates, values, k)
        kept = ~gone[candidates.labels]
        return top(candidates.keep(kept), values[kept], k)

    def candidates(self, x: Inputs) -> Candidates:
        """What the members name for each point, removed labels too."""
        return candidates_of(self.parts, x, self.labels, self.depth)

    def explain(self, x: Any, k: int | None = None, labels: Sequence[str] | None = None) -> Explanation:
        """Which member spoke for each label and how much, and the reasons of members that have some."""
        return explain(self, x, k, labels)

    def edit_labels(self, labels: Labels) -> EnsembleModel:
        """The ensemble over an edited label space; new labels are named by the members that can add them."""
        return edit.edit_labels(self, labels)

    def with_parts(self, parts: Sequence[Part], labels: Labels | None = None) -> EnsembleModel:
        """A copy with other members, over other labels if they are given."""
        model = copy.copy(self)
        model.parts, model.about = tuple(parts), dict(self.about)
        model.labels = self.labels if labels is None else labels
        return model

    # --- the memory of the members that have one (longtail memory)

    @property
    def memory(self) -> Any:
        """What the first member with a memory remembers; None if none does."""
        return remember.first(self).memory

    @property
    def lookup(self) -> Any:
        """How that member counts its memory."""
        return remember.first(self).lookup

    def with_lookup(self, lookup: Any) -> EnsembleModel:
        """A copy whose members count their memories so."""
        return remember.with_lookup(self, lookup)

    def remember(self, texts: Texts, Y: Any, keys: Any = None) -> EnsembleModel:
        """A copy whose members that can also remember these texts with their targets (n, L)."""
        return remember.remember(self, texts, Y, keys)

    def forget(self, keys: Any) -> tuple[EnsembleModel, int]:
        """A copy without the points of these keys in any memory, and how many there were."""
        return remember.forget(self, keys)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All members, each as it would be saved by itself, and the fuser."""
        own, fuser = self.fuser.state()
        arrays = {f"fuser.{name}": array for name, array in own.items()}
        members = []
        for i, part in enumerate(self.parts):
            if not isinstance(part.model, StoredModel):
                raise StoreError(f"member {part.name!r} is a {type(part.model).__name__}, which cannot be saved")
            manifest, stored = packed(part.model, self.labels)
            arrays |= {f"member{i}.{name}": array for name, array in stored.items()}
            if part.columns is not None:
                arrays[f"columns{i}"] = part.columns
            members.append({"name": part.name, **manifest})
        return arrays, {"members": members, "fuser": {"kind": self.fuser.kind, **fuser}, "depth": self.depth}

    @classmethod
    def from_state(cls, saved: Saved) -> EnsembleModel:
        """The ensemble that `state` described, each member with the checks of its own kind."""
        meta, parts = saved.meta, []
        for i, manifest in enumerate(meta["members"]):
            model = unpacked(saved.path, manifest, arrays_under(f"member{i}", saved.arrays), saved.verify, saved.labels)
            parts.append(Part(manifest["name"], model, saved.arrays.get(f"columns{i}")))
            check_columns(parts[-1], len(saved.labels))
        if not parts or meta["fuser"]["kind"] not in fusers or meta["depth"] < 1:
            raise StoreError("its members or what fuses them are missing; the ensemble is damaged: train it again")
        fuser = fusers[meta["fuser"]["kind"]].from_state(arrays_under("fuser", saved.arrays), meta["fuser"], len(parts))
        return cls(saved.recipe, saved.labels, parts, fuser, meta["depth"], saved.about)


def check_columns(part: Part, L: int) -> None:
    """Refuse a member whose labels do not fit those of the ensemble."""
    columns = part.columns
    fits = len(part.model.labels) == L if columns is None else len(columns) == len(part.model.labels)
    if not fits or (columns is not None and ((columns < -1).any() or (columns >= L).any())):
        raise StoreError(f"the labels of member {part.name!r} do not fit those of the ensemble; train it again")


def candidates_of(parts: Sequence[Part], x: Inputs, labels: Labels, depth: int) -> Candidates:
    """What members name for each point, at most `depth` labels each; removed labels too."""
    rankings = [part.model.predict_scores(x, depth) for part in parts]
    if len({len(ranking) for ranking in rankings}) != 1:
        raise DataError("members must rank the same points", found=[len(ranking) for ranking in rankings])
    return Candidates.of(rankings, [part.columns for part in parts], len(labels), depth)


def filled(ranking: Ranking) -> Ranking:
    """With pads replaced by the most frequent labels, with scores below those of all candidates."""
    labels = ranking.labels
    order, shares = labels.most_frequent(2 * ranking.k)
    kept = order >= 0
    return ranking.fill(order[kept], shares[kept] * np.float32(1e-6))


def with_model(part: Part, model: Model) -> Part:
    """The member with another model."""
    return replace(part, model=model)
