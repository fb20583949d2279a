"""Outputs that need more than bodies and joints: forces in elements, reactions of joints, momentum.

The dynamics are imported when a motion is measured, so that a study can be read and described without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp

from jaxmbs.io.errors import choices
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.flexible_bodies.internal import no_wrench
from jaxmbs.model.flying import FLIGHT, NEEDED
from jaxmbs.model.forces.base import WORLD, Force, Scene
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import ZERO3, Vector3
from jaxmbs.spatial.known import bare
from jaxmbs.spatial.scalar import total
from jaxmbs.study import units
from jaxmbs.study.outputs.base import Output, Scalar

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.model import Mode, Model


@element
class OfState(Output):
    """Base of the outputs of the whole state. needs_mode: whether it depends on what is locked and switched on."""

    abstract: ClassVar[bool] = True
    needs_mode: ClassVar[bool] = False

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        """Value at the present time in SI, and whether it is defined then. mode: what is locked and switched on (None:
        nothing ever changes)."""
        raise NotImplementedError

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        """(key, remedy) for what does not fit the model."""
        yield from ()

    def fitted(self, model: Model) -> OfState:
        """The output with what follows from the model filled in."""
        return self


@element
class ElementForce(OfState):
    """Magnitude of what a force element exerts: its force on a body [N], or with part = "torque" its generalized forces
    on the joints that it acts on [N m; N for joints that slide]."""

    needs_mode: ClassVar[bool] = True

    name: str = field(Kind.TEXT, "", "the force element")
    part: str = field(Kind.CHOICE, "", "its force or torque", default="force", choices=("force", "torque"))
    of_quantity: str | None = field(Kind.TEXT, "", "what it measures; found by itself", default=None, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return self.of_quantity or ("force" if self.part == "force" else "moment")

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        forces = {f.name: f.element for f in model.structure.forces}
        if self.name not in forces:
            yield "name", f'there is no force element "{self.name}"; {choices(self.name, forces, "force elements")}'
        elif not _acts_somewhere(forces[self.name]):
            said = "gives generalized forces of the whole mechanism, which have no common magnitude"
            yield "name", f'"{self.name}" {said}; name another, or give it a body'
        elif bool(forces[self.name].joints) is (self.part == "force"):
            other = "torque" if self.part == "force" else "force"
            yield "part", f'this element has no {self.part}; write part = "{other}"'
        elif len(quantities := _quantities(forces[self.name], model)) > 1:
            said = f"acts along {' and '.join(sorted(quantities))}, whose forces and torques have no common magnitude"
            yield "name", f'"{self.name}" {said}; name another'

    def fitted(self, model: Model) -> OfState:
        forces = {f.name: f.element for f in model.structure.forces}
        along = _quantities(forces[self.name], model) if self.part == "torque" else ()
        return replace(self, of_quantity="force") if along == {"displacements"} else self

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        from jaxmbs.dynamics.state.loads import action, elements, force_on_first

        for name, acting, numbers, seen, on in elements(state, mode):
            if name == self.name:
                acts = jnp.asarray(on, state.tree.dtype)
                on_body, on_joint, _ = action(acting, numbers, seen)
                if self.part == "force":
                    force = force_on_first(acting, on_body, seen)
                    assert force is not None, self.name  # `unfit` refuses elements that act on no body
                    return acts * force.norm(), True
                square = bare(total(*(x * x for values in on_joint.values() for x in values)))
                return acts * jnp.sqrt(jnp.where(square > 0, square, 1.0)) * (square > 0), True
        raise AssertionError(self.name)


@element
class ElementState(OfState):
    """A state of a force element or controller, or a parameter that a controller sets: "motor.propellant"."""

    name: str = field(Kind.TEXT, "", "the state")
    component: int = field(Kind.COUNT, "", "counted from 0, of a state with several numbers", default=0)
    of_quantity: str | None = field(Kind.TEXT, "", "what it measures; found by itself", default=None, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return self.of_quantity or "number"

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        states = {p.name: p for p in model.structure.states}
        if self.name not in states:
            yield "name", f'there is no state "{self.name}"; {choices(self.name, states, "states")}'
        elif self.component >= (size := len(states[self.name].pattern)):
            yield "component", f'{self.component} is out of range; "{self.name}" has components 0 to {size - 1}'

    def fitted(self, model: Model) -> OfState:
        own = next(p for p in model.structure.states if p.name == self.name)
        return replace(self, of_quantity=units.quantity(own.unit))

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        return state.tree.values.components(self.name)[self.component], True


def _quantities(force: Force, model: Model) -> set[str]:
    """What the degrees of freedom of the joints that a force element acts on measure: displacements, rotations."""
    s = model.structure
    joints = {x.name: x.joint for x in (*s.links, *s.loops)}
    named = (joints[name] for name in (getattr(force, key) for key in force.joints) if name is not None)
    return {"displacements" if speed.unit == "m/s" else "rotations" for joint in named for speed in joint.speeds()}


def _acts_somewhere(force: Force) -> bool:
    """Whether the force element names what it acts on, or acts on all bodies."""
    return force.on_every_mass or any(getattr(force, f) is not None for f in (*force.bodies, *force.joints))


@element
class JointReaction(OfState):
    """Magnitude of the force [N] or torque [N m] (part = "moment") that a joint transmits, at the child's joint frame."""

    needs_mode: ClassVar[bool] = True

    joint: str = field(Kind.JOINT, "", "joint of the tree")
    part: str = field(Kind.CHOICE, "", "force or moment", default="force", choices=("force", "moment"))

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return self.part

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        s = model.structure
        for i in s.modes_of.values():
            if s.links[i].name == self.joint:
                yield "joint", no_wrench(self.joint, [s.links[k].name for k in s.children[i]])

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        from jaxmbs.dynamics.trees import joint_reactions

        vector = state.tree.vector
        rows = joint_reactions(model, vector(state.q), vector(state.v), t=state.t, mode=mode)
        row = rows[model.joint_names.index(self.joint)]
        x = row[3:] if self.part == "force" else row[:3]
        return Vector3(x[0], x[1], x[2]).norm(), True


@element
class Momentum(OfState):
    """Magnitude of a body's momentum [N s], or of its angular momentum about its centre of mass [N m s], relative to
    another body: from its velocity minus the velocity that it would have if it were fixed to the other body."""

    body: str = field(Kind.BODY, "", "body that moves")
    relative_to: str = field(Kind.BODY_OR_WORLD, "", "what the motion is relative to", default=WORLD)
    part: str = field(Kind.CHOICE, "", "linear or angular", default="linear", choices=("linear", "angular"))

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "impulse" if self.part == "linear" else "angular impulse"

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        if self.body in model.structure.modes_of:
            said = "is flexible, and its momentum is not that of a rigid body; measure velocities of its nodes instead"
            yield "body", f'"{self.body}" {said}'

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        named = {b: state.body(b) for b in (self.body, self.relative_to) if b != WORLD}
        scene: Any = Scene(state.t, named, {}, {}, (), ())
        values = state.tree.values
        if self.part == "angular":
            rate = scene.angular(self.body) - scene.angular(self.relative_to)
            return (values[f"{self.body}.inertia"] @ (scene.rotation(self.body).T @ rate)).norm(), True
        com = values[f"{self.body}.com"]
        at = scene.local_point(self.relative_to, scene.point(self.body, com)) if self.relative_to != WORLD else ZERO3
        velocity = scene.velocity(self.body, com) - scene.velocity(self.relative_to, at)
        return velocity.norm() * values[f"{self.body}.mass"], True


@element
class Flight(OfState):
    """How a body flies in the environment of the mechanism, see `mbs.flight_condition`: its height above the planet or the
    ground, geodetic latitude and longitude, speed relative to the air, Mach number, dynamic pressure, or angles to the
    air."""

    body: str = field(Kind.BODY, "", "body that flies")
    part: str = field(Kind.CHOICE, "", "what is measured", default="height", choices=tuple(FLIGHT))

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return FLIGHT[self.part]

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        roles = {f.element.role for f in model.structure.forces}
        own = NEEDED.get(self.part)
        if own is not None and own not in roles:
            yield "part", f'the mechanism has no {own}; add one to [[mechanism.forces]], named "{own}"'

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        return state.flight(self.body)[self.part], True
