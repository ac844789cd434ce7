"""Settings, budget, resuming and devices: used, or refused by name."""

from __future__ import annotations

from typing import Any

from longtail.contract.check import check
from longtail.contract.corpora import topic_corpus
from longtail.contract.require import refused, require, require_same
from longtail.contract.subject import Subject
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.run import Run


@check()
def unknown_parameters_are_refused_with_the_nearest(subject: Subject) -> None:
    """A setting that does not exist is refused, and the nearest one suggested."""
    with refused("an unknown setting", ParameterError, match="has no parameter"):
        subject.made(no_such_parameter=1)
    known = subject.recipe.names()
    if known:
        with refused(f"the setting {known[0]}x", ParameterError, match=f"Did you mean '{known[0]}'"):
            subject.made(**{known[0] + "x": 1})


@check()
def a_budget_is_kept_or_refused_by_name(subject: Subject) -> None:
    """With a budget, the steps of a network are fixed before its training and stored; or a budget is refused."""
    recipe: Any = subject.briefly()
    try:
        model: Any = recipe.fit(topic_corpus(40), Run(budget=1.0))
    except UnsupportedError as error:
        require_refusal(recipe, "budget", error)
    else:
        require("budget" in recipe.supports, "a recipe that takes a budget must have it in supports")
        require(len(model.predict(["boat"], 1)) == 1, "the model must predict")
        if subject.network:
            steps = getattr(model.recipe, "steps", None)
            require(steps is not None and steps > 0, f"the model's recipe must have its number of steps; found {steps}")
            require(model.about.get("training"), "model.about must tell of the training under 'training'")


@check()
def resuming_is_possible_or_refused_by_name(subject: Subject) -> None:
    """Resuming without a checkpoint trains from scratch, and without a folder is refused; or resuming is refused."""
    corpus, texts = topic_corpus(40), subject.corpus.train.x
    recipe = subject.briefly(**({"steps": 3} if subject.network else {}))
    try:
        model = recipe.fit(corpus, Run(folder=subject.new_folder() / "run", resume=True))
    except UnsupportedError as error:
        require_refusal(recipe, "resume", error)
    else:  # there is no checkpoint: training starts from scratch
        again = recipe.fit(corpus)
        require_same(model.predict(texts, 5), again.predict(texts, 5), "trainings with and without `resume`")
        with refused("resuming without a folder", ParameterError, match="resume"):
            recipe.fit(corpus, Run(resume=True))


@check()
def a_device_that_is_not_there_is_refused_by_name(subject: Subject) -> None:
    """An unknown device is refused."""
    with refused("the device 'no-such-device'", UnsupportedError, ParameterError, match="device"):
        subject.briefly().fit(subject.corpus, Run(device="no-such-device"))


def require_refusal(recipe: Any, what: str, error: Exception) -> None:
    """A recipe that refuses a part of a `Run` says which, and does not list it under `supports`."""
    require(what in str(error), f"a refusal of {what} must name it; the message was: {error}")
    require(what not in recipe.supports, f"{what} is refused, but stands in `supports`")
