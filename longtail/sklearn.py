"""longtail as a scikit-learn classifier.

from longtail.sklearn import LongtailClassifier
tagger = LongtailClassifier("xr-linear", C=0.5).fit(texts, Y)
tagger.predict(["a text of your own"])       # an indicator CSR
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

import longtail.recipes  # noqa: F401  # registers the recipes
from longtail._native import available_threads, get_threads, set_threads
from longtail.core.errors import MissingExtraError, ParameterError, UnsupportedError, nearest, shorten
from longtail.core.model import Model
from longtail.core.ranking import Ranking, check_k
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
LABELS = 5  # what a point gets where nothing says how many
FORMS = "y must be an indicator matrix, a list of labels for each point, or one class for each point"


class LongtailClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any recipe behind `fit`, `predict` and `score`; `longtail recipes NAME` lists the parameters of one.

    `recipe`: its name. `k`: how many labels a point gets at most; None: as many as the model's own cut-off lets pass,
    5 where it has none. `threshold`: labels that score below it are left out; it replaces the cut-off.
    `label_texts`: what labels stand for in words, by label (of an indicator matrix, by column); `augment` needs them.
    `random_state`: the seed of the training (None: 0). `n_jobs`: threads of training and prediction, −1 for all (None:
    what the machine allows). All other arguments are the recipe's own parameters; `get_params`, `set_params`, `clone`
    and `GridSearchCV` know them by their names, as {"C": [0.5, 1]}. As everywhere in scikit-learn, values are looked
    at by `fit`.

    After `fit`: `model_` (what `longtail.load` would give; it has `explain` and `save`), `classes_` (the label of each
    column), `kind_` ("score" or "probability"), and `n_features_in_` where X was a matrix.
    """

    def __init__(
        self,
        recipe: str = "xr-linear",
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
        """The arguments of the constructor, and the parameters of the recipe that were given."""
        return {**super().get_params(deep), **self._parameters}

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or parameters of the recipe by their names."""
        own = self._get_param_names()
        for name, value in params.items():
            if name in own:
                setattr(self, name, value)
            else:
                self._parameters[name] = value
        if isinstance(self.recipe, str) and self.recipe in recipes:
            known = recipes[self.recipe].names()
            for name in set(self._parameters) - {*known, "preset"}:
                hint = nearest(name, [*own, *known])
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
        points = self._points(X, reset=True)
        truth = Truth.of(y)
        run = Run(seed=seed_of(self.random_state), threads=threads_of(self.n_jobs))
        corpus = corpus_from_lists(points, truth.values, label_texts=truth.keyed(self.label_texts))
        self.model_ = made.fit(corpus, run)
        self.classes_ = names_of(self.model_, truth.values) if truth.classes is None else truth.classes
        self.single_ = truth.single
        self.kind_ = self._rank(points[:1], 1).kind
        return self

    def predict(self, X: Any) -> Any:
        """The chosen labels as an indicator CSR (N, L): at most `k` a point, none that scores below `threshold`.

        Where `fit` was given one class for each point, an array (N,) with the best class of each instead.
        """
        check_is_fitted(self)
        if self.single_:
            return self.classes_[self._rank(self._points(X), 1).indices[:, 0]]
        found = self._chosen(X).to_csr()
        return sp.csr_matrix((np.ones(found.nnz, np.int64), found.indices, found.indptr), shape=found.shape)

    def predict_labels(self, X: Any) -> list[list[Any]]:
        """The chosen labels of each point by name, best first."""
        return [self.classes_[row[row >= 0]].tolist() for row in self._chosen(X).indices]

    def decision_function(self, X: Any) -> sp.csr_matrix:
        """The scores of the `k` best labels of each point, CSR (N, L). What is not stored is below them, not 0."""
        check_is_fitted(self)
        return self._rank(self._points(X), self.k).to_csr()

    @available_if(lambda self: getattr(self, "kind_", None) == "probability")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> sp.csr_matrix:
        """The probabilities of the `k` best labels, CSR (N, L); only where the model is calibrated (`kind_`)."""
        return self.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """P@1, from 0 to 1: how often the best label is true. `scorer` makes a score of any other metric."""
        if sample_weight is not None:
            raise UnsupportedError("LongtailClassifier.score has no use for sample_weight: all points count the same")
        return self.report(X, y, (1,)).scores["P@1"] / 100

    def report(self, X: Any, y: Any, ks: tuple[int, ...] = (1, 3, 5)) -> Report:
        """All metrics of longtail, in percent; labels of y that the model does not know count as misses."""
        check_is_fitted(self)
        points = self._points(X)
        ranking = self._rank(points, max(ks))
        truth = Truth.of(y, self.classes_ if self.single_ else None)
        if not isinstance(truth.values, list):
            L = truth.values.shape[1]
            if len(self.classes_) != L:
                raise ParameterError(f"y has {L:,} columns; this model has {len(self.classes_):,} labels")
            return evaluate(ranking, targets(truth.values), ks=ks)
        corpus = corpus_from_lists(points, truth.values)
        union, columns = join(self.model_.labels, corpus.labels)
        known = corpus.train.with_labels(columns, len(union)).Y
        return evaluate(replace(ranking, labels=union), known, ks=ks)

    def _chosen(self, X: Any) -> Ranking:
        check_is_fitted(self)
        ranking = self._rank(self._points(X), self.k, cut_off=self.threshold is None)
        return ranking if self.threshold is None else ranking.above(self.threshold)

    def _rank(self, points: Any, k: int | None, cut_off: bool = False) -> Ranking:
        """The k best labels, or (`cut_off`) those of them that the model's own cut-off lets pass."""
        decision = getattr(self.model_, "decision", None)  # few models have one
        if k is None:
            k = LABELS if decision is None or decision.cut_off is None else int(decision.cut_off.most)
        with native_threads(threads_of(self.n_jobs)):
            return self.model_.predict(points, k, **({} if decision is None else {"cut_off": cut_off}))

    def _points(self, X: Any, reset: bool = False) -> list[str] | Texts | sp.csr_matrix:
        """X as texts or CSR; features are checked as scikit-learn does, with its messages."""
        if isinstance(X, (str, Texts)):  # a single string is refused where texts are
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
            state["model_"] = packed(state["model_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "model_" in state:
            state["model_"] = unpacked(state["model_"])
        super().__setstate__(state)


def scorer(metric: str) -> Callable[[LongtailClassifier, Any, Any], float]:
    """A `scoring` for GridSearchCV and cross_val_score: any metric of `longtail evaluate` by name, from 0 to 1."""
    _, _, k = metric.partition("@")
    if not k.isdecimal() or int(k) < 1:
        raise ParameterError(f"a metric is named with its cut-off, as P@1 or nDCG@5; got {metric!r}")
    return functools.partial(_metric, metric=metric)


def _metric(estimator: LongtailClassifier, X: Any, y: Any, metric: str) -> float:
    scores = estimator.report(X, y, (int(metric.partition("@")[2]),)).scores
    if metric not in scores:
        raise ParameterError(f"there is no metric {metric!r}.{nearest(metric, scores)}")
    return scores[metric] / 100


class Truth(NamedTuple):
    """Y: a sparse matrix whose columns are `classes`, or (then None) a list of labels for each point.

    `single`: whether each point was given as one class.
    """

    values: Any
    classes: Any
    single: bool = False

    def keyed(self, label_texts: Mapping[Any, str] | None) -> dict[Any, str] | None:
        """Texts by class as texts by column, which is the key of a matrix's label; lists of labels name their keys."""
        if label_texts is None or self.classes is None:
            return None if label_texts is None else dict(label_texts)
        columns = {name: column for column, name in enumerate(self.classes.tolist())}
        for name in label_texts:
            if name not in columns:
                known = "the classes of y" if self.single else f"the {len(columns):,} columns of y"
                raise ParameterError(f"label_texts names {shorten(name)}, which is not among {known}")
        return {columns[name]: text for name, text in label_texts.items()}

    @classmethod
    def of(cls, Y: Any, classes: Any = None) -> Truth:
        """What was given as Y; `classes` are those of a model that was trained on one class for each point."""
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
            raise ParameterError("y looks like an indicator matrix given as lists: wrap it in numpy.array")
        return cls(rows, None)

    @classmethod
    def of_classes(cls, y: Any, classes: Any = None) -> Truth:
        """One class for each point; those that are not among `classes` have no column."""
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
    """Whether lists of labels are rather rows of 0 and 1: nobody has two labels and gives both to all."""
    if not rows or not all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) > 1 for row in rows):
        return False
    return all(isinstance(label, (int, float)) and label in (0, 1) for row in rows for label in row)


def names_of(model: Model, rows: list[Any]) -> np.ndarray:
    """The labels in the order of the columns: numbers where only numbers were given, else strings."""
    keys = list(model.labels.keys)
    numbers = all(isinstance(label, (int, np.integer)) for row in rows for label in row)
    numbers = numbers and all(key.isdecimal() for key in keys)  # label_texts may name others
    return np.array([int(key) if numbers else key for key in keys], np.int64 if numbers else object)


def seed_of(random_state: Any) -> int:
    """A seed: the number that was given, 0 for None, else one drawn from a random state."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31 - 1))


def threads_of(n_jobs: int | None) -> int:
    """Threads for a number of jobs as scikit-learn counts them: −1 is all there are, −2 all but one."""
    if n_jobs is None:
        return resolve_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ParameterError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}")
    return resolve_threads(int(n_jobs)) if n_jobs > 0 else max(available_threads() + 1 + int(n_jobs), 1)


@contextmanager
def native_threads(count: int) -> Iterator[None]:
    """So many threads within the block."""
    before = get_threads()
    set_threads(count)
    try:
        yield
    finally:
        set_threads(before)


def packed(model: Model) -> dict[str, Any]:
    """A model as plain values and arrays, for pickle and joblib."""
    if not isinstance(model, StoredModel):
        raise UnsupportedError(
            f"a {type(model).__name__} cannot be pickled: keep it with .model_.save(folder), and longtail.load it"
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
        "decision": getattr(model, "decision", None),
    }


def unpacked(state: dict[str, Any]) -> Model:
    """The model that `packed` took apart."""
    made = make_recipe(state["recipe"], **state["settings"])
    labels = unpack_labels("labels", state["arrays"], state["labels"])
    model_class: Any = made.model_class()
    model: Any = model_class.from_state(Saved(made, labels, state["arrays"], state["meta"], state["about"]))
    if state["decision"] is not None:
        model.decision = state["decision"]
    return model
