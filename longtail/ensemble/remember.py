"""The memories of an ensemble's members: points are remembered and forgotten by all that can."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from longtail.core.errors import UnsupportedError
from longtail.core.texts import Texts

if TYPE_CHECKING:
    from longtail.ensemble.model import EnsembleModel


def first(ensemble: EnsembleModel) -> Any:
    """The first member that can remember points; an error if there is none."""
    for part in ensemble.parts:
        if hasattr(part.model, "remember"):
            return part.model
    names = ", ".join(part.name for part in ensemble.parts)
    raise UnsupportedError(
        f"no member of this ensemble has a memory ({names}); dual encoders have one: unidec, depsl, ngame and others"
    )


def changed(ensemble: EnsembleModel, change: Callable[[Any], Any]) -> EnsembleModel:
    """A copy in which members that can remember are changed so."""
    from longtail.ensemble.model import with_model

    first(ensemble)
    able = (hasattr(part.model, "remember") for part in ensemble.parts)
    parts = [with_model(p, change(p.model)) if yes else p for p, yes in zip(ensemble.parts, able, strict=True)]
    return ensemble.with_parts(parts)


def remember(ensemble: EnsembleModel, texts: Texts, Y: sp.csr_matrix, keys: Iterable[str] | None) -> EnsembleModel:
    """A copy whose members remember these texts with their targets (n, L), each in its own label space."""
    named = None if keys is None else list(keys)
    targets = {
        id(part.model): Y if part.columns is None else chosen(Y, part.columns)
        for part in ensemble.parts
        if hasattr(part.model, "remember")
    }
    return changed(ensemble, lambda model: model.remember(texts, targets[id(model)], named))


def chosen(Y: sp.csr_matrix, columns: Any) -> sp.csr_matrix:
    """The columns of Y that a member's labels are (n, L_m); a label that is none of the ensemble's stays empty."""
    own = Y.tocsc()[:, columns.clip(0)]
    own = own.multiply((columns >= 0)[None, :])
    return sp.csr_matrix(own, dtype=Y.dtype)


def forget(ensemble: EnsembleModel, keys: Iterable[str]) -> tuple[EnsembleModel, int]:
    """A copy without the points of these keys, and how many a member had at most."""
    named, counts = list(keys), [0]

    def without(model: Any) -> Any:
        left, count = model.forget(named)
        counts.append(count)
        return left

    edited = changed(ensemble, without)
    return (edited, max(counts)) if max(counts) else (ensemble, 0)


def with_lookup(ensemble: EnsembleModel, lookup: Any) -> EnsembleModel:
    """A copy whose members count their memories so."""
    return changed(ensemble, lambda model: model.with_lookup(lookup))
