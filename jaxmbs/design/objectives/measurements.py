"""Measured columns, as arrays or in a CSV file next to the problem's file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from jaxmbs.design.objectives.base import Objective
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field

if TYPE_CHECKING:
    from jaxmbs.model import Model


@element
class Measured(Objective):
    """Base: differences between what a model predicts and what was measured, in units of the noise."""

    noisy: ClassVar[bool] = True

    measurements: Mapping[str, np.ndarray | jax.Array | Sequence[float]] | None = field(
        Kind.ARRAYS, "", "arrays by name, a row for each instant", default=None
    )
    file: str = field(
        Kind.TEXT,
        "",
        "CSV file beside this one with a column for each array; empty cells are gaps",
        default="",
        kw_only=True,
    )

    def named(self) -> Mapping[str, Any]:
        """The arrays by name. Raises ModelError if there are none."""
        if self.measurements is None:
            raise ModelError(
                f"{type(self).__name__}: nothing is measured; pass measurements, or in a file the CSV's name"
            )
        return self.measurements

    def of_columns(self, model: Model, columns: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """The measurements in the columns of a file. Raises ModelError for columns with unknown names."""
        return columns


def with_data(objective: Objective, model: Model, folder: Path) -> Objective:
    """The objective with the measurements of its file in `folder`. Raises ModelError for a file name with a path and for
    errors in the file."""
    if not isinstance(objective, Measured) or not objective.file:
        return objective
    name = objective.file
    if Path(name).name != name:
        raise ModelError(f'file = "{name}": give the name of a file in the same folder, without a path')
    return replace(objective, measurements=objective.of_columns(model, read_columns(folder / name)))


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Every column of a CSV file with a header, (rows,) each; empty cells become NaN."""
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f'file = "{path.name}" cannot be read: {error}') from None
    head = [name.strip() for name in lines[0]] if lines else []
    rows = [(k, row) for k, row in enumerate(lines[1:], 2) if any(cell.strip() for cell in row)]
    if not head or not rows or len(set(head)) < len(head):
        raise ModelError(
            f'file = "{path.name}": write a header with a name for each column, and a row for each instant'
        )
    found = np.full((len(rows), len(head)), np.nan)
    for k, (number, row) in enumerate(rows):
        for j, cell in enumerate(row[: len(head)]):
            try:
                found[k, j] = float(cell) if cell.strip() else np.nan
            except ValueError:
                raise ModelError(
                    f'file = "{path.name}", line {number}: {head[j]} is "{cell}", which is not a number'
                ) from None
    return dict(zip(head, found.T, strict=True))


def coordinate(model: Model, column: str, what: str) -> tuple[str, int] | None:
    """("q", "v" or another letter, index) of a column such as "joint.q" or "joint.v[2]"; None for other names.

    what: the accepted letters, separated by spaces. Raises ModelError for unknown joints and for indices out of range.
    """
    joint, dot, rest = column.rpartition(".")
    letter, _, index = rest.partition("[")
    if not dot or letter not in what.split():
        return None
    if joint not in model.joint_names:
        raise unknown("joint", joint, model.joint_names, f"measurements, column {column!r}")
    own = model.q_slice(joint) if letter == "q" else model.v_slice(joint)
    k = int(index.rstrip("]")) if index.rstrip("]").isdigit() else 0
    if own.start + k >= own.stop:
        raise ModelError(
            f"measurements, column {column!r}: joint {joint!r} has {own.stop - own.start} of them, numbered from 0"
        )
    return letter, own.start + k
