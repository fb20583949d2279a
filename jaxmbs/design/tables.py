"""The [design] table of a file."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationInfo, create_model

from jaxmbs.design.objectives.base import Objective
from jaxmbs.design.problem import METHODS
from jaxmbs.io.errors import choices
from jaxmbs.io.generated import Classes, any_of
from jaxmbs.io.tables import Name, NumberOrList, Positive, Table, Vector, stated

Bounds = Annotated[list[Positive], Field(min_length=2, max_length=2)]


class ParameterTable(Table):
    """A parameter that may change, or several that stay equal."""

    type: Literal["parameter"] = stated("word", "names the type")
    names: list[str] = stated("list of names", 'parameters with one common value: ["spring.stiffness"]', min_length=1)
    low: NumberOrList | None = stated("number or list", "smallest value, if there is one", default=None)
    high: NumberOrList | None = stated("number or list", "largest value, if there is one", default=None)
    unit: str = stated("unit", "unit of low and high; SI by default", default="")
    components: list[Annotated[int, Field(strict=True, ge=0)]] | None = stated(
        "list of integers", "components of a vector that are free, from 0; all by default", default=None
    )


class FactorTable(Table):
    """A common factor on the values of several parameters: one material for many panels."""

    type: Literal["factor"] = stated("word", "names the type")
    names: list[str] = stated("list of names", "parameters that the factor acts on", min_length=1)
    low: Positive | None = stated("number > 0", "smallest factor, if there is one", default=None)
    high: Positive | None = stated("number > 0", "largest factor, if there is one", default=None)


class MassDistributionTable(Table):
    """Centre of mass and inertia of bodies, free for each body but always physically possible."""

    type: Literal["mass_distribution"] = stated("word", "names the type")
    bodies: list[Name] = stated("list of bodies", "bodies, each with a distribution of its own", min_length=1)
    mass: Bounds | None = stated(
        "2 numbers > 0", "bounds of the mass; it stays as given by default", unit="kg", default=None
    )
    center: Vector = stated("3 numbers", "centre of the envelope, in the body", unit="m", default=(0.0, 0.0, 0.0))
    half_axes: Vector | None = stated(
        "3 numbers",
        "half-axes of an ellipsoid that holds all of the mass; no envelope by default",
        unit="m",
        default=None,
    )
    pole: Vector = stated(
        "3 numbers", "point that relations count first moments and inertia from", unit="m", default=(0.0, 0.0, 0.0)
    )
    least_thickness: Annotated[float, Field(ge=0)] = stated(
        "number >= 0", "least extent in every direction: that of a plate of this thickness", unit="m", default=0.0
    )
    equal: list[Name] = stated("list of bodies", "bodies that are the same as the only body in `bodies`", default=list)
    mirrored: list[Name] = stated("list of bodies", "bodies that are its mirror image", default=list)
    across: Literal["x", "y", "z"] = stated(
        "x | y | z", "axis of their frame that the mirror is normal to", default="x"
    )


AnyFree = Annotated[ParameterTable | FactorTable | MassDistributionTable, Field(discriminator="type")]


def _method(value: Any, info: ValidationInfo) -> Any:
    """The name of a method, or the function with this name."""
    functions = info.context or {}
    if value not in (*METHODS, *functions):
        raise ValueError(f'there is no method "{value}"; {choices(str(value), [*METHODS, *functions], "methods")}')
    return value if value in METHODS else functions[value]


Method = Annotated[Any, PlainValidator(_method, json_schema_input_type=str)]


class _DesignTable(Table):
    """What may change, what is wanted, and how to search for it."""

    free: list[AnyFree] = stated("table per item", "what may change; all else stays", min_length=1)
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = stated(
        "integer >= 0", "of all random numbers", default=0
    )
    starts: Annotated[int, Field(strict=True, ge=1)] = stated(
        "integer >= 1", "searches; the first begins at the values of the file", default=16
    )
    spread: Positive = stated(
        "number > 0", "how far random starts lie about the values of the file, relatively", default=0.5
    )
    tolerance: Positive = stated("number > 0", "largest residual of a condition that holds", default=1e-10)
    max_steps: Annotated[int, Field(strict=True, ge=1)] = stated("integer >= 1", "most steps of a search", default=200)
    method: Method = stated(
        "least_squares | adam | constrained | function",
        "Levenberg-Marquardt; Adam with fresh samples in every step; sequential quadratic programming under conditions; or "
        "the name of a function of the learning rate that returns an optimiser of optax, in place of Adam",
        default="least_squares",
    )
    learning_rate: Positive = stated("number > 0", "of Adam, or of the function's optimiser", default=0.02)
    check: Annotated[int, Field(strict=True, ge=0)] = stated(
        "integer >= 0", "samples, or configurations, that the report compares before and after with", default=1000
    )


@functools.cache
def design_table(known: Classes) -> Any:
    """The [design] table that accepts the known classes of objectives."""
    objectives: Any = Annotated[list[any_of(Objective, known)], Field(min_length=1)]  # type: ignore[misc]
    wanted: Any = (objectives, stated("table per objective", "what is wanted"))
    return create_model("DesignTable", __base__=_DesignTable, __doc__=_DesignTable.__doc__, objectives=wanted)
