"""What every joint answers: its numbers, its coordinates and its motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax

from jaxmbs.model.errors import ModelError
from jaxmbs.model.fields import Element, element
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Motion, Transform
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar, add


@components
class JointMotion:
    """Motion of the child joint frame relative to the parent joint frame.

    placement: child frame in the parent frame; S: one motion per degree of freedom, in child axes at the
    child frame's origin; velocity: S v plus the rheonomic part; bias: the acceleration left when dv/dt = 0,
    as the rate of change seen in the child frame [Y 3.99-3.105 in child axes].
    """

    placement: Transform
    S: tuple[Motion, ...]
    velocity: Motion
    bias: Motion


@element
class Joint(Element):
    """Base of all joints: a class with declared fields, its coordinates and its motion."""

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    quaternion: ClassVar[int | None] = None  # index of the quaternion's first component in q

    def motion(self, p: Mapping[str, Any], q: Sequence[Scalar], v: Sequence[Scalar], t: Scalar) -> JointMotion:
        """Placement, S, velocity and bias at coordinates q, rates v, time t; p holds the numbers."""
        raise NotImplementedError

    def rates(self, q: Sequence[Scalar], v: Sequence[Scalar], p: JointMotion) -> tuple[Scalar, ...]:
        """dq/dt, given the motion at (q, v)."""
        return tuple(v)

    def moved(self, q: Sequence[Scalar], change: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Coordinates after a unit of time at the constant rates v = change."""
        return tuple(add(a, b) for a, b in zip(q, change, strict=True))

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which both joint frames coincide."""
        return (0.0,) * self.nq

    def random(self, key: jax.Array) -> jax.Array:
        """Random coordinates: angles in (-pi, pi), displacements in (-1, 1), uniform orientations."""
        scale = jax.numpy.asarray(self._random_ranges())
        return jax.random.uniform(key, (self.nq,), minval=-1.0, maxval=1.0) * scale

    def _random_ranges(self) -> tuple[float, ...]:
        return (1.0,) * self.nq

    @property
    def rheonomic(self) -> bool:
        return False


def velocity_of(S: Sequence[Motion], v: Sequence[Scalar]) -> Motion:
    """S v."""
    total = ZERO_MOTION
    for column, rate in zip(S, v, strict=True):
        total = total + column * rate
    return total


def fixed_motion(placement: Transform, S: tuple[Motion, ...], v: Sequence[Scalar]) -> JointMotion:
    """Motion of a joint whose S is constant in the child frame."""
    return JointMotion(placement, S, velocity_of(S, v), ZERO_MOTION)


@element
class Fixed(Joint):
    """No relative motion. q: none.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_body("tip", mass=0.1)
    >>> mech.add_joint("bolt", mbs.Fixed(), "lower", "tip", mbs.Pose((0, 0, -1)))
    >>> mech.build().nv
    2
    """

    def motion(self, p: Mapping[str, Any], q: Sequence[Scalar], v: Sequence[Scalar], t: Scalar) -> JointMotion:
        return JointMotion(IDENTITY, (), ZERO_MOTION, ZERO_MOTION)


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ModelError(message)
