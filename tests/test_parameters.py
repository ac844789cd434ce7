"""Parameters, the registry, and recipes by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import pytest

import longtail
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.parameters import Parameters, describe_type, param
from longtail.core.recipe import Recipe, recipe, recipes
from longtail.core.registry import Registry


@dataclass(frozen=True)
class Sample(Parameters):
    """One field of each type."""

    kind = "sample"
    count: int = param(5, "how many", at_least=1, at_most=100)
    rate: float = param(0.5, "how fast", above=0)
    on: bool = param(True, "whether")
    name: str = param("x", "what it is called")
    mode: Literal["fast", "good"] = param("fast", "which way")
    limit: int | None = param(None, "where to stop", at_least=0)
    size: float | Literal["auto"] = param("auto", "how large")


def test_defaults_and_names() -> None:
    assert Sample() == Sample.of() and Sample().changed() == {}
    assert Sample.names() == ["count", "rate", "on", "name", "mode", "limit", "size"]


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("count", "7", 7),
        ("count", 7.0, 7),
        ("rate", "1e-3", 0.001),
        ("rate", 2, 2.0),
        ("on", "false", False),
        ("on", "No", False),
        ("on", "1", True),
        ("on", 0, False),
        ("name", "none", "none"),
        ("mode", "good", "good"),
        ("limit", "none", None),
        ("limit", "3", 3),
        ("size", "auto", "auto"),
        ("size", "2.5", 2.5),
    ],
)
def test_values_are_taken_as_the_command_line_spells_them(name: str, given: Any, value: Any) -> None:
    found = getattr(Sample.of(**{name: given}), name)
    assert found == value and type(found) is type(value)
    assert Sample.of(**{name: value}) == Sample.of(**{name: given})


def test_changed_is_enough_to_build_again() -> None:
    sample = Sample.of(count="9", limit=4, mode="good", on=True)
    assert sample.changed() == {"count": 9, "limit": 4, "mode": "good"}
    assert Sample.of(**sample.changed()) == sample


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"count": 0}, "sample: count must be at least 1, but is 0"),
        ({"count": 101}, "sample: count must be at most 100, but is 101"),
        ({"rate": 0}, "sample: rate must be above 0, but is 0.0"),
        ({"rate": math.nan}, "sample: rate must be"),
        ({"rate": "nan"}, "sample: rate must be a number; got 'nan'"),
        ({"count": 1.5}, "sample: count must be a whole number; got 1.5"),
        ({"count": "five"}, "sample: count must be a whole number; got 'five'"),
        ({"count": True}, "sample: count must be a whole number; got True"),
        ({"count": math.inf}, "sample: count must be a whole number; got inf"),
        ({"count": None}, "sample: count must be a whole number; got None"),
        ({"on": "maybe"}, "sample: on must be true or false; got 'maybe'"),
        ({"on": 2}, "sample: on must be true or false; got 2"),
        ({"name": 3}, "sample: name must be text; got 3"),
        ({"mode": "slow"}, "sample: mode must be one of 'fast', 'good'; got 'slow'"),
        ({"mode": ["fast"]}, "sample: mode must be one of 'fast', 'good'"),
        ({"limit": -1}, "sample: limit must be at least 0, but is -1"),
        ({"limit": "x"}, "sample: limit must be a whole number or none; got 'x'"),
        ({"size": "big"}, "sample: size must be a number or one of 'auto'; got 'big'"),
    ],
)
def test_what_is_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Sample.of(**values)
    assert problem in str(caught.value)
    with pytest.raises(ParameterError):
        Sample(**values)


def test_unknown_name_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match="sample has no parameter 'cuont'. Did you mean 'count'?.*Known: count, "):
        Sample.of(cuont=3)
    with pytest.raises(ParameterError, match="sample has no parameter 'zzz'. Known: "):
        Sample.of(zzz=3)


def test_describe_type() -> None:
    assert describe_type(int | None) == "a whole number or none"
    assert describe_type(Literal["a", 2]) == "one of 'a', 2"
    assert [describe_type(t) for t in (float, bool, str)] == ["a number", "true or false", "text"]


def test_registry_imports_on_demand() -> None:
    registry: Registry[Any] = Registry("thing")
    registry.add("pi", "math:pi")
    registry.add("gone", "no_such_module:x")
    assert list(registry) == ["pi", "gone"] and len(registry) == 2 and "pi" in registry
    assert registry["pi"] == math.pi
    with pytest.raises(ModuleNotFoundError):  # a broken part is not mistaken for an unknown name
        registry["gone"]
    with pytest.raises(ParameterError, match="unknown thing 'pie'. Did you mean 'pi'?"):
        registry["pie"]
    assert "pie" not in registry


def test_recipe_by_name() -> None:
    assert isinstance(longtail.recipe("popular"), Recipe)
    with pytest.raises(ParameterError, match="unknown recipe 'neighbors'. Did you mean 'neighbours'?"):
        longtail.recipe("neighbors")
    with pytest.raises(ParameterError, match="recipe 'neighbours' has no parameter 'augmnt'.*Known: "):
        recipe("neighbours", augmnt="none")


def test_every_recipe_builds_and_describes_itself() -> None:
    for name in recipes:
        kind = recipes[name]
        made = kind.of()
        assert kind.name == name and kind.title and made.changed() == {}
        assert kind.kind == f"recipe {name!r}"


def test_a_recipe_without_fit_refuses_by_name() -> None:
    @dataclass(frozen=True)
    class Bare(Recipe):
        name = "bare"
        title = "nothing"

    with pytest.raises(UnsupportedError, match="recipe 'bare' cannot be trained"):
        Bare().fit(None)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="does not name the class of its models"):
        Bare.model_class()


@dataclass(frozen=True)
class Within(Parameters):
    """Parameters that are a field of others."""

    kind = "within"
    how: Literal["off", "on", "both"] = param("off", "which way")
    much: float = param(0.5, "how much", at_least=0, below=1)


@dataclass(frozen=True)
class Around(Parameters):
    """A field that has parameters itself."""

    kind = "around"
    count: int = param(1, "how many")
    part: Within = param(Within("on"), "what is within")  # noqa: RUF009


def test_parameters_within_parameters() -> None:
    assert Around.names() == ["count", "part", "part.much"]
    assert [p.default for p in Around.listed()] == [1, "on", 0.5]
    assert Around().changed() == {} and Around().part == Within("on")
    assert Around.of(part="both").part == Around(part="both").part == Within("both")  # type: ignore[arg-type]
    assert Around.of(**{"part.much": "0.25"}).part == Within("on", 0.25)
    assert Around.of(part={"how": "both", "much": 0}).part == Within("both", 0.0)
    assert Around.of(part=Within("both", 0.1), **{"part.much": 0.2}).part == Within("both", 0.2)
    for around in (Around(part=Within()), Around(2, Within("both", 0.1)), Around(part=Within("on", 0.1))):
        assert "part" in around.changed()  # told even where it is the default
        assert Around.of(**around.changed()) == around


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"part.mch": 1}, "around has no parameter 'part.mch'. Did you mean 'part.much'"),
        ({"count.x": 1}, "around has no parameter 'count.x'"),
        ({"part.much": 1}, "within: much must be below 1, but is 1.0"),
        ({"part": "of"}, "within: how must be one of 'off', 'on', 'both'; got 'of'"),
        ({"part": {"hw": "on"}}, "within has no parameter 'hw'. Did you mean 'how'"),
    ],
)
def test_bad_parameters_within_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Around.of(**values)
