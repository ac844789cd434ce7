"""longtail: extreme multi-label text classification.

    import longtail
    corpus = longtail.read("debian-related")
    model  = longtail.recipe("neighbours").fit(corpus)
    model.predict(["a text editor"], k=5).keys()
    longtail.fit(texts, labels)                  # lists in, model out

Names are imported on first use, so that `import longtail` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.augment import Augmentation as Augmentation
    from longtail.core.decision import Decision as Decision
    from longtail.core.errors import LongtailError as LongtailError
    from longtail.core.labels import Labels as Labels
    from longtail.core.model import Model as Model
    from longtail.core.ranking import Ranking as Ranking
    from longtail.core.recipe import Recipe as Recipe
    from longtail.core.recipe import recipe as recipe
    from longtail.core.run import Run as Run
    from longtail.core.texts import Texts as Texts
    from longtail.data.corpus import Corpus as Corpus
    from longtail.data.dataset import Dataset as Dataset
    from longtail.data.read import read as read
    from longtail.data.write import write as write
    from longtail.decide.fit import calibrate as calibrate
    from longtail.metrics.bootstrap import compare as compare
    from longtail.metrics.evaluate import evaluate as evaluate
    from longtail.recipes.from_lists import fit as fit
    from longtail.store import load as load

_PLACES = {
    "Augmentation": "longtail.augment",
    "Corpus": "longtail.data.corpus",
    "Dataset": "longtail.data.dataset",
    "Decision": "longtail.core.decision",
    "Labels": "longtail.core.labels",
    "LongtailError": "longtail.core.errors",
    "Model": "longtail.core.model",
    "Ranking": "longtail.core.ranking",
    "Recipe": "longtail.core.recipe",
    "Run": "longtail.core.run",
    "Texts": "longtail.core.texts",
    "calibrate": "longtail.decide",
    "compare": "longtail.metrics",
    "evaluate": "longtail.metrics",
    "fit": "longtail.recipes.from_lists",
    "load": "longtail.store",
    "read": "longtail.data.read",
    "recipe": "longtail.core.recipe",
    "write": "longtail.data.write",
}
_NEED_RECIPES = {"load", "recipe"}  # these find recipes by name, so all recipes must be registered first

__all__ = [*sorted(_PLACES), "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("longtail")
    if name not in _PLACES:
        raise AttributeError(f"module 'longtail' has no attribute {name!r}")
    if name in _NEED_RECIPES:
        importlib.import_module("longtail.recipes")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
