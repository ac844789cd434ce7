"""Which changes to a trained model's label space are allowed, and the record of them that the model stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.core.errors import ParameterError, shorten
from longtail.core.labels import Labels

EDITED = "edited"  # the record's key in a model's `about`


def check_edit(before: Labels, after: Labels) -> None:
    """Check that `after` is an edit of `before`: labels may be appended, removed (tombstone) or renamed; none moves."""
    L = len(before)
    if len(after) < L:
        raise ParameterError(
            f"an edited label space keeps every label, removed ones as tombstones; got {len(after):,} labels for "
            f"a model of {L:,}: use Labels.remove"
        )
    if (before.texts is None) != (after.texts is None):
        have = "have no" if before.texts is None else "have"
        raise ParameterError(f"the labels of this model {have} texts; so must the edited label space")
    if before.texts is not None and after.texts is not None and before.texts != after.texts[:L]:
        at = next(i for i in range(L) if before.texts[i] != after.texts[i])
        raise ParameterError(
            f"label {shorten(after.keys[at])} has a different text in the model, which was trained on that text; "
            "remove it, and add the new text under another key"
        )
    if not np.array_equal(before.counts, after.counts[:L]):
        raise ParameterError("the training counts of labels cannot be edited: they come from the training set")
    if after.removed is not None and after.removed.all():
        raise ParameterError(f"all {len(after):,} labels would be removed: a model must keep at least one")


def about_edit(about: dict[str, Any], before: Labels, after: Labels) -> dict[str, Any]:
    """Return `about` with a record of edits since training: labels `added`, `renamed` and `removed` (tombstones)."""
    told = about.get(EDITED, {})
    kept = after.keys[: len(before)]
    renamed = 0 if kept == before.keys else sum(a != b for a, b in zip(before.keys, kept, strict=True))
    edited = {
        "added": told.get("added", 0) + len(after) - len(before),
        "removed": 0 if after.removed is None else int(after.removed.sum()),
        "renamed": told.get("renamed", 0) + renamed,
    }
    return {**about, EDITED: edited}
