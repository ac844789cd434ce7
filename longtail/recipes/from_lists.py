"""`longtail.fit`: lists in, model out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import longtail.recipes  # noqa: F401  # registers the recipes
from longtail.core import defaults
from longtail.core.model import Model
from longtail.core.recipe import recipe as make_recipe
from longtail.core.run import Run
from longtail.data.from_lists import corpus_from_lists


def fit(
    texts: Any,
    labels: Any,
    recipe: str = defaults.RECIPE,
    *,
    label_texts: Mapping[str, str] | None = None,
    groups: Any = None,
    run: Run | None = None,
    **parameters: Any,
) -> Model:
    """Train on a list of texts (or a sparse feature matrix) and the labels of each.

    `labels` holds a list of strings for each text; `label_texts` may describe labels in words, by label.
    A validation part is held out to make choices; `model.about["validation"]` has the scores on it. Recipes that are
    quick to train then train on it too.
    """
    corpus = corpus_from_lists(texts, labels, label_texts=label_texts, groups=groups)
    return make_recipe(recipe, **parameters).fit(corpus, run)
