"""What every recipe must do: the checks of `longtail contract` over all of ours. Registering a recipe adds it here."""

import pytest

import longtail.recipes  # noqa: F401  # registers the recipes
from longtail.contract.check import Case
from longtail.contract.require import NotApplicableError
from longtail.contract.subject import Subject
from longtail.contract.suite import CASES
from longtail.core.recipe import recipes

UNAUGMENTED = {"popular"}  # recipes that have no use for more training points


@pytest.fixture(scope="module", params=recipes.own)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return Subject(recipes[request.param], tmp_path_factory.mktemp("contract"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(subject: Subject, case: Case) -> None:
    try:
        case.run(subject)
    except NotApplicableError as why:
        assert subject.name in UNAUGMENTED, f"{case} must apply to recipes of ours: {why}"
        pytest.skip(str(why))


def test_recipes_of_ours_are_exempt_from_nothing() -> None:
    assert not [name for name in recipes.own if recipes[name].exempt]
