"""Typed, validated parameters: one definition for Python, the command line and saved models."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any, ClassVar, Literal, NamedTuple, Self, Union

from longtail.core.errors import ParameterError, nearest, shorten


def param(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """Define a field of a `Parameters` dataclass: its default, its help line and its allowed range.

    The default may be a `Parameters` object; see `Parameters`.
    """
    bounds = {"at least": at_least, "at most": at_most, "above": above, "below": below}
    return dataclasses.field(default=default, metadata={"help": help, "bounds": bounds})


def param_of(owner: type[Parameters], name: str) -> Any:
    """Define a field like one of another `Parameters` class, with the default, help and range given there."""
    field = next(field for field in dataclasses.fields(owner) if field.name == name)
    return dataclasses.field(default=field.default, metadata=field.metadata)


class Listed(NamedTuple):
    """A parameter as users see it."""

    name: str
    default: Any
    type: Any
    help: str


_types: dict[Any, dict[str, Any]] = {}


def types_of(cls: Any) -> dict[str, Any]:
    """The types of a class's fields, read from their texts once: that takes milliseconds."""
    if cls not in _types:
        _types[cls] = typing.get_type_hints(cls)
    return _types[cls]


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Base class of parameter objects. Types may be int, float, bool, str, Literal[...] and unions of these with None.

    A field may itself hold parameters, such as `augment` of recipes. The field's own name then sets the first of these
    parameters, and the others are called `augment.delta` and so on. In Python, its value may also be an object of its
    class or a dictionary.
    """

    kind: ClassVar[str] = "parameters"
    other_parameters: ClassVar[str] = ""  # added to the error for an unknown name: where other parameters are found

    def __post_init__(self) -> None:
        hints = types_of(type(self))
        for field in dataclasses.fields(self):
            value = _coerce(field.name, getattr(self, field.name), hints[field.name], self.kind)
            _check_bounds(field, value, self.kind)
            object.__setattr__(self, field.name, value)

    @classmethod
    def listed(cls) -> list[Listed]:
        """Return all parameters, in order; parameters inside a field come after it."""
        hints, found = types_of(cls), []
        for field in dataclasses.fields(cls):
            default, hint, within = field.default, hints[field.name], []
            if isinstance(default, Parameters):
                first, *others = default.listed()
                within = [other._replace(name=f"{field.name}.{other.name}") for other in others]
                default, hint = getattr(default, first.name), first.type
            found += [Listed(field.name, default, hint, field.metadata.get("help", "")), *within]
        return found

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all parameters, in order."""
        return [parameter.name for parameter in cls.listed()]

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Build from named values, which may be strings from the command line; unknown names are refused."""
        for name in values:
            if name not in cls.names():
                hint = nearest(name, cls.names()) if cls.names() else " It has no parameters."
                raise ParameterError(f"{cls.kind} has no parameter {name!r}.{hint}{cls.other_parameters}")
        plain = {name: value for name, value in values.items() if "." not in name}
        for field in dataclasses.fields(cls):
            within = {n.partition(".")[2]: v for n, v in values.items() if n.startswith(f"{field.name}.")}
            if within and isinstance(field.default, Parameters):
                plain[field.name] = field.default.joined(plain.get(field.name), within)
        return cls(**plain)

    @classmethod
    def taken(cls, value: Any) -> Self:
        """Convert `value` to parameters of this class: such an object, a dictionary, or only the first parameter."""
        if isinstance(value, cls):
            return value
        return cls.of(**(value if isinstance(value, dict) else {cls.names()[0]: value}))

    def joined(self, value: Any, others: dict[str, Any]) -> Self:
        """Return the parameters that `value` stands for (these, if None), with `others` set."""
        values = (self if value is None else self.taken(value)).changed() | others
        return self.of(**values)

    def changed(self) -> dict[str, Any]:
        """Return the values that differ from the defaults: all that a saved model needs to store."""
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, Parameters):  # its first is always included: the others may depend on it
                first, *others = value.names()
                found[field.name] = getattr(value, first)
                found |= {f"{field.name}.{n}": v for n, v in value.changed().items() if n in others}
            else:
                found[field.name] = value
        return found


def describe_type(hint: Any) -> str:
    """Return a type in words, for messages and `--help`."""
    if hint is type(None):
        return "none"
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " or ".join(describe_type(option) for option in typing.get_args(hint))
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(hint, str(hint))


def _coerce(name: str, value: Any, hint: Any, kind: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, Parameters):
        return hint.taken(value)
    options = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in sorted(options, key=lambda option: option is not type(None)):  # try None first: "none" is not a text
        done, result = _as(value, option)
        if done:
            return result
    raise ParameterError(f"{kind}: {name} must be {describe_type(hint)}; got {shorten(value)}")


def _as(value: Any, hint: Any) -> tuple[bool, Any]:
    """Return whether `value` is, or spells, a value of one plain type; and that value."""
    if typing.get_origin(hint) is Literal:
        spelled = {str(choice): choice for choice in typing.get_args(hint)}
        return str(value) in spelled, spelled.get(str(value))
    if hint is type(None):
        return value is None or value == "none", None
    if hint is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        return (
            (True, value) if isinstance(value, bool) else (str(value).lower() in words, words.get(str(value).lower()))
        )
    if hint in (int, float) and not isinstance(value, bool):
        try:
            number = hint(value)
            return bool(number == float(value)) and math.isfinite(number), number
        except (TypeError, ValueError, OverflowError):
            return False, None
    return hint is str and isinstance(value, str), value


def _check_bounds(field: dataclasses.Field[Any], value: Any, kind: str) -> None:
    bounds = field.metadata.get("bounds", {})
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    broken = {
        "at least": lambda bound: value < bound,
        "at most": lambda bound: value > bound,
        "above": lambda bound: value <= bound,
        "below": lambda bound: value >= bound,
    }
    for word, bound in bounds.items():
        if bound is not None and (broken[word](bound) or value != value):
            raise ParameterError(f"{kind}: {field.name} must be {word} {bound}, but is {value!r}")
