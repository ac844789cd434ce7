"""longtail as a scikit-learn classifier.

from longtail.sklearn import LongtailClassifier
tagger = LongtailClassifier().fit(texts, Y)
tagger.predict(["a text of your own"])       # an indicator CSR
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

import longtail.recipes  # noqa: F401  # registers the recipes
from longtail._native import available_threads, native_threads
from longtail.core import defaults
from longtail.core.errors import MissingExtraError, ParameterError, UnsupportedError, nearest, shorten
from longtail.core.how_many import check_k, check_threshold
from longtail.core.model import Model
from longtail.core.ranking import Ranking
from longtail.core.recipe import recipe as make_recipe
from longtail.core.recipe import recipes
from longtail.core.run import Run, resolve_threads
from longtail.core.texts import Texts
from longtail.data.from_lists import corpus_from_lists
from longtail.data.sparse import targets
from longtail.evidence.score import join
from longtail.metrics import evaluate
from longtail.metrics.report import Report
from longtail.store.model import Saved, StoredModel
from longtail.store.parts import pack_labels, unpack_labels

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise MissingExtraError("longtail.sklearn", "sklearn") from error

__all__ = ["LongtailClassifier", "scorer"]
FORMS = "y must be an indicator matrix, a list of labels for each point, or one class for each point"


class LongtailClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any recipe of longtail as a classifier with `fit`, `predict` and `score`.

    `recipe`: the name of a recipe; "auto" is the default everywhere in longtail. `k`: the largest number of labels that
    a point gets; None: as many as the cut-off of the model allows, or 5 if it has none. `threshold`: labels that score
    below it are left out; it replaces the cut-off. `label_texts`: the texts of labels, by label (for an indicator
    matrix, by column); `augment` needs them. `random_state`: the seed of the training (None: 0). `n_jobs`: the number
    of threads for training and prediction; −1: all; None: as many as the machine allows.

    All other arguments are parameters of the recipe (`longtail recipes NAME` lists them) or `preset`. `get_params`,
    `set_params`, `clone` and `GridSearchCV` use the same names: {"C": [0.5, 1]}. As everywhere in scikit-learn, `fit`
    checks the values.

    After `fit`: `model_` (the `longtail.Model`, with `explain` and `save`), `classes_` (the label of each column),
    `kind_` ("score" or "probability"), and `n_features_in_` if X was a matrix.
    """

    def __init__(
        self,
        recipe: str = defaults.RECIPE,
        *,
        k: int | None = None,
        threshold: float | None = None,
        label_texts: Mapping[Any, str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        **parameters: Any,
    ):
        self.recipe = recipe
        self.k = k
        self.threshold = threshold
        self.label_texts = label_texts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self._parameters = parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, including the parameters of the recipe that were given."""
        return {**super().get_params(deep), **self._parameters}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor or parameters of the recipe; returns this classifier."""
        own = self._get_param_names()
        for name, value in params.items():
            if name in own:
                setattr(self, name, value)
            else:
                self._parameters[name] = value
        if isinstance(self.recipe, str) and self.recipe in recipes:
            known = recipes[self.recipe].names()
            for name in set(self._parameters) - {*known, "preset"}:
                hint = nearest(name, [*own, *known]) + recipes[self.recipe].other_parameters
                raise ParameterError(f"LongtailClassifier({self.recipe!r}) has no parameter {name!r}.{hint}")
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Train on N points.

        `X`: texts (a list, an array or a pandas Series of strings), or a feature matrix, sparse or dense. `y`: an
        indicator matrix (N, L), sparse or dense or a DataFrame, values in [0, 1]; or a list of labels for each point,
        strings or whole numbers; or an array (N,) of classes, where each point has exactly one.
        """
        made = make_recipe(self.recipe, **self._parameters)
        if self.k is not None:
            check_k(self.k)
        if self.threshold is not None:
            check_threshold(self.threshold)
        points = self._points(X, reset=True)
        given = GivenY.of(y)
        run = Run(seed=seed_of(self.random_state), threads=threads_of(self.n_jobs))
        corpus = corpus_from_lists(points, given.values, label_texts=given.keyed(self.label_texts))
        self.model_ = made.fit(corpus, run)
        self.classes_ = names_of(self.model_, given.values) if given.classes is None else given.classes
        self.single_ = given.single
        self.kind_ = self._rank(points[:1], 1, cut_off=False).kind
        return self

    def predict(self, X: Any) -> Any:
        """The chosen labels as an indicator CSR (N, L): at most `k` for each point, none that scores below `threshold`.

        If `fit` was given one class for each point, the result is an array (N,) with the best class of each point.
        """
        check_is_fitted(self)
        if self.single_:
            return self.classes_[self._rank(self._points(X), 1, cut_off=False).indices[:, 0]]
        found = self._chosen(X).to_csr()
        return sp.csr_matrix((np.ones(found.nnz, np.int64), found.indices, found.indptr), shape=found.shape)

    def predict_labels(self, X: Any) -> list[list[Any]]:
        """The chosen labels of each point as a list of names, best first."""
        return [self.classes_[row[row >= 0]].tolist() for row in self._chosen(X).indices]

    def decision_function(self, X: Any) -> sp.csr_matrix:
        """The scores of the labels that `predict` chooses from, before any threshold: CSR (N, L).

        These are the `k` best labels of each point. Labels that are not stored score lower than these; their score is
        not 0.
        """
        check_is_fitted(self)
        return self._rank(self._points(X), self.k, threshold=-math.inf).to_csr()

    @available_if(lambda self: getattr(self, "kind_", None) == "probability")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> sp.csr_matrix:
        """`decision_function` of a calibrated model: probabilities, CSR (N, L). Other models have no such method."""
        return self.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """P@1, from 0 to 1: the share of points whose best label is true. `scorer` gives other metrics."""
        if sample_weight is not None:
            raise UnsupportedError("LongtailClassifier.score does not support sample_weight: leave it out")
        return self.report(X, y, (1,)).scores["P@1"] / 100

    def report(self, X: Any, y: Any, ks: tuple[int, ...] = defaults.KS) -> Report:
        """All metrics of longtail, in percent. Labels in y that the model does not know count as misses."""
        check_is_fitted(self)
        points = self._points(X)
        ranking = self._rank(points, max(ks), cut_off=False)
        given = GivenY.of(y, self.classes_ if self.single_ else None)
        if not isinstance(given.values, list):
            L = given.values.shape[1]
            if len(self.classes_) != L:
                raise ParameterError(f"y has {L:,} columns; this model has {len(self.classes_):,} labels")
            return evaluate(ranking, targets(given.values), ks=ks)
        corpus = corpus_from_lists(points, given.values)
        union, columns = join(self.model_.labels, corpus.labels)
        known = corpus.train.with_labels(columns, len(union)).Y
        return evaluate(replace(ranking, labels=union), known, ks=ks)

    def _chosen(self, X: Any) -> Ranking:
        """The ranking (N, k) of the labels that `predict` returns."""
        check_is_fitted(self)
        return self._rank(self._points(X), self.k, threshold=self.threshold)

    def _rank(self, points: Any, k: int | None, **options: Any) -> Ranking:
        """`Model.predict` with these options, on the threads that `n_jobs` asks for."""
        with native_threads(threads_of(self.n_jobs)):
            return self.model_.predict(points, k, **options)

    def _points(self, X: Any, reset: bool = False) -> list[str] | Texts | sp.csr_matrix:
        """X as texts or CSR. scikit-learn checks features, with its own messages; `reset` as in `validate_data`."""
        if isinstance(X, (str, Texts)):  # a single string is refused later, with the other texts
            return X
        if hasattr(X, "__array__") and not hasattr(X, "ndim"):
            X = np.asarray(X)
        if not sp.issparse(X) and getattr(X, "ndim", 1) == 1:
            X = list(X)
            if not X or X[0] is None or isinstance(X[0], str):
                return X
        return sp.csr_matrix(validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float32, np.float64]))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = state_of(state["model_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "model_" in state:
            state["model_"] = model_of(state["model_"])
        super().__setstate__(state)


def scorer(metric: str) -> Callable[[LongtailClassifier, Any, Any], float]:
    """A metric of `longtail evaluate` for the `scoring` argument of GridSearchCV and cross_val_score, from 0 to 1."""
    _, _, k = metric.partition("@")
    if not k.isdecimal() or int(k) < 1:
        raise ParameterError(f"the name of a metric must contain its k, for example P@1 or nDCG@5; got {metric!r}")
    return functools.partial(_metric, metric=metric)


def _metric(estimator: LongtailClassifier, X: Any, y: Any, metric: str) -> float:
    scores = estimator.report(X, y, (int(metric.partition("@")[2]),)).scores
    if metric not in scores:
        raise ParameterError(f"there is no metric {metric!r}.{nearest(metric, scores)}")
    return scores[metric] / 100


class GivenY(NamedTuple):
    """The `y` that a user gave, in one of two forms.

    `values` is a sparse matrix (N, L), whose columns are the labels `classes` (L,); or a list of labels for each point,
    and then `classes` is None. `single` says whether y had exactly one class for each point.
    """

    values: Any
    classes: Any
    single: bool = False

    def keyed(self, label_texts: Mapping[Any, str] | None) -> dict[Any, str] | None:
        """Label texts by column if y is a matrix, whose columns are the keys of its labels; else as they are."""
        if label_texts is None or self.classes is None:
            return None if label_texts is None else dict(label_texts)
        columns = {name: column for column, name in enumerate(self.classes.tolist())}
        for name in label_texts:
            if name not in columns:
                known = "the classes of y" if self.single else f"the {len(columns):,} columns of y"
                raise ParameterError(f"label_texts contains {shorten(name)}, which is not among {known}")
        return {columns[name]: text for name, text in label_texts.items()}

    @classmethod
    def of(cls, Y: Any, classes: Any = None) -> GivenY:
        """From any form that `fit` takes. `classes`: those of a model that was trained on one class for each point."""
        if Y is None:
            raise ParameterError(f"fit requires y to be passed, but the target y is None: {FORMS}")
        if sp.issparse(Y):
            return cls(sp.csr_matrix(Y), np.arange(Y.shape[1]))
        if isinstance(Y, str) or not (hasattr(Y, "__iter__") or hasattr(Y, "__array__")):
            raise ParameterError(f"{FORMS}; got {shorten(Y)}")
        given = np.asarray(Y) if hasattr(Y, "__array__") else None
        if given is not None and given.ndim == 2 and given.dtype.kind in "biuf":
            if given.shape[1] == 1:
                return cls.of_classes(column_or_1d(given, warn=True), classes)
            names = np.asarray(Y.columns) if hasattr(Y, "columns") else np.arange(given.shape[1])
            return cls(sp.csr_matrix(check_array(given)), names)
        rows = list(Y if given is None else given)
        if rows and (isinstance(rows[0], str) or np.isscalar(rows[0])):
            return cls.of_classes(rows, classes)
        if _looks_dense(rows):
            raise ParameterError("y looks like an indicator matrix given as lists; convert it with numpy.array(y)")
        return cls(rows, None)

    @classmethod
    def of_classes(cls, y: Any, classes: Any = None) -> GivenY:
        """From one class for each point. Classes that are not among `classes` get no column."""
        check_classification_targets(y)
        known, codes = np.unique(np.asarray(y), return_inverse=True)
        columns = np.arange(len(known))
        if classes is not None:
            columns = np.minimum(np.searchsorted(classes, known), len(classes) - 1)
            columns = np.where(classes[columns] == known, columns, -1)
            known = classes
        at = columns[codes]
        rows = np.flatnonzero(at >= 0)
        matrix = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, at[rows])), shape=(len(y), len(known)))
        return cls(matrix, known, single=True)


def _looks_dense(rows: list[Any]) -> bool:
    """Whether lists of labels are probably rows of an indicator matrix: all of one length, with 0 and 1 only."""
    if not rows or not all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) > 1 for row in rows):
        return False
    return all(isinstance(label, (int, float)) and label in (0, 1) for row in rows for label in row)


def names_of(model: Model, rows: list[Any]) -> np.ndarray:
    """The labels in the order of the columns, (L,): numbers if only numbers were given, else strings."""
    keys = list(model.labels.keys)
    numbers = all(isinstance(label, (int, np.integer)) for row in rows for label in row)
    numbers = numbers and all(key.isdecimal() for key in keys)  # label_texts may add other labels
    return np.array([int(key) if numbers else key for key in keys], np.int64 if numbers else object)


def seed_of(random_state: Any) -> int:
    """The seed for a `random_state`: the number itself, the default for None, else a draw from the random state."""
    if random_state is None:
        return defaults.SEED
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def threads_of(n_jobs: int | None) -> int:
    """Threads for an `n_jobs` as scikit-learn counts them: −1 means all, −2 all but one."""
    if n_jobs is None:
        return resolve_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ParameterError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}")
    return resolve_threads(int(n_jobs)) if n_jobs > 0 else max(available_threads() + 1 + int(n_jobs), 1)


def state_of(model: Model) -> dict[str, Any]:
    """A model as plain values and arrays, for pickle and joblib."""
    if not isinstance(model, StoredModel):
        raise UnsupportedError(
            f"a {type(model).__name__} cannot be pickled; use .model_.save(folder) and longtail.load(folder)"
        )
    arrays, meta = model.state()
    label_arrays, labels = pack_labels("labels", model.labels)
    return {
        "recipe": model.recipe.name,
        "settings": model.recipe.changed(),
        "arrays": {name: np.array(array) for name, array in (arrays | label_arrays).items()},
        "labels": labels,
        "meta": meta,
        "about": model.about,
        "decision": model.decision,
    }


def model_of(state: dict[str, Any]) -> Model:
    """The model whose `state_of` is given."""
    made = make_recipe(state["recipe"], **state["settings"])
    labels = unpack_labels("labels", state["arrays"], state["labels"])
    model_class: Any = made.class_of_model()
    model: Any = model_class.from_state(Saved(made, labels, state["arrays"], state["meta"], state["about"]))
    model.decision = state["decision"]
    return model
