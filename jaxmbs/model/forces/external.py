"""Force of a user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.functions import check_arguments
from jaxmbs.model.given import Vector
from jaxmbs.model.kinds import Kind
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, add, mul, total


@element
class External(Force):
    """A user's force. fn(model, t, q, v) returns generalized forces (nv,), or, when a body is named,
    (moment, force) (6,) in world axes, acting at `point` in body axes.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("drag", mbs.External(lambda model, t, q, v: -0.1 * v * jnp.abs(v)))
    >>> print(mbs.bias_forces(mech.build(), [0.0, 0.0], [0.0, 2.0]).round(3))
    [0.  0.4]
    """

    source: ClassVar[bool] = True
    fn: Callable[..., Any] = field(Kind.FUNCTION, "", "fn(model, t, q, v), written with jax.numpy")
    body: str | None = field(Kind.BODY, "", "body that it acts on, if any", default=None)
    point: Vector = field(Kind.VECTOR, "m", "where it acts, in body axes", default=(0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        check_arguments(self.fn, "External: fn")

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        values = scene.external
        if self.body is None:
            loads.generalized(values)
            return
        loads.moment(self.body, Vector3.of(values[:3]))
        loads.force(self.body, Vector3.of(values[3:]), p["point"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        values = scene.external
        if self.body is None:
            return total(*(mul(f, v) for f, v in zip(values, scene.all_rates, strict=True)))
        moment, force = Vector3.of(values[:3]), Vector3.of(values[3:])
        return add(moment @ scene.angular(self.body), force @ scene.velocity(self.body, p["point"]))
