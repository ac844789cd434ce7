"""An ensemble of models that are trained already; their labels are joined by key."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError, ParameterError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.data.dataset import Dataset
from longtail.ensemble.choose import fuse
from longtail.ensemble.course import table_of_fusing
from longtail.ensemble.fuser import Fuser, Sum
from longtail.ensemble.heard import Heard
from longtail.ensemble.members import Member, Members
from longtail.ensemble.model import EnsembleModel, Part, candidates_of
from longtail.train.recipe import TrainedRecipe

if TYPE_CHECKING:
    from longtail.recipes.ensemble import Ensemble

log = logging.getLogger("longtail")


def join_models(
    models: Sequence[Model],
    recipe: Ensemble,
    weights: str | None = None,
    data: Dataset | None = None,
    keys: Labels | None = None,
    seed: int = 0,
) -> EnsembleModel:
    """An ensemble of these models, fused as `recipe` says; its members are replaced by those of the models.

    `data` are points that no model was trained on, with labels `keys`: on them weights and stack are fitted. Without
    them the models are fused by mean or rank, with equal weights or those given.
    """
    members = members_of(models)
    if data is None and weights is None and recipe.fuse in ("stack", "weights"):
        raise ParameterError(f"fuse={recipe.fuse} is fitted on points with labels: give a corpus (--on) or weights")
    unfitted = data is None and recipe.fuse != "rank"
    recipe = replace(recipe, members=members, weights=weights, fuse="mean" if unfitted else recipe.fuse)
    labels, columns = union_of([model.labels for model in models])
    parts = [
        Part(member.name, with_labels(model, labels) if own is None else model, own)
        for member, model, own in zip(members.each, models, columns, strict=True)
    ]
    about = about_of(models, parts)
    if data is None:
        each = recipe.given_weights(len(parts)) or (1.0,) * len(parts)
        fuser: Fuser = Sum(each, "rank" if recipe.fuse == "rank" else "score")
    else:
        check_unseen(models, members, data)
        heard = heard_of(parts, labels, data, keys, recipe, seed)
        best, tried = fuse(heard, recipe.fuse_settings())
        fuser, about["chosen_from"] = best.fuser, table_of_fusing(parts, heard, tried)
        about["validation"] = {
            "source": "given with --on",
            "points": len(data),
            "digest": data.digest(),
            "scores": {name: round(score, 3) for name, score in heard.report(best.values).scores.items()},
        }
    return EnsembleModel(
        recipe.settled(parts, fuser), labels, parts, fuser, recipe.depth, about | {"fused": fuser.told(), "seed": seed}
    )


def members_of(models: Sequence[Model]) -> Members:
    """The models' recipes as members, each with a name of its own."""
    if len(models) < 2:
        raise ParameterError(f"an ensemble is made of at least two models; got {len(models)}")
    found: list[Member] = []
    for model in models:
        recipe = model.recipe
        if not isinstance(recipe, TrainedRecipe) or recipe.chooses_recipes:
            raise UnsupportedError(f"a model of recipe {recipe.name!r} cannot be a member; give its members one by one")
        plain = replace(recipe, calibration="none", cut_off="none")  # members give their scores as they are
        count = sum(member.recipe.name == recipe.name for member in found)
        found.append(Member(recipe.name if not count else f"{recipe.name}-{count + 1}", plain))
    return Members(tuple(found))


def union_of(spaces: Sequence[Labels]) -> tuple[Labels, list[NDArray[np.int32] | None]]:
    """One label space of several, joined by key, and where the labels of each are in it; None where it is the same.

    A label is removed if it is in all spaces that have it. Texts are kept if all spaces have them.
    """
    union = spaces[0]
    if any(labels.has_text != union.has_text for labels in spaces):
        log.warning("some of the models have no label texts: the ensemble has none")
        union = replace(union, texts=None)
    for labels in spaces[1:]:
        at = union.indices(labels.keys)
        new = np.flatnonzero(at < 0)
        if not len(new):
            continue
        texts = None if union.texts is None or labels.texts is None else labels.texts.take(new)
        grown = union.add(labels.keys.take(new), texts)
        counts = np.concatenate([union.counts, labels.counts[new]])
        union = replace(grown, counts=counts, points=max(union.points, labels.points))
    columns = [union.indices(labels.keys).astype(np.int32) for labels in spaces]
    removed = np.ones(len(union), bool)
    for labels, at in zip(spaces, columns, strict=True):
        removed[at] &= np.zeros(len(labels), bool) if labels.removed is None else labels.removed
    union = replace(union, removed=removed if removed.any() else None)
    tell_differences(spaces, union)
    same = [len(at) == len(union) and bool((at == np.arange(len(at))).all()) for at in columns]
    return union, [
        None if one and matches(labels, union) else at for one, labels, at in zip(same, spaces, columns, strict=True)
    ]


def matches(labels: Labels, union: Labels) -> bool:
    """Whether a model can take the union for its own labels: its texts and tombstones are the same."""
    none = np.zeros(len(labels), bool)
    own, other = (none if space.removed is None else space.removed for space in (labels, union))
    return labels.has_text == union.has_text and bool((own == other).all()) and labels.digest() == union.digest()


def tell_differences(spaces: Sequence[Labels], union: Labels) -> None:
    """Log how many labels each model lacks."""
    lacking = [len(union) - len(labels) for labels in spaces]
    if any(lacking):
        shown = ", ".join(f"{count:,} by model {number}" for number, count in enumerate(lacking, 1) if count)
        log.warning(
            "of %s labels together, some are unknown to a model and never named by it: %s", f"{len(union):,}", shown
        )


def with_labels(model: Model, labels: Labels) -> Model:
    """The model with an equal label space, so that it is stored once."""
    made = copy.copy(model)
    made.labels = labels
    return made


def about_of(models: Sequence[Model], parts: Sequence[Part]) -> dict[str, Any]:
    """What the ensemble tells of its members, and the data that they all were trained on."""
    trained_on = list(dict.fromkeys(digest for model in models for digest in model.about.get("trained_on", [])))
    corpora = [model.about.get("corpus", {}) for model in models]
    own = corpora[0] if all(corpus == corpora[0] for corpus in corpora) else {}
    members = [
        {"name": part.name, "recipe": model.recipe.name, "seconds": model.about.get("seconds", 0.0)}
        for part, model in zip(parts, models, strict=True)
    ]
    seconds = round(sum(float(member["seconds"]) for member in members), 3)
    return {"corpus": own, "trained_on": trained_on, "members": members, "seconds": seconds}


def check_unseen(models: Sequence[Model], members: Members, data: Dataset) -> None:
    """Refuse points that a model was trained on, and say so where a model does not tell."""
    digest = data.digest_of_points()
    for model, member in zip(models, members.each, strict=True):
        if digest in model.about.get("trained_on", []):
            raise DataError(
                f"the model {member.name!r} was trained on these points: it knows them better than new texts",
                fix="give points that no model has seen, with --on and --part",
            )
        if "trained_on" not in model.about:
            log.warning(
                "the model %s does not tell what it was trained on; weights are right only for unseen points",
                member.name,
            )


def heard_of(
    parts: Sequence[Part], labels: Labels, data: Dataset, keys: Labels | None, recipe: Ensemble, seed: int
) -> Heard:
    """What the members say of the points, with the labels of the points joined by key."""
    if keys is not None:
        at = labels.indices(keys.keys).astype(np.int64)
        unknown = int((at < 0).sum())
        if unknown:
            log.warning("%s label(s) of the corpus are unknown to all models", f"{unknown:,}")
        data = data.with_labels(at, len(labels))
    elif data.Y.shape[1] != len(labels):
        raise DataError(f"labels of shape {data.Y.shape} do not fit {len(labels):,} labels of the ensemble")
    if not len(data):
        raise DataError("there are no points to fit the ensemble on")
    for part in parts:
        part.model.check_inputs(data.x[:1])
    return Heard.of(candidates_of(parts, cast(Any, data.x), labels, recipe.depth), data, labels, seed)
