"""Damping in a joint."""

from __future__ import annotations

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar, total


@element
class Damper(Force):
    """Viscous damping of every degree of freedom of a joint: -damping v, with one coefficient for all.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("oil", mbs.Damper("elbow", damping=0.1))
    >>> print(mbs.bias_forces(mech.build(), [0.0, 0.0], [0.0, 2.0])[1].round(3))
    0.2
    """

    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it acts on")
    damping: Number = field(Kind.NOT_NEGATIVE, "N m s/rad or N s/m", "moment or force per rate", default=0.0)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, [-p["damping"] * v for v in scene.rates(self.joint)])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return -p["damping"] * total(*(v * v for v in scene.rates(self.joint)))
