"""Settings that make a recipe fast enough for the tiny corpora, if its defaults are not.

A recipe may bring its own as two presets: "contract", which learns the corpora, and "contract-brief", what else to set
where it only matters whether two trainings are the same. Without them, they follow from what kind of network it is.
"""

from __future__ import annotations

from typing import Any

from longtail.contract.encoder import tiny_encoder
from longtail.core.recipe import Recipe

OWN, OWN_BRIEF = "contract", "contract-brief"  # names of presets

PLAIN = {"reader": "words", "vectors": "learnt"}  # the small presets need an installed encoder
SHORT = {"dimension": 64, "min_steps": 60}  # of networks: enough to learn labels that have points
SHORTER = {**SHORT, "min_steps": 5}  # enough to see whether two trainings are the same
# for a very small transformer
TINY: dict[str, Any] = {"length": 16, "batch": 32, "min_steps": 80, "lr": 2e-3, "table_lr": 0.05, "warmup": 5}
TINY |= {"tapped": 3, "dropout": 0.0, "dropouts": "0:0:0"}
ATTENDED: dict[str, Any] = {"hidden": 32, "layers": "32", "resolutions": "3", "average": None, "lr": 0.01}
ATTENDED |= {"dropout": 0.2, "word_dropout": 0.5}


def is_network(recipe: type[Recipe]) -> bool:
    """Whether it trains a network."""
    return "min_steps" in recipe.names()


def retrieves(recipe: type[Recipe]) -> bool:
    """Whether labels are found by their texts: then a text that is a label's own has the highest score there is."""
    return "backbone" in recipe.names()


def fine_tunes(recipe: type[Recipe]) -> bool:
    """Whether its encoder is always a transformer."""
    return is_network(recipe) and "dimension" not in recipe.names()


def attends(recipe: type[Recipe]) -> bool:
    """Whether its levels are networks of their own, trained one after the other."""
    return "resolutions" in recipe.names() and "hidden" in recipe.names()


def small(recipe: type[Recipe]) -> dict[str, Any]:
    """Settings, and perhaps a preset, with which the recipe learns the tiny corpora quickly."""
    if OWN in recipe.presets:
        return {"preset": OWN}
    if "small" not in recipe.presets:
        return {}
    if fine_tunes(recipe):
        return {"preset": "small", **known(recipe, {"encoder": tiny_encoder(), **TINY})}
    own = {"batch": 64, "min_steps": 80, "warmup": 5} if retrieves(recipe) else {"batch": 128, "min_steps": 120}
    own |= ATTENDED if attends(recipe) else {}
    return {"preset": "small", **({**own, **PLAIN} if is_network(recipe) else {})}


def short(recipe: type[Recipe]) -> dict[str, Any]:
    """What to change of `small` where only labels that have points are to be learnt."""
    return {} if OWN in recipe.presets else known(recipe, SHORT)


def shorter(recipe: type[Recipe]) -> dict[str, Any]:
    """What to change of `small` where nothing needs to be learnt."""
    if OWN in recipe.presets:
        return dict(recipe.presets.get(OWN_BRIEF, {}))
    return known(recipe, SHORTER)


def known(recipe: type[Recipe], given: dict[str, Any]) -> dict[str, Any]:
    """What of these settings a network has."""
    return {key: value for key, value in given.items() if key in recipe.names()} if is_network(recipe) else {}
