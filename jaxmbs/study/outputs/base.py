"""What every output answers, and what is kept of its history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxmbs.model.fields import Element, declared, element, field
from jaxmbs.model.kinds import Kind

if TYPE_CHECKING:
    from jaxmbs.model.forces.base import Scene
    from jaxmbs.model.joints import Joint

Scalar = Any
REDUCTIONS = ("final", "min", "max", "time_of_min", "time_of_max", "time_out")
KEPT = "what is kept of the history: a value, or the time at which it occurs"


@element
class Described(Element):
    """Geometry that outputs speak of; its directions are unit vectors once it is made."""

    def __post_init__(self) -> None:
        for d in declared(type(self)):
            direction = getattr(self, d.name)
            if d.kind is Kind.AXIS and direction is not None:
                length = math.hypot(*direction)
                object.__setattr__(self, d.name, tuple(x / length for x in direction))


@element
class Output(Described):
    """Base of the outputs: a quantity of the motion, folded over time to one number per sample."""

    always_defined: ClassVar[bool] = True

    reduce: str = field(Kind.CHOICE, "", KEPT, default="final", choices=REDUCTIONS, kw_only=True)
    unit: str | None = field(Kind.TEXT, "", "unit that reports show, SI by default", default=None, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        """What the history measures, given the type of every joint."""
        raise NotImplementedError

    def measures(self, joints: Mapping[str, Joint]) -> str:
        """What the output measures: the history's quantity, or a time."""
        return "time" if self.reduce.startswith("time") else self.quantity(joints)

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        """(key, remedy) of what does not fit the mechanism; the bodies and joints that it names exist."""
        yield from ()

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        """Value now in SI, and whether it is defined now."""
        raise NotImplementedError

    def start(self) -> tuple[Any, Any]:
        """State of the fold before the first time: value, time."""
        return {"min": np.inf, "time_of_min": np.inf, "max": -np.inf, "time_of_max": -np.inf}.get(
            self.reduce, np.nan
        ), np.nan

    def fold(self, state: tuple[Any, Any], measured: tuple[Scalar, Scalar], t: Scalar) -> tuple[Any, Any]:
        """State with the present moment taken in."""
        best, when = state
        value, defined = jnp.asarray(measured[0], best.dtype), measured[1]
        t = jnp.asarray(t, best.dtype)
        if self.reduce == "final":
            return jnp.where(defined, value, jnp.nan), when
        if self.reduce == "time_out":
            return best, jnp.where(defined | ~jnp.isnan(when), when, t)
        # ~(a >= b) instead of a < b: a value that is not a number must not pass unseen
        better = defined & (~(value >= best) if self.reduce.endswith("min") else ~(value <= best))
        return jnp.where(better, value, best), jnp.where(better, t, when)

    def result(self, state: tuple[Any, Any]) -> Scalar:
        """The output, in SI; not a number where it was never defined."""
        best, when = state
        return when if self.reduce.startswith("time") else jnp.where(jnp.isinf(best), jnp.nan, best)


def turned(rotation: Any, vector: Any) -> Any:
    """rotation @ vector."""
    return rotation @ vector


def normals(direction: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors orthogonal to the unit vector `direction` and to each other."""
    d = np.asarray(direction, float)
    first = np.cross(d, np.eye(3)[np.argmin(np.abs(d))])
    first /= np.linalg.norm(first)
    return first, np.cross(d, first)
