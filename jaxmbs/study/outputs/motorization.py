"""Whether the actuators of a joint are strong enough, by the rule that space mechanisms are designed to.

The dynamics are imported when a motion is measured, so that a study can be read and described without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp

from jaxmbs.io.errors import choices
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Scalar
from jaxmbs.study.outputs.of_state import OfState

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.model import Mode, Model

# theoretical uncertainty factors of ECSS-E-ST-33-01C (6 March 2009), table 4-2, for what resists, by kind
FACTORS = {"springs": 1.2, "magnetic": 1.5, "friction": 3.0, "hysteresis": 3.0, "harness": 3.0, "adhesion": 3.0}
DRIVING_SPRING = 0.8  # the same, 4.7.5.3.2e
DRIVES = ("actuators", "spring_actuators")


@element
class MotorizationFactor(OfState):
    """The force or torque of a joint's actuators divided by what resists its motion, each resistance times the uncertainty
    factor that ECSS-E-ST-33-01C (2009, clause 4.7.5.3) gives for its kind if it is computed and not measured: 1.2 for
    springs, 1.5 for magnetic losses, 3 for friction, hysteresis, harness and adhesion. Springs that drive count with 0.8 of
    their torque. The standard requires at least 2: "motorization > 2".

    All names are those of force elements that act on the joint, which has one degree of freedom. A resistance counts only
    while it opposes the motion; a spring actuator that does so counts as a spring that resists. Inertia (for which the
    standard asks for a factor of 1.1 where the frame accelerates, and for 1.25 times what a specified acceleration needs)
    and torques to be delivered are not included. The factor is undefined while nothing resists. A `Friction` is smooth near
    rest and resists nothing there: another element must stand for what holds the joint at the start.

    >>> from jaxmbs.study.outputs import MotorizationFactor
    >>> MotorizationFactor("hinge", spring_actuators=["coil"], friction=["bearing"], harness=["cable"]).reduce
    'min'
    """

    needs_mode: ClassVar[bool] = True

    joint: str = field(Kind.JOINT, "", "joint that moves, with one degree of freedom")
    actuators: Sequence[str] = field(Kind.NAMES, "", "force elements that drive it, apart from springs", default=())
    direction: str = field(
        Kind.CHOICE, "", "in which its coordinate shall move: up or down", default="up", choices=("up", "down")
    )
    spring_actuators: Sequence[str] = field(Kind.NAMES, "", "springs that drive it", default=(), kw_only=True)
    springs: Sequence[str] = field(Kind.NAMES, "", "force elements that resist as springs", default=(), kw_only=True)
    magnetic: Sequence[str] = field(Kind.NAMES, "", "magnetic losses of motors", default=(), kw_only=True)
    friction: Sequence[str] = field(Kind.NAMES, "", "friction", default=(), kw_only=True)
    hysteresis: Sequence[str] = field(Kind.NAMES, "", "hysteresis", default=(), kw_only=True)
    harness: Sequence[str] = field(Kind.NAMES, "", "electrical harness and other bent lines", default=(), kw_only=True)
    adhesion: Sequence[str] = field(Kind.NAMES, "", "adhesion of surfaces", default=(), kw_only=True)
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "number"

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        if joints[self.joint].nv != 1:
            yield "joint", f'"{self.joint}" has {joints[self.joint].nv} degrees of freedom; name a joint that has one'

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        forces = {f.name: f.element for f in model.structure.forces}
        for key in (*DRIVES, *FACTORS):
            for name in getattr(self, key):
                if name not in forces:
                    yield key, f'there is no force element "{name}"; {choices(name, forces, "force elements")}'
                elif self.joint not in (getattr(forces[name], x) for x in forces[name].joints):
                    yield key, f'"{name}" does not act on the joint "{self.joint}"; name elements that do'
        named = [name for key in (*DRIVES, *FACTORS) for name in getattr(self, key)]
        for name in sorted({name for name in named if named.count(name) > 1}):
            yield "actuators", f'"{name}" is named twice; it either drives the joint or resists in one way'
        if not any(getattr(self, key) for key in DRIVES):
            yield "actuators", f"nothing drives; name force elements under {' or '.join(DRIVES)}"
        if not any(getattr(self, key) for key in FACTORS):
            yield "friction", f"nothing resists; name force elements under {', '.join(FACTORS)}"

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        from jaxmbs.dynamics.state.loads import action, elements

        sign = 1.0 if self.direction == "up" else -1.0
        weight = {name: factor for key, factor in FACTORS.items() for name in getattr(self, key)}
        drives = resists = jnp.zeros((), state.tree.dtype)
        for name, acting, numbers, seen, on in elements(state, mode):
            if name in weight or name in self.actuators or name in self.spring_actuators:
                along = sign * jnp.asarray(on, state.tree.dtype) * action(acting, numbers, seen)[1][self.joint][0]
                if name in self.actuators:
                    drives = drives + along
                elif name in self.spring_actuators:
                    drives = drives + DRIVING_SPRING * jnp.maximum(along, 0.0)
                    resists = resists + FACTORS["springs"] * jnp.maximum(-along, 0.0)
                else:
                    resists = resists + weight[name] * jnp.maximum(-along, 0.0)
        some = resists > 0
        return drives / jnp.where(some, resists, 1.0), some
