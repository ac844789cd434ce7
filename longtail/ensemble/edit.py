"""An ensemble over an edited label space: every member that can takes part in the edit."""

from __future__ import annotations

import copy
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longtail.core.editing import about_edit, check_edit
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Model

if TYPE_CHECKING:
    from longtail.ensemble.model import EnsembleModel, Part

log = logging.getLogger("longtail")
MOST = 0.5  # share of removed labels from which on members are told


def edit_labels(ensemble: EnsembleModel, labels: Labels) -> EnsembleModel:
    """The ensemble over `labels`, an edit of its own.

    New labels are added to the members that can add them; the others never name them.
    """
    check_edit(ensemble.labels, labels)
    parts = [edited(part, ensemble.labels, labels) for part in ensemble.parts]
    if len(labels) > len(ensemble.labels):
        both = zip(ensemble.parts, parts, strict=True)
        without = [new.name for old, new in both if len(new.model.labels) == len(old.model.labels)]
        if len(without) == len(parts):
            raise UnsupportedError(
                f"no member of this {ensemble.recipe.name!r} model can add a label ({', '.join(without)}); "
                "train it again with the label"
            )
        if without:
            log.warning("new labels are not known to %s, which cannot add any", ", ".join(without))
    made = ensemble.with_parts(parts, labels)
    made.about = about_edit(ensemble.about, ensemble.labels, labels)
    return made


def edited(part: Part, before: Labels, after: Labels) -> Part:
    """A member over its labels as they are after the edit; with new ones if it can add them."""
    new = len(after) - len(before)
    kept = kept_labels(part, before, after)
    if new:
        texts = None if after.texts is None else after.texts[len(before) :]
        try:
            grown = kept.add(after.keys[len(before) :], texts)
            gone = None if after.removed is None else after.removed[len(before) :]
            if gone is not None and gone.any():
                grown = grown.remove([key for key, one in zip(after.keys[len(before) :], gone, strict=True) if one])
            added = part.model.edit_labels(grown)
        except UnsupportedError:
            columns = np.arange(len(kept), dtype=np.int32) if part.columns is None else part.columns
            return replace(part, model=held(part.model, kept), columns=columns)
        if part.columns is None:
            return replace(part, model=added)
        fresh = np.arange(len(before), len(after), dtype=np.int32)
        return replace(part, model=added, columns=np.concatenate([part.columns, fresh]))
    try:
        return replace(part, model=part.model.edit_labels(kept))
    except UnsupportedError:
        return replace(part, model=held(part.model, kept))


def kept_labels(part: Part, before: Labels, after: Labels) -> Labels:
    """The labels that a member has had, with the names that they have after the edit.

    The ensemble leaves removed labels out of what members name. So the others keep their ranks, by which they are
    fused. Only if most labels are removed are members told of it: they would name too few of the others.
    """
    own = part.model.labels
    at = np.arange(len(own)) if part.columns is None else part.columns
    known = at >= 0
    keys = after.keys.take(np.maximum(at, 0)) if known.all() else own.keys  # labels of the member alone keep theirs
    removed = np.zeros(len(own), bool) if own.removed is None else own.removed.copy()
    gone, was_gone = (none_removed(labels) if labels.removed is None else labels.removed for labels in (after, before))
    if gone.mean() > MOST:
        removed[known] |= gone[at[known]]
    restored = was_gone & ~gone[: len(before)]
    removed[known] &= ~np.append(restored, np.zeros(len(after) - len(before), bool))[at[known]]
    return replace(own, keys=keys, removed=removed if removed.any() else None)


def none_removed(labels: Labels) -> NDArray[np.bool_]:
    """No tombstone for any label (L,)."""
    return np.zeros(len(labels), bool)


def held(model: Model, labels: Labels) -> Model:
    """A copy of a model with other names and tombstones; every scorer honours these."""
    made = copy.copy(model)
    made.labels = labels
    return made
