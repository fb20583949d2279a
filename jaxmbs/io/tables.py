"""The base class of all tables of a file, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from jaxmbs.io.errors import InputError, Problem, choices, close, problems_of
from jaxmbs.io.units import check_unit
from jaxmbs.model.field_rules import Kind

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*(\.[A-Za-z_][A-Za-z0-9_\-]*)+")


class Table(BaseModel):
    """Base class of all tables: immutable; an unknown key is an error that names close matches.

    A table that is made in Python raises InputError with all its faults.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    top_level: ClassVar[tuple[str, ...]] = ("criteria", "modules")  # below a [table] they would be keys of that table

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            own = type(self).__name__
            found = [Problem(f"{own}.{p.path}" if p.path else own, p.message) for p in problems_of(error, data)]
            raise InputError(found) from None

    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]  # tables in tables do not call it

    @classmethod
    def instead(cls, key: str, value: Any) -> str | None:
        """What to write instead of a key that does not exist, if it is known what is meant."""
        return None

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        unknown = {k: v for k, v in data.items() if k not in cls.model_fields} if isinstance(data, Mapping) else {}
        if not unknown:
            return validate(data)
        found = []
        for key, value in unknown.items():
            remedy = cls.instead(str(key), value)
            context = {"known": list(cls.model_fields), "top": cls.top_level, "instead": remedy}
            said = f"unknown key; {remedy or choices(str(key), cls.model_fields, 'allowed keys')}"
            found.append(_error("unknown_key", said, (key,), value, context))
        try:  # all other faults are reported at the same time
            validate({k: v for k, v in data.items() if k not in unknown})
        except ValidationError as error:
            found += [_error(e["type"], e["msg"], e["loc"], e["input"], e.get("ctx", {})) for e in error.errors()]
        raise ValidationError.from_exception_data(cls.__name__, found)


def _error(kind: Any, message: str, loc: tuple[Any, ...], value: Any, context: dict[str, Any]) -> InitErrorDetails:
    said = PydanticCustomError(kind, "{said}", {**context, "said": message})
    return InitErrorDetails(type=said, loc=loc, input=value)


def _numbers(value: Any, n: int) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or len(value) != n or not all(map(is_number, value)):
        raise ValueError(f"needs a list of {n} numbers, got {value!r}")
    return tuple(float(x) for x in value)


def is_number(value: Any) -> bool:
    """Whether a value of a file is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _vector(value: Any) -> tuple[float, ...]:
    return _numbers(value, 3)


def _points(value: Any) -> tuple[tuple[float, ...], ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(f"needs a list of points, each a list of 3 numbers, got {value!r}")
    return tuple(_numbers(x, 3) for x in value)


def _direction(value: Any) -> tuple[float, ...]:
    v = _numbers(value, 3)
    if not any(v):
        raise ValueError(f"is a direction and cannot be {value!r}; its length does not matter, but it must not be zero")
    return v


def _inertia(value: Any) -> tuple[Any, ...]:
    return _list_or_matrix(value, 3, "three principal values")


def _rotation(value: Any) -> tuple[Any, ...]:
    return _list_or_matrix(value, 4, "a quaternion [w, x, y, z]")


def _list_or_matrix(value: Any, n: int, list_: str) -> tuple[Any, ...]:
    if isinstance(value, (list, tuple)) and len(value) == 3 and all(isinstance(row, (list, tuple)) for row in value):
        return tuple(_numbers(row, 3) for row in value)
    if isinstance(value, (list, tuple)) and len(value) == n and all(map(is_number, value)):
        return _numbers(value, n)
    raise ValueError(f"needs {list_} or a 3x3 matrix (three lists of 3 numbers), got {value!r}")


def _list(value: Any) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or not value or not all(map(is_number, value)):
        raise ValueError(f"needs a list of numbers, got {value!r}")
    return tuple(float(x) for x in value)


class Measured(list[float]):
    """A column of a file in SI, with the unit in which it was given; "" if the file does not say it."""

    unit: str = ""


def list_in_file(units: str, value: Any) -> tuple[float, ...]:
    """A list of numbers. units: the SI units that they may have, such as "rad or m"."""
    if isinstance(value, dict):
        raise ValueError(f"needs a list of numbers, or a table with the keys `file` and `column`, got {value!r}")
    if isinstance(value, Measured) and value.unit:
        check_unit(value.unit, units.split(" or "))
    return _list(value)


def _scalar_or_list(value: Any) -> float | tuple[float, ...]:
    if is_number(value):
        return float(value)
    if isinstance(value, (list, tuple)):
        return _list(value)
    raise ValueError(f"needs a number or a list of numbers, got {value!r}")


def _instant(value: Any) -> float | str:
    if is_number(value):
        return float(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError(
        f'needs seconds, such as 0.5, or a sentence, such as "travel > 0.1 m" or "event latch", got {value!r}'
    )


def _listed(value: Any) -> tuple[Any, ...]:
    """A list of names; a single name stands for a list of one."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names:
        raise ValueError(f"needs a name or a list of names, got {value!r}")
    return tuple(names)


def _some(item: Any) -> Any:
    """What a file may have for names: one, or a list."""
    return item | Annotated[list[item], Field(min_length=1)]


def _parameter(value: Any) -> str:
    if not isinstance(value, str) or not _PARAMETER.fullmatch(value):
        raise ValueError(f'needs the name of a parameter, ELEMENT.FIELD, such as "wheel.torque", got {value!r}')
    return value


def _matrix(value: Any) -> tuple[tuple[float, ...], ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(f"needs a square matrix as a list of rows, got {value!r}")
    return tuple(_numbers(row, len(value)) for row in value)


def _function(value: Any, info: ValidationInfo) -> Any:
    """The function of this name, or `value` itself if it is a function; the validation's context holds all
    functions."""
    known = info.context or {}
    if callable(value):
        return value
    if not isinstance(value, str):
        raise ValueError(f'needs the name of a function, such as "my_functions.drag", got {value!r}')
    if value not in known:
        module = value.partition(".")[0]
        there = any(name.partition(".")[0] == module for name in known) or close(value, known)
        remedy = choices(value, known, "functions") if there else f'name its module: modules = ["{module}.py"]'
        raise ValueError(f'there is no function "{value}"; {remedy}')
    return known[value]


Name = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z_][A-Za-z0-9_\-]*$")]
Parameter = Annotated[str, BeforeValidator(_parameter), Field(min_length=1, pattern=f"^{_PARAMETER.pattern}$")]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Vector = Annotated[tuple[float, float, float], BeforeValidator(_vector)]
Direction = Annotated[tuple[float, float, float], BeforeValidator(_direction)]
Numbers = Annotated[tuple[float, ...], BeforeValidator(_list)]
NumberOrList = Annotated[float | tuple[float, ...], BeforeValidator(_scalar_or_list)]
Matrix = Annotated[tuple[tuple[float, ...], ...], BeforeValidator(_matrix)]
Inertia = Annotated[Any, BeforeValidator(_inertia)]
Rotation = Annotated[Any, BeforeValidator(_rotation)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_listed, json_schema_input_type=_some(Name))]
Parameters = Annotated[tuple[Parameter, ...], BeforeValidator(_listed, json_schema_input_type=_some(Parameter))]
Points = Annotated[Any, BeforeValidator(_points)]
Instant = Annotated[float | str, BeforeValidator(_instant)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Function = Annotated[Any, PlainValidator(_function, json_schema_input_type=str)]


def stated(kind: str, doc: str, *, unit: str = "", default: Any = ..., **checks: Any) -> Any:
    """Declare a key that is not a field of a class: the kind of its value, a line of documentation, SI unit and
    default."""
    values = {"default_factory": default} if callable(default) else {"default": default}
    return Field(description=doc, json_schema_extra={"kind": kind, "unit": unit}, **values, **checks)


class Column(Table):
    """A column of a CSV file beside this one, whose first line has the names."""

    file: str = stated("file name", "CSV file")
    column: str = stated("text", "name of the column")
    unit: str | None = stated("unit", "of its numbers, which are converted; SI by default", default=None)
    factor: Number = stated("number", "by which its numbers are multiplied, in place of a unit", default=1.0)


def numbers_in_file(units: str) -> Any:
    """Annotation of a list of numbers that may be a column of a file; units: see `list_in_file`."""
    check = BeforeValidator(partial(list_in_file, units), json_schema_input_type=tuple[float, ...] | Column)
    return Annotated[tuple[float, ...], check]


# the type in a file of a field of each kind; the model checks everything else about numbers
IN_FILE: dict[Kind, Any] = {
    Kind.NUMBER: Number, Kind.NOT_NEGATIVE: NotNegative, Kind.POSITIVE: Positive, Kind.VECTOR: Vector,
    Kind.NOT_NEGATIVE_VECTOR: Vector, Kind.DIRECTION: Vector, Kind.ROTATION: Rotation,
    Kind.INERTIA: Inertia, Kind.AXIS: Direction, Kind.BODY: Name, Kind.BODY_OR_WORLD: Name, Kind.JOINT: Name,
    Kind.FLAG: Flag, Kind.COUNT: Count, Kind.TEXT: str, Kind.INSTANT: Instant,
    Kind.NAMES: Names, Kind.PARAMETERS: Parameters, Kind.PERIOD: Positive, Kind.PLACE: Vector, Kind.POINTS: Points,
    Kind.LENGTH: Positive, Kind.FUNCTION: Function, Kind.FUNCTIONS: tuple[Function, ...],
    Kind.NUMBERS: dict[Name, NumberOrList],
}  # fmt: skip
