"""The tables of a file of designs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field

from jaxmbs.io.tables import Table, stated
from jaxmbs.study.problem.schema import DispersionName

_DEEPEST = 2  # a value is at most a list of lists, as an inertia or a rotation may be


def value_of(x: Any) -> float | list[Any]:
    """A parameter's value as plain numbers. Raises ValueError if it is not a number, or a list (of lists) of numbers.

    >>> value_of(900), value_of((0.0, 1)), value_of(np.eye(2))
    (900.0, [0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])
    """
    try:
        found = np.asarray(x)
    except ValueError:  # lists of different lengths
        found = np.array(None)
    if found.dtype.kind not in "iuf" or found.ndim > _DEEPEST or not found.size or not np.all(np.isfinite(found)):
        raise ValueError(f"needs a number or a list of numbers, got {x!r}")
    return found.astype(float).tolist()


Value = Annotated[Any, BeforeValidator(value_of, json_schema_input_type=float | list[float])]


class DesignsFile(Table):
    """Designs for `jaxmbs trade`: tables [designs.NAME], or all combinations of the values in [sweep], or the rows of a
    CSV file."""

    top_level: ClassVar[tuple[str, ...]] = ("study", "baseline", "file")

    study: str = stated("file name", "study file beside this one")
    baseline: str | None = stated(
        "name of a design", "design with which the others are compared; the first by default", default=None
    )
    file: str | None = stated(
        "file name",
        "CSV file beside this one: a column `design` with the names, and a column for each parameter; the components of "
        "a list are columns NAME[0], NAME[1] ...",
        default=None,
    )
    designs: dict[str, dict[DispersionName, Value]] = stated(
        "table per design",
        'values of parameters ("spring.stiffness") and of "initial.JOINT.q" or ".v", SI',
        default=dict,
    )
    sweep: dict[DispersionName, Annotated[list[Value], Field(min_length=1)]] = stated(
        "list of values per parameter", "every combination of the values is a design", default=dict
    )
