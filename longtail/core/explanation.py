"""Why a label was suggested: how much each word of a text added to its score. All engines explain in this form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from longtail.core.ranking import Kind


@dataclass(frozen=True)
class Term:
    """A word, n-gram or feature of the text as one classifier sees it: contribution = value · weight.

    `in_label`: whether it also occurs in the label's text (or in its key, if it has no text).
    """

    term: str
    value: float
    weight: float
    contribution: float
    in_label: bool = False


@dataclass(frozen=True)
class PathStep:
    """One classifier on the path to a label: margin = bias + Σ contributions of `terms`, largest first.

    `node` is its place in the label tree ("2.0.13": child 13 of child 0 of child 2 of the root), `labels` the number of
    labels below it, `score` the score of the path down to it.
    """

    node: str
    labels: int
    margin: float
    score: float
    bias: float
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class TreePath:
    """The path to a label down one tree; its last step is the classifier of the label itself."""

    score: float
    steps: tuple[PathStep, ...]


@dataclass(frozen=True)
class Reason:
    """A label, its score, and the path to it in each tree of the model (more than one only in ensembles)."""

    label: str
    text: str | None
    score: float
    paths: tuple[TreePath, ...]

    @property
    def own(self) -> PathStep:
        """The label's own classifier; in an ensemble, the mean over its trees."""
        return mean_step([path.steps[-1] for path in self.paths])


@dataclass(frozen=True)
class Explanation:
    """Why a model suggests certain labels for one text.

    `text` is None if the point is a row of features. `terms` are the terms that the model knows, with their values; if
    there are none, only the biases decide.
    """

    recipe: str
    text: str | None
    kind: Kind
    terms: tuple[tuple[str, float], ...]
    reasons: tuple[Reason, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values: each reason under `labels`, with the label's own classifier first."""
        return {
            "recipe": self.recipe,
            "text": self.text,
            "terms": [{"term": term, "value": value} for term, value in self.terms],
            "labels": [
                {
                    "label": reason.label,
                    **({} if reason.text is None else {"text": reason.text}),
                    self.kind: reason.score,
                    **{name: asdict(reason.own)[name] for name in ("margin", "bias", "terms")},
                    "paths": [asdict(path) for path in reason.paths],
                }
                for reason in self.reasons
            ],
        }


def mean_step(steps: list[PathStep]) -> PathStep:
    """Return the mean of several classifiers of one label: margins, biases and weights averaged, term by term."""
    if len(steps) == 1:
        return steps[0]
    share = 1 / len(steps)
    together: dict[str, Term] = {}
    for term in (term for step in steps for term in step.terms):
        known = together.get(term.term, Term(term.term, term.value, 0.0, 0.0, term.in_label))
        weight, contribution = known.weight + share * term.weight, known.contribution + share * term.contribution
        together[term.term] = Term(term.term, term.value, weight, contribution, term.in_label)
    return PathStep(
        node=" ".join(step.node for step in steps),
        labels=steps[0].labels,
        margin=share * sum(step.margin for step in steps),
        score=share * sum(step.score for step in steps),
        bias=share * sum(step.bias for step in steps),
        terms=tuple(sorted(together.values(), key=lambda term: -term.contribution)),
    )
