"""Coulomb friction in a joint."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar, tanh


@element
class Friction(Force):
    """Coulomb friction of a joint with one degree of freedom: -moment tanh(rate / speed).

    It changes sign smoothly within +-speed, so that a joint that is loaded by less than the moment creeps and does not
    stick. Steps should be shorter than the inertia times speed / moment.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("rub", mbs.Friction("elbow", moment=0.1))
    >>> print(mbs.bias_forces(mech.build(), [0.0, 0.0], [0.0, 2.0])[1].round(3))
    0.1
    """

    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it acts on")
    moment: Number = field(Kind.NOT_NEGATIVE, "N m or N", "moment or force of the friction", default=0.0)
    speed: Number = field(Kind.POSITIVE, "rad/s or m/s", "rate over which it changes sign", default=1e-2)
    freedoms: ClassVar[int | None] = 1

    def _value(self, p: Numbers, scene: Scene) -> Scalar:
        (v,) = scene.rates(self.joint)
        return -p["moment"] * tanh(v / p["speed"])

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, [self._value(p, scene)])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return self._value(p, scene) * scene.rates(self.joint)[0]
