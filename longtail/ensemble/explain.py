"""Which member spoke for a label, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.core.errors import ParameterError, UnsupportedError, shorten
from longtail.core.explanation import Explanation, Reason, Voice
from longtail.core.texts import Texts

if TYPE_CHECKING:
    from longtail.core.model import Inputs
    from longtail.ensemble.model import EnsembleModel, Part


def explain(ensemble: EnsembleModel, x: Any, k: int | None, labels: Sequence[str] | None) -> Explanation:
    """For each label that is suggested for one point (or each of `labels`): every member's share, rank and score.

    The words come from the member of the largest share among those that can explain.
    """
    points = ensemble.check_inputs([x] if isinstance(x, str) else x)
    if (len(points) if isinstance(points, Texts) else points.shape[0]) != 1:
        raise ParameterError(f"explain takes one point at a time; got {shorten(x)}")
    ranking = ensemble.predict(points, len(ensemble.labels) if labels is not None else k, cut_off=labels is None)
    scores = dict(zip(ranking.indices[0].tolist(), ranking.scores[0].tolist(), strict=True))
    scores.pop(-1, None)
    wanted = list(scores) if labels is None else [ensemble.labels.index(key) for key in labels]
    candidates = ensemble.candidates(points)
    shares = ensemble.fuser.shares(candidates, ensemble.labels)
    place = {int(label): at for at, label in enumerate(candidates.labels)}
    reasons: list[Reason] = []
    terms: dict[str, float] = {}
    for label in wanted:
        at = place.get(label)
        voices = []
        for m, part in enumerate(ensemble.parts):
            named = at is not None and bool(candidates.named[at, m])
            voices.append(
                Voice(
                    part.name,
                    float(shares[at, m]) if at is not None else 0.0,
                    int(candidates.ranks[at, m]) + 1 if named else None,
                    float(candidates.scores[at, m]) if named else None,
                )
            )
        paths, found = reasons_of(ensemble, voices, points, label)
        terms |= dict(found)
        text = None if ensemble.labels.texts is None else ensemble.labels.texts[label]
        score = scores.get(label, 0.0)
        reasons.append(Reason(ensemble.labels.keys[label], text, score, paths, tuple(voices)))
    text = points[0] if isinstance(points, Texts) else None
    return Explanation(ensemble.recipe.name, text, ranking.kind, tuple(terms.items()), tuple(reasons))


def reasons_of(ensemble: EnsembleModel, voices: list[Voice], point: Inputs, label: int) -> tuple[Any, Any]:
    """The paths and terms of the member that says most of a label and can explain; `voices` then names it."""
    by_share = sorted(range(len(voices)), key=lambda m: -voices[m].share)
    for m in by_share:
        part = ensemble.parts[m]
        own = label_of(part, label)
        if own is None:
            continue
        try:
            found = part.model.explain(point[0] if isinstance(point, Texts) else point, labels=[own])
        except UnsupportedError:
            continue
        voices[m] = Voice(**{**vars(voices[m]), "explains": True})
        return found.reasons[0].paths, found.terms
    return (), ()


def label_of(part: Part, label: int) -> str | None:
    """The key that a label of the ensemble has in a member; None if the member does not have it."""
    if part.columns is None:
        return part.model.labels.keys[label]
    at = np.flatnonzero(part.columns == label)
    return part.model.labels.keys[int(at[0])] if len(at) else None
