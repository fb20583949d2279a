"""Spring on a joint."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.model.kinds import Kind
from jaxmbs.spatial.scalar import Scalar, mul, sub


@element
class TorsionSpring(Force):
    """Spring and damper on the coordinate of a joint with one degree of freedom.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("coil", mbs.TorsionSpring("elbow", stiffness=5.0, damping=0.1, rest_angle=1.6))
    >>> mbs.get(mech.build(), "coil.rest_angle")
    1.6
    """

    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it acts on")
    stiffness: Number = field(
        Kind.NOT_NEGATIVE, "N m/rad or N/m", "moment per angle, or force per displacement", default=0.0
    )
    damping: Number = field(Kind.NOT_NEGATIVE, "N m s/rad or N s/m", "moment or force per rate", default=0.0)
    rest_angle: Number = field(Kind.NUMBER, "rad or m", "coordinate without moment or force", default=0.0)
    freedoms: ClassVar[int | None] = 1

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        (q,), (v,) = scene.coordinates(self.joint), scene.rates(self.joint)
        elastic = mul(p["stiffness"], sub(p["rest_angle"], q))
        loads.joint(self.joint, [sub(elastic, mul(p["damping"], v))])

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        e = sub(scene.coordinates(self.joint)[0], p["rest_angle"])
        return mul(mul(0.5, p["stiffness"]), mul(e, e))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        v = scene.rates(self.joint)[0]
        return mul(mul(-1, p["damping"]), mul(v, v))
