"""Declared fields: an element declares each field once, with its kind, unit, one line of documentation and default.

The declarations of a class give the parameters of a model, their checks, the tables of files, the units of dispersions,
the key reference, and the list of fields in the class's docstring.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Self, TypeVar, dataclass_transform

import jax
import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind, checked

C = TypeVar("C", bound=type)
_PLACES = (Kind.AXIS, Kind.PLACE)
STATES = (Kind.NUMBER, Kind.NOT_NEGATIVE, Kind.POSITIVE, Kind.VECTOR, Kind.NOT_NEGATIVE_VECTOR, Kind.LIST)


@dataclass(frozen=True)
class Declared:
    """One declared field. of: class of its parts; choices: the words of a CHOICE; default: MISSING if there is none;
    is_state: whether it changes during a run; its value is then the one at the start. neutral: a value, other than zero, at
    which the number is part of the structure and costs nothing, such as the 1 of a factor."""

    name: str
    kind: Kind
    unit: str
    doc: str
    default: Any
    of: type | None
    choices: tuple[str, ...]
    is_state: bool = False
    neutral: float | None = None

    @property
    def key(self) -> str:
        """Its name in a file, without the underscore that follows names reserved by Python (`from_`)."""
        return self.name.rstrip("_")

    @property
    def required(self) -> bool:
        return self.default is MISSING


def field(
    kind: Kind,
    unit: str = "",
    doc: str = "",
    *,
    default: Any = MISSING,
    of: type | None = None,
    choices: tuple[str, ...] = (),
    kw_only: bool = False,
    neutral: float | None = None,
) -> Any:
    """Declare a field of an element: what it holds, its SI unit ("" for none), a line of documentation, its default.

    neutral: a value, other than zero, at which a number costs nothing, such as the 1 of a factor; as with zero, the programs
    of a model that has it do not contain the number.
    """
    said = {"kind": kind, "unit": unit, "doc": doc, "of": of, "choices": choices, "neutral": neutral}
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"declared": said})


def state(unit: str = "", doc: str = "", *, default: Any = 0.0, kind: Kind = Kind.NUMBER, kw_only: bool = False) -> Any:
    """Declare a state of an element: numbers that change during a run at the rates that the element gives (`Force.rates`).

    The value of the field is that at the start of a run. It is a parameter like any other, set, varied and dispersed by its
    name; functions outside a run compute with it. kind: NUMBER, VECTOR, LIST, or a positive or not negative one of these.
    """
    if kind not in STATES:
        raise TypeError(f"a state is one of {', '.join(STATES)}, not {kind}")
    said = {"kind": kind, "unit": unit, "doc": doc, "of": None, "choices": (), "is_state": True}
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"declared": said})


@dataclass_transform(frozen_default=True, field_specifiers=(field, state))
def element(cls: C) -> C:
    """Decorate a class with declared fields: it becomes a frozen dataclass whose docstring lists the fields."""
    made = dataclass(frozen=True)(cls)
    for f in dataclasses.fields(made):
        if "declared" not in f.metadata:
            raise TypeError(
                f"{cls.__name__}.{f.name} is not declared; write {f.name}: ... = field(Kind...., unit, doc)"
            )
    own = declared(made)
    if own and made.__doc__:
        said, *example = made.__doc__.rstrip().split("\n\n    >>> ", 1)
        made.__doc__ = "\n\n    >>> ".join([f"{said}\n\n" + "\n".join(f"    {line(d)}" for d in own), *example])
    return made


def line(d: Declared) -> str:
    """The description of a field in one line."""
    unit = f" [{d.unit}]" if d.unit else ""
    default = "" if d.required else f"; default {d.default!r}"
    return f"{d.name}{unit}: {d.doc} ({'state, ' * d.is_state}{d.kind}{default})"


@functools.cache
def declared(cls: type) -> tuple[Declared, ...]:
    """The declared fields of a class, in order."""
    fields: Any = dataclasses.fields(cls)
    return tuple(Declared(name=f.name, default=f.default, **f.metadata["declared"]) for f in fields)


def type_name(cls: type) -> str:
    """The name of a class as the `type` of a table: "linear_spring" for LinearSpring."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


@dataclass(frozen=True)
class Element:
    """Base class of everything with declared fields: joints, force elements, constraints, surfaces, bodies, outputs."""

    @property
    def numbers(self) -> Mapping[str, Kind]:
        """Kind of every number by its path, including the numbers of parts ("surface.radius")."""
        return {path: d.kind for path, d, _ in numbers_of(self)}

    @property
    def bodies(self) -> tuple[str, ...]:
        """Fields that name a body."""
        return tuple(d.name for d in declared(type(self)) if d.kind in (Kind.BODY, Kind.BODY_OR_WORLD))

    @property
    def joints(self) -> tuple[str, ...]:
        """Fields that name a joint."""
        return tuple(d.name for d in declared(type(self)) if d.kind is Kind.JOINT)

    def structural(self) -> Self:
        """The element without its numbers: the part that belongs to the static structure."""
        return _without_numbers(self)

    def requirements(self, p: Mapping[str, Any]) -> Mapping[str, Any]:
        """Requirements on the numbers in combination, beyond those of their kinds.

        Returns {remedy: whether the requirement is met}. p: arrays (..., *shape) by path. The method must accept any
        leading axes, and both NumPy and JAX arrays. It raises ModelError if shapes do not match.
        """
        return {}

    def unchecked(self, traced: Collection[str]) -> str | None:
        """The remedy if one of these numbers must not be traced, because only one value of it is possible and a traced value
        cannot be checked; None if all of them may be traced. traced: paths of numbers."""
        return None


def _without_numbers(x: Any) -> Any:
    fields = declared(type(x))
    empty: dict[str, Any] = {d.name: None for d in fields if d.kind.is_number}
    parts = {d.name: _without_numbers(getattr(x, d.name)) for d in fields if d.kind is Kind.PART}
    parts |= {d.name: tuple(_named(getattr(x, d.name))) for d in fields if d.kind is Kind.NUMBERS}
    places = {d.name: getattr(x, d.name) for d in fields if d.kind in _PLACES}
    fixed = {
        name: _fixed(value) for name, value in places.items() if isinstance(value, list) or hasattr(value, "dtype")
    }
    return dataclasses.replace(x, **empty, **parts, **fixed)


def _fixed(x: Any) -> Any:
    """The numbers of an array as tuples, which can be compared and be part of the static structure."""
    return tuple(map(_fixed, x)) if np.ndim(x) else float(x)


def _named(given: Any) -> tuple[tuple[str, Kind], ...]:
    """(name, kind) of the numbers in a field of the kind NUMBERS, from the given ones or from what `structural` keeps."""
    if not isinstance(given, Mapping):
        return tuple(given)
    return tuple((name, Kind.LIST if np.ndim(x) else Kind.NUMBER) for name, x in given.items())


def numbers_of(element: Any, prefix: str = "") -> Iterator[tuple[str, Declared, Any]]:
    """(path, declaration, value) of every number of an element, including those of its parts."""
    for d in declared(type(element)):
        value = getattr(element, d.name)
        if d.kind is Kind.PART:
            assert d.of is not None
            if not isinstance(value, d.of):
                raise ModelError(f"{prefix}{d.name}: {value!r} is not a {d.of.__name__}; pass {_some(d.of)}")
            yield from numbers_of(value, f"{prefix}{d.name}.")
        elif d.kind is Kind.PARTS:
            raise TypeError(f"{type(element).__name__}.{d.name}: only outputs and their shapes have {d.kind}")
        elif d.kind is Kind.NUMBERS:
            for name, kind in _named(value):
                own = Declared(name, kind, "SI", d.doc, MISSING, None, ())
                yield f"{prefix}{name}", own, value[name] if isinstance(value, Mapping) else None
        elif d.kind.is_number:
            yield f"{prefix}{d.name}", d, value


def parts_in(d: Declared, value: Any) -> Sequence[tuple[str, Any]]:
    """(path, part) of the parts in a field with this value: "surface", or "parts[1]"; none if it holds no parts. A part that
    is given with a pose comes without it."""
    if d.kind is Kind.PARTS:
        return [(f"{d.name}[{k}]", x[0] if isinstance(x, tuple) else x) for k, x in enumerate(value)]
    return [(d.name, value)] if d.kind in (Kind.PART, Kind.FIXED_PART) else []


def names_in(element: Any, *kinds: Kind, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(path, name) of every field of these kinds that holds a name, including the fields of parts."""
    for d in declared(type(element)):
        value = getattr(element, d.name)
        for path, part in parts_in(d, value):
            yield from names_in(part, *kinds, prefix=f"{prefix}{path}.")
        if d.kind in kinds and value is not None:
            yield f"{prefix}{d.name}", value


def check_words(element: Any, prefix: str = "") -> None:
    """Raise ModelError for a field of the element, or of its parts, whose word is not one of its choices."""
    for d in declared(type(element)):
        value = getattr(element, d.name)
        for path, part in parts_in(d, value):
            check_words(part, f"{prefix}{path}.")
        if d.kind is Kind.CHOICE and value not in d.choices and value is not d.default:
            raise ModelError(f"{prefix}{d.name} is {value!r}; pass one of {', '.join(map(repr, d.choices))}")


def check_places(element: Any, where: str = "") -> None:
    """Raise ModelError for an axis or a place of the element that is not 3 numbers, or for an axis that is zero. where:
    beginning of the message."""
    for d in declared(type(element)):
        value = getattr(element, d.name)
        if d.kind in _PLACES and not (value is None and d.default is None):
            x = checked(Kind.VECTOR, value, f"{where}{d.name}")
            if d.kind is Kind.AXIS and not np.any(x):
                raise ModelError(f"{where}{d.name}: {value!r} has no direction; pass one of any length but zero")


def check_together(element: Element, p: Mapping[str, np.ndarray]) -> None:
    """Check what the element requires of its numbers in combination. p: arrays by path, with any leading axes.

    Raises ModelError with the remedy and, in a batch, the index of the first instance that is refused.
    """
    with jax.ensure_compile_time_eval():  # plain numbers stay plain inside jax.jit
        required = {remedy: np.asarray(holds) for remedy, holds in element.requirements(p).items()}
    for remedy, holds in required.items():
        if not np.all(holds):
            row = f"instance {int(np.flatnonzero(~holds)[0])}: " if np.ndim(holds) else ""
            raise ModelError(f"{row}{remedy}")


def _some(base: type) -> str:
    """Examples of what a part may be, for messages."""
    names = [c.__name__ for c in base.__subclasses__()] or [base.__name__]
    return " or ".join(f"{name}(...)" for name in names)
