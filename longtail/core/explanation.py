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
class Voice:
    """What one member of an ensemble says of a label: its share of the score, its rank (from 1) and its own score.

    Rank and score are None where the member does not name the label. `explains`: whether the paths are its.
    """

    member: str
    share: float
    rank: int | None
    score: float | None
    explains: bool = False


@dataclass(frozen=True)
class Reason:
    """A label, its score, and the path to it in each tree of the model (more than one only where trees are averaged).

    `voices` has the members of an ensemble; its paths are those of the member that `explains`, and may be missing.
    """

    label: str
    text: str | None
    score: float
    paths: tuple[TreePath, ...]
    voices: tuple[Voice, ...] = ()

    @property
    def own(self) -> PathStep:
        """The label's own classifier; of several trees, the mean."""
        return mean_step([path.steps[-1] for path in self.paths])

    def to_json(self, kind: Kind) -> dict[str, Any]:
        """Return everything as JSON values, with the label's own classifier first; the score is called `kind`."""
        own = {name: asdict(self.own)[name] for name in ("margin", "bias", "terms")} if self.paths else {}
        return {
            "label": self.label,
            **({} if self.text is None else {"text": self.text}),
            kind: self.score,
            **({"members": [asdict(voice) for voice in self.voices]} if self.voices else {}),
            **own,
            "paths": [asdict(path) for path in self.paths],
        }


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
            "labels": [reason.to_json(self.kind) for reason in self.reasons],
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
