"""Kinds of declared fields, and a table of their rules: the same for a single value, a batch and a traced sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxmbs.model.errors import ModelError
from jaxmbs.spatial import Matrix3, Symmetric3, Vector3, from_quaternion
from jaxmbs.spatial.scalar import Scalar

Array = Any


class Kind(StrEnum):
    """What a declared field holds; the value of a member is its text in the key reference."""

    # numbers: parameters of a model
    NUMBER = "number"
    NOT_NEGATIVE = "number >= 0"
    POSITIVE = "number > 0"
    VECTOR = "3 numbers"
    NOT_NEGATIVE_VECTOR = "3 numbers >= 0"
    DIRECTION = "unit vector"
    LIST = "list of numbers"
    ROTATION = "quaternion or 3x3"
    INERTIA = "3 numbers or 3x3"
    # the rest belongs to the structure
    AXIS = "direction of any length"
    PART = "table"  # an object with declared fields of its own
    FIXED_PART = "table of fixed numbers"  # an object whose numbers are no parameters
    PARTS = "list of tables"  # several of them, whose numbers are no parameters
    BODY = "body"
    BODY_OR_WORLD = "body or world"
    JOINT = "joint"
    FLAG = "true or false"
    CHOICE = "one of several words"
    COUNT = "integer >= 0"
    TEXT = "text"
    INSTANT = "seconds or a sentence"
    NAMES = "list of names"
    PARAMETERS = "list of parameters"
    PERIOD = "seconds > 0"
    LENGTH = "metres > 0"
    PLACE = "point"
    POINTS = "list of points"
    FUNCTION = "function"  # in a file, the name of a function of a package or module
    FUNCTIONS = "list of functions"
    ARRAYS = "arrays"  # cannot be written in a file
    NUMBERS = "numbers by name"  # each of them a parameter of the model: a number or a list of numbers

    @property
    def is_number(self) -> bool:
        """Whether a field of this kind becomes a parameter."""
        return self in RULES


@dataclass(frozen=True)
class Rule:
    """How the numbers of a kind are given, checked and split into components.

    forms: the shapes in which one value may be given, first the one that `get` returns; (None,) means one axis of any
    length but zero; said: the forms in words; allowed: function of values (..., *form) -> bool (...), for NumPy or JAX
    arrays; reason: why a value is refused, with the remedy; parts: converts a value, traced or not, to components; whole:
    converts components to one value of the component algebra.
    """

    said: str
    forms: tuple[tuple[int | None, ...], ...]
    allowed: Callable[[Array], Array] | None = None
    reason: Callable[[np.ndarray], str] = lambda x: ""
    parts: Callable[[Array], tuple[Scalar, ...]] = lambda x: tuple(x.reshape(-1))
    whole: Callable[[Sequence[Any]], Any] = tuple

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether one value may have this shape."""
        if self.forms == ((None,),):
            return len(shape) == 1 and shape[0] > 0
        return shape in self.forms

    def rank(self, shape: tuple[int, ...]) -> int:
        """Number of axes of one value, in an array of values that has this shape and begins with the batch axes."""
        return max(len(f) for f in self.forms if f in ((None,), shape[len(shape) - len(f) :]))


SYMMETRIC = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
_TOLERANCE = 1e-9


# --- directions, rotations and inertias -----------------------------------------------------------------------------


def _unit(x: Array) -> Array:
    return abs((x * x).sum(-1) ** 0.5 - 1) <= _rounding(x, 1e-6)


def _not_unit(x: np.ndarray) -> str:
    n = float(np.linalg.norm(x))
    remedy = f"pass {tuple(round(float(c), 9) for c in x / n)}" if n > 1e-12 else "pass a direction"
    return f"has length {n:.6g}, not 1; {remedy}"


def _rounding(x: Array, tolerance: float) -> float:
    return max(tolerance, 100 * float(np.finfo(x.dtype).eps))


def _proper(x: Array) -> Array:
    if x.shape[-2:] != (3, 3):
        return (x * x).sum(-1) > 1e-24  # a quaternion of any length
    off = abs(x @ x.swapaxes(-1, -2) - np.eye(3).reshape(*[1] * (x.ndim - 2), 3, 3)).max((-1, -2))
    return (off <= _rounding(x, 1e-6)) & ((x[..., 0, :] * _cross(x[..., 1, :], x[..., 2, :])).sum(-1) > 0)


def _cross(a: Array, b: Array) -> Array:
    return (np if isinstance(a, np.ndarray) else jnp).cross(a, b)


def _not_proper(x: np.ndarray) -> str:
    if x.shape == (4,):
        return "is a zero quaternion; for no rotation pass (1, 0, 0, 0)"
    off = float(np.abs(x @ x.T - np.eye(3)).max())
    return (
        f"is not a proper rotation matrix (R Rᵀ differs from 1 by {off:.1e}, det {np.linalg.det(x):+.3f}); pass a rotation "
        "matrix or a quaternion"
    )


def _matrix(x: Array) -> tuple[Scalar, ...]:
    if x.shape == (3, 3):
        return tuple(x.reshape(9))
    if not isinstance(x, np.ndarray):
        return tuple(from_quaternion(list(x)))
    w, x, y, z = x / np.linalg.norm(x)
    return (
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    )  # fmt: skip


def _inertia_of_some_body(x: Array) -> Array:
    """Whether a body can have the inertia: symmetric, no principal moment negative or above the sum of the others."""
    xp = np if isinstance(x, np.ndarray) else jnp
    moments = xp.linalg.eigvalsh((x + x.swapaxes(-1, -2)) / 2) if _is_matrix(x) else xp.sort(x, -1)
    slack = _rounding(x, _TOLERANCE) * abs(moments).max(-1)
    fine = (moments[..., 0] >= -slack) & (moments[..., 2] - moments[..., 1] - moments[..., 0] <= slack)
    return fine & _is_symmetric(x) if _is_matrix(x) else fine


def _is_matrix(x: Array) -> bool:
    return x.shape[-2:] == (3, 3)


def _is_symmetric(x: Array) -> Array:
    return abs(x - x.swapaxes(-1, -2)).max((-1, -2)) <= _rounding(x, _TOLERANCE) * abs(x).max((-1, -2))


def _no_inertia(x: np.ndarray) -> str:
    if x.ndim == 2 and not _is_symmetric(x):
        return "is not the inertia of a body: the 3x3 matrix is not symmetric"
    moments = np.linalg.eigvalsh(x) if x.ndim == 2 else np.sort(x)
    said = ", ".join(f"{m:.6g}" for m in moments)
    if moments[0] < -_TOLERANCE * abs(moments).max():
        why = "must not be negative; give it about the centre of mass"
    else:
        why = (
            "break the triangle inequality (the largest exceeds the sum of the others); check units, signs of the "
            "products, and that it is about the centre of mass"
        )
    return f"is not the inertia of a body: principal moments {said} {why}"


def _six(x: Array) -> tuple[Scalar, ...]:
    if x.shape == (3,):
        return (x[0], x[1], x[2], 0, 0, 0)
    x = (x + x.T) / 2  # both triangles contribute, so that the derivative with respect to the matrix is symmetric
    return tuple(x[i, j] for i, j in SYMMETRIC)


def _first(c: Sequence[Any]) -> Any:
    return c[0]


# --- the table --------------------------------------------------------------------------------------------------------

_ONE, _THREE = ("one number", ((),)), ("3 numbers", ((3,),))
RULES: dict[Kind, Rule] = {
    Kind.NUMBER: Rule(*_ONE, whole=_first),
    Kind.NOT_NEGATIVE: Rule(*_ONE, lambda x: x >= 0, lambda x: "is negative; it must be zero or more", whole=_first),
    Kind.POSITIVE: Rule(*_ONE, lambda x: x > 0, lambda x: "must be more than zero", whole=_first),
    Kind.VECTOR: Rule(*_THREE, whole=Vector3.of),
    Kind.NOT_NEGATIVE_VECTOR: Rule(
        *_THREE, lambda x: (x >= 0).all(-1), lambda x: "has a negative component; all must be zero or more",
        whole=Vector3.of,
    ),
    Kind.DIRECTION: Rule(*_THREE, _unit, _not_unit, whole=Vector3.of),
    Kind.LIST: Rule("a list of numbers", ((None,),), whole=tuple),
    Kind.ROTATION: Rule(
        "a quaternion (w, x, y, z) or a 3x3 matrix", ((3, 3), (4,)), _proper, _not_proper, _matrix, Matrix3.of
    ),
    Kind.INERTIA: Rule(
        "three principal moments or a 3x3 matrix", ((3, 3), (3,)), _inertia_of_some_body, _no_inertia, _six,
        lambda c: Symmetric3(*c),
    ),
}  # fmt: skip


def refused(kind: Kind, x: Array) -> Array:
    """Whether values (..., *form) break the rule of their kind or are not finite; works for traced values."""
    rule = RULES[kind]
    lead = x.shape[: x.ndim - rule.rank(x.shape)]
    finite = (abs(x) < np.inf).reshape(*lead, -1).all(-1)
    return ~finite if rule.allowed is None else ~(finite & rule.allowed(x))


def checked(kind: Kind, value: Any, where: str) -> np.ndarray:
    """One value of plain numbers as an array, in the form in which it was given. Raises ModelError with the remedy."""
    x, rule = as_numbers(value, where), RULES[kind]
    if not rule.fits(x.shape):
        raise ModelError(f"{where}: {value!r} has shape {x.shape}; pass {rule.said}")
    if not np.all(np.isfinite(x)):
        raise ModelError(f"{where}: {value!r} has a value that is not finite")
    if refused(kind, x):
        raise ModelError(f"{where}: {x.tolist()!r} {rule.reason(x)}")
    return x


def checked_rows(kind: Kind, value: Any, where: str) -> None:
    """Check a batch (B, *form). Raises ModelError that names the first instance that is refused."""
    x = as_numbers(value, where)
    rows = np.flatnonzero(_refused_rows(kind, x))
    if rows.size:
        row, many = int(rows[0]), f" (and {rows.size - 1} more)" if rows.size > 1 else ""
        reason = RULES[kind].reason(x[row]) if np.all(np.isfinite(x[row])) else "has a value that is not finite"
        raise ModelError(f"{where}: instance {row}{many}: {x[row].tolist()!r} {reason}")


def _refused_rows(kind: Kind, x: np.ndarray) -> np.ndarray:
    """As `refused`, but the first axis is always the batch: principal moments of three instances are not a matrix."""
    if kind is Kind.INERTIA and x.ndim == 2:
        return refused(kind, x[:, None, :])[:, 0]
    return refused(kind, x)


def as_numbers(value: Any, where: str) -> np.ndarray:
    """An array of real numbers. Raises ModelError for all else."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        x = np.asarray(value, float)
        if isinstance(value, (int, float, np.ndarray)) or np.asarray(value).dtype.kind not in "SU":
            return x
    except (TypeError, ValueError):
        if any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(value)):
            raise ModelError(
                f"{where} is traced; build with a plain number, and pass the traced one to mbs.set"
            ) from None
    raise ModelError(f"{where}: {value!r} is not a number or an array of numbers")
