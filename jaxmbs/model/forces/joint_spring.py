"""Spring on a joint."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar


@element
class _Spring(Force):
    """Spring and damper on the coordinate of a joint; subclasses declare the rest coordinate as their last field."""

    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it acts on")
    stiffness: Number = field(
        Kind.NOT_NEGATIVE, "N m/rad or N/m", "moment per angle, or force per displacement", default=0.0
    )
    damping: Number = field(Kind.NOT_NEGATIVE, "N m s/rad or N s/m", "moment or force per rate", default=0.0)
    freedoms: ClassVar[int | None] = 1
    rest: ClassVar[str]

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        (q,), (v,) = scene.coordinates(self.joint), scene.rates(self.joint)
        elastic = p["stiffness"] * (p[self.rest] - q)
        loads.joint(self.joint, [elastic - p["damping"] * v])

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        e = scene.coordinates(self.joint)[0] - p[self.rest]
        return 0.5 * p["stiffness"] * (e * e)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        v = scene.rates(self.joint)[0]
        return -p["damping"] * (v * v)


@element
class JointSpring(_Spring):
    """Spring and damper on the coordinate of a joint with one degree of freedom, such as the angle of a hinge or the
    displacement of a slider. The force along the coordinate is stiffness (rest_coordinate - q) - damping dq/dt. `build`
    raises ModelError if the joint has another number of degrees of freedom.

    >>> mech = mbs.library.crank_slider()
    >>> mech.add_force("return", mbs.JointSpring("guide", stiffness=200.0, damping=1.0, rest_coordinate=0.3))
    >>> mbs.get(mech.build(), "return.rest_coordinate")
    0.3
    """

    rest_coordinate: Number = field(Kind.NUMBER, "rad or m", "coordinate without moment or force", default=0.0)
    rest: ClassVar[str] = "rest_coordinate"


@element
class TorsionSpring(_Spring):
    """`JointSpring` under its older name, with `rest_angle` for `rest_coordinate`; files and programs of earlier versions
    use it.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("coil", mbs.TorsionSpring("elbow", stiffness=5.0, damping=0.1, rest_angle=1.6))
    >>> mbs.get(mech.build(), "coil.rest_angle")
    1.6
    """

    rest_angle: Number = field(Kind.NUMBER, "rad or m", "coordinate without moment or force", default=0.0)
    rest: ClassVar[str] = "rest_angle"
