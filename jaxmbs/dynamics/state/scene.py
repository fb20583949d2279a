"""What the force elements are given of a state: bodies, joints, masses, air."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state.deformation import momenta
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.dynamics.state.loads import action
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.forces.base import BodyState, Numbers, Scene
from jaxmbs.model.forces.base import Force as Element
from jaxmbs.model.forces.surroundings import Air, Gas, Place, flow
from jaxmbs.model.frames import Frame, frame_on, relative
from jaxmbs.model.joints import Joint
from jaxmbs.model.joints.base import speeds_of, wrench_along
from jaxmbs.model.structure import WORLD, LoopJoint
from jaxmbs.spatial import (
    IDENTITY3,
    ZERO3,
    ZERO_MOTION,
    Force,
    Motion,
    RigidInertia,
    Symmetric3,
    Transform,
    Vector3,
    kernel,
)
from jaxmbs.spatial.known import ONE, ZERO, known
from jaxmbs.spatial.scalar import Scalar, safe_divide, vanishes

_frame_on = kernel(frame_on)
ZERO_SYMMETRIC = Symmetric3(ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)


@kernel
def _freedoms(joint: Joint, numbers: Numbers, a: Frame, b: Frame) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    X, V, _ = relative(a, b)
    return joint.coordinates_of(numbers, X), speeds_of(joint, numbers, X, V)


@kernel
def _on_ends(
    joint: Joint, numbers: Numbers, a: Frame, b: Frame, values: tuple[Scalar, ...]
) -> tuple[Force, Force, Force]:
    """Wrenches on the links of a and of b, in link axes, and the wrench on b at frame b."""
    X, _, _ = relative(a, b)
    F = wrench_along(joint, numbers, X, values)
    return a.in_link.force_to_parent(X.force_to_parent(-F)), b.in_link.force_to_parent(F), F


class TreeScene:
    """The state of a tree; every force element receives the part that it names."""

    def __init__(self, tree: Tree, motions: Sequence[LinkMotion], q: Any, v: Any, t: Scalar):
        self.tree, self.motions, self.q, self.v, self.t = tree, motions, q, v, known(t)
        self._bodies: dict[str, BodyState] = {}

    @functools.cached_property
    def _placements(self) -> list[Transform]:
        return world_placements(self.tree, self.motions)

    def body(self, name: str) -> BodyState:
        if name not in self._bodies:
            tree, i = self.tree, self.tree.structure.find_body(name)
            velocity = tree.pick([m.V for m in self.motions], i)
            self._bodies[name] = BodyState(tree.pick(self._placements, i), velocity, tree.body_in_link[i])
        return self._bodies[name]

    def together(self, names: Iterable[str], motion: bool) -> dict[str, BodyState]:
        """The bodies for an element that depends on how they lie and move relative to one another. In single precision,
        bodies on one branch of the tree are seen from its root: far out, and at the speed of an orbit, differences of
        places and velocities in the world would have lost their digits. motion: whether the velocities are seen so, too."""
        tree, names = self.tree, sorted(names)
        s = tree.structure
        roots = {s.root_of(s.find_body(name)) for name in names}
        if tree.dtype != np.float32 or tree.rolled or len(names) < 2 or len(roots) > 1:
            return {name: self.body(name) for name in names}
        placements, velocities = self._from_roots
        seen = {}
        for name in names:
            i = s.find_body(name)
            velocity = velocities[i] if motion else self.body(name).velocity
            seen[name] = BodyState(placements[i], velocity, tree.body_in_link[i])
        return seen

    @functools.cached_property
    def _from_roots(self) -> tuple[list[Transform], list[Motion]]:
        """Placements and velocities of the links as if the origin of the root of each branch stood still at that of the
        world."""
        tree, s = self.tree, self.tree.structure
        rates = tree.split(self.v, s.motion_v)
        places: list[Transform] = []
        velocities: list[Motion] = []
        for link, m, v, joint in zip(s.links, self.motions, rates, (x.joint for x in s.links), strict=True):
            if link.parent < 0:
                places.append(Transform(m.X.rotation, ZERO3))
                velocities.append(Motion(m.V.angular, ZERO3))
            else:
                places.append(places[link.parent] @ m.X)
                own = sum((S * x for S, x in zip(m.S, v, strict=True)), ZERO_MOTION)
                if joint.rheonomic:  # what depends on time alone has no more digits than in the world
                    before = self.motions[link.parent].V
                    own = m.V + m.X.motion_to_child(before) * -1.0
                velocities.append(m.X.motion_to_child(velocities[link.parent]) + own)
        return places, velocities

    def joint(self, name: str) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
        """(q, v) of a tree joint or a cut joint."""
        s = self.tree.structure
        if name in s.loop_by_name:
            loop = s.loop_by_name[name]
            return _freedoms(loop.joint, self.tree.values.of(name, loop.joint.numbers), *self._ends(loop))
        i = s.find_joint(name)
        return _items(self.q, s.q_slices[i]), _items(self.v, s.v_slices[i])

    def _ends(self, loop: LoopJoint) -> tuple[Frame, Frame]:
        """Both frames of a cut joint."""
        names = ((loop.body_a, f"{loop.name}.pose_a"), (loop.body_b, f"{loop.name}.pose_b"))
        a, b = (self._frame(body, self.tree.values.pose(name)) for body, name in names)
        return a, b

    def _frame(self, body: str, pose: Transform) -> Frame:
        if body == WORLD:
            return Frame(pose, pose, ZERO_MOTION)
        state = self.body(body)
        return _frame_on(state.body @ pose, state.placement, state.velocity)

    def cut_wrenches(self, name: str, values: Sequence[Scalar]) -> tuple[dict[str, Force], Force]:
        """Wrenches of generalized forces along the degrees of freedom of a cut joint [Y 3.199]: {body: wrench on its
        link}, and the wrench on the second body at frame b, in the axes of b."""
        loop = self.tree.structure.loop_by_name[name]
        numbers = self.tree.values.of(name, loop.joint.numbers)
        on_a, on_b, at_b = _on_ends(loop.joint, numbers, *self._ends(loop), tuple(values))
        return {body: F for body, F in ((loop.body_a, on_a), (loop.body_b, on_b)) if body != WORLD}, at_b

    def around(self, *bodies: str) -> Scene:
        """The part of the state that concerns these bodies."""
        return Scene(self.t, {b: self.body(b) for b in bodies if b != WORLD}, {}, {}, (), ())

    def masses(self) -> dict[str, Any]:
        """{body: (mass, centre of mass in body axes)} of the bodies that have mass."""
        values = self.tree.values
        found = {link.body: values[f"{link.body}.mass"] for link in self.tree.structure.links}
        own = {b: (m, values[f"{b}.com"]) for b, m in found.items() if not vanishes(m)}
        for body, more in self.tree.carried().items():
            mass, com = own.get(body, (ZERO, ZERO3))
            whole, moment = mass + more.mass, com * mass + more.moment
            own[body] = whole, Vector3(*(safe_divide(x, whole) for x in moment))
        for body, joint, carried in self._flexible(0.5):
            mass, com = own[body]
            for U, x in zip(carried, self.joint(joint)[0], strict=True):
                com = com + U * (x / mass)
            own[body] = mass, com
        return own

    def _flexible(self, share: float) -> Iterator[tuple[str, str, list[Vector3]]]:
        """(body, joint of its modal coordinates, for each mode its momentum per unit rate) of every flexible body; with
        share 0.5, the mean of this momentum between the undeformed body and the present one."""
        s = self.tree.structure
        for body, i in s.modes_of.items():
            link = s.links[i]
            q, _ = self.joint(link.name)
            yield body, link.name, momenta(self.tree.values.of(link.name, link.joint.numbers), q, share)

    def action(self, element: Element, numbers: Numbers, seen: Scene) -> tuple[Any, Any, Any]:
        """`action`, together with the forces along the modes of flexible bodies of an element that acts on all masses: its
        field is taken as uniform over a body."""
        on_body, on_joint, on_all = action(element, numbers, seen)
        for body, joint, carried in self._flexible(1.0) if element.on_every_mass else ():
            if body in on_body:
                rotation = self.tree.body_in_link[self.tree.structure.find_body(body)].rotation
                field = (rotation.T @ on_body[body].force) * (1 / seen.masses[body][0])
                on_joint = {**on_joint, joint: tuple(field @ U for U in carried)}
        return on_body, on_joint, on_all

    def of(self, name: str, element: Element, sides: Sequence[Scalar] = ()) -> Scene:
        """The part of the state that the named element needs; sides: see `Force.sides`."""
        masses = self.masses() if element.on_every_mass else {}
        named = {getattr(element, f) for f in element.bodies} - {WORLD, None} | set(masses)
        external = self._evaluated(name, element, sides) if element.on_whole_state else ()
        rates = _items(self.v, slice(0, self.tree.structure.nv)) if element.on_whole_state else ()
        joints = {name: self.joint(name) for name in (getattr(element, f) for f in element.joints)}
        air = self.air(getattr(element, "body", WORLD), self.tree.values[f"{name}.reference"]) if element.in_air else ()
        inertias = self.inertias(masses) if element.on_every_inertia else ()
        pair = element.pairwise and WORLD not in (getattr(element, f) for f in element.bodies)
        # in air, velocities are those in the world; of places, only the distance between two bodies matters
        beside = pair or element.in_air
        bodies = self.together(named, motion=pair) if beside else {b: self.body(b) for b in sorted(named)}
        return Scene(self.t, bodies, joints, masses, external, rates, sides, air, inertias)

    def inertias(self, bodies: Iterable[str]) -> dict[str, Symmetric3]:
        """{body: inertia about its centre of mass, in body axes}, with what elements add to it; flexible bodies are taken
        as undeformed."""
        values, out = self.tree.values, {body: self.tree.values[f"{body}.inertia"] for body in bodies}
        for body, more in self.tree.carried().items():
            own = RigidInertia.at_com(values[f"{body}.mass"], values[f"{body}.com"], values[f"{body}.inertia"]) + more
            com = Vector3(*(safe_divide(x, own.mass) for x in own.moment))
            out[body] = own.inertia - RigidInertia.at_com(own.mass, com, ZERO_SYMMETRIC).inertia
        return out

    def air(self, body: str, point: Vector3) -> Air:
        """The air at a point of a body, given in its axes."""
        x = self.around(body).point(body, point)
        return _air(self._environment(), self.t, x)

    def flight(self, body: str) -> dict[str, Scalar]:
        """The flight condition of a body (`FlightCondition`): at the reference point of the first aerodynamics that acts on
        it, in the axes of its coefficients; without these at the origin of the body, in its axes."""
        acting = [
            f.name for f in self.tree.structure.forces if f.element.in_air and body == getattr(f.element, "body", "")
        ]
        values, own = self.tree.values, self.around(body)
        point, turned = (
            (values[f"{acting[0]}.reference"], values[f"{acting[0]}.attitude"]) if acting else (ZERO3, IDENTITY3)
        )
        around, x = self._environment(), own.point(body, point)
        air = _air(around, self.t, x)
        seen = flow(own, body, point, own.rotation(body) @ turned, air)
        planet = around.planet
        north, east = (ZERO, ZERO) if planet is None else planet[0].geodetic(planet[1], self.t, x)[1:]
        return {
            "height": air.height, "latitude": north, "longitude": east, "airspeed": seen.speed, "mach": seen.mach,
            "dynamic_pressure": 0.5 * air.density * (seen.speed * seen.speed), "density": air.density,
            "angle_of_attack": seen.alpha, "sideslip": seen.beta,
        }  # fmt: skip

    def _environment(self) -> Environment:
        """What the mechanism declares of its environment, with its numbers."""
        s = self.tree.structure
        own = [f for f in s.forces if f.element.role]
        roles = {f.element.role: (f.element, self.tree.values.of(f.name, f.element.numbers)) for f in own}
        return Environment(*(roles.get(role) for role in Environment._fields))

    def _evaluated(self, name: str, element: Element, sides: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The values of an element that are a function of the whole state."""
        tree, where = self.tree, f"force {name!r}"
        numbers = tree.values.of(name, element.numbers)
        if tree.dtype is not None:
            state = (jnp.asarray(self.t, tree.dtype), tree.vector(self.q), tree.vector(self.v))
            return element.external_values(where, sides, numbers, tree.dtype, tree.model, *state)
        q, v = np.asarray(self.q, float), np.asarray(self.v, float)
        with jax.enable_x64(True):
            found = element.external_values(where, sides, numbers, float, tree.model, self.t, q, v)
        return tuple(map(float, found))


class Environment(NamedTuple):
    """What surrounds the bodies, each as (element, its numbers), or None."""

    atmosphere: tuple[Any, Numbers] | None = None
    wind: tuple[Any, Numbers] | None = None
    planet: tuple[Any, Numbers] | None = None

    def place(self, t: Scalar, x: Vector3) -> Place:
        """What is around the point x of the world; without a planet, over the flat ground z = 0."""
        if self.planet is not None:
            return self.planet[0].place(self.planet[1], t, x)
        up, east, north = Vector3(ZERO, ZERO, ONE), Vector3(ONE, ZERO, ZERO), Vector3(ZERO, ONE, ZERO)
        return Place(x.z, up, east, north, ZERO3)


def _air(around: Environment, t: Scalar, x: Vector3) -> Air:
    place = around.place(t, x)
    velocity = place.carried
    if around.wind is not None:
        w = around.wind[0].velocity(around.wind[1], place.height, t)
        velocity = velocity + place.east * w.x + place.north * w.y + place.up * w.z
    gas = (
        Gas(ZERO, ZERO, ONE)
        if around.atmosphere is None
        else around.atmosphere[0].gas(around.atmosphere[1], place.height)
    )
    return Air(gas.density, gas.pressure, gas.sound, velocity, place.height)


def _items(x: Any, part: slice) -> tuple[Scalar, ...]:
    return tuple(known(x[k]) for k in range(part.start, part.stop))
