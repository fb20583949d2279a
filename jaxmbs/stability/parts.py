"""A mechanism of rigid bodies and springs as the part of a flexible body."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from jaxmbs.dynamics import body_poses, body_velocities
from jaxmbs.model import Model, ModelError, Part, get
from jaxmbs.model.errors import unknown
from jaxmbs.model.given import Coordinates, Triple
from jaxmbs.model.refusals import refuse_flexible
from jaxmbs.model.structure import WORLD
from jaxmbs.simulate import Status
from jaxmbs.stability.linearize import linearize

Place = str | tuple[str, Triple]


def reduced_part(
    model: Model,
    q: Coordinates | None = None,
    *,
    attachments: Mapping[str, Place],
    stations: Mapping[str, Place] | None = None,
    frame: str = WORLD,
    modes: int = 10,
) -> Part:
    """The part of a mechanism of rigid bodies and springs, such as a boom with elastic hinges: its small motions about rest,
    in Craig-Bampton shapes, for `Mechanism.add_flexible_body`.

    q (nq,): the configuration at rest, None for the neutral one. frame: the floating frame of the part, that of a body or
    the world; the joints between this body and the world are held. attachments: {name: body, or (body, point in its frame
    [m])}, to which other elements may be attached; stations: further nodes, which move with the part but add no modes. All
    nodes have the axes of the frame. modes: how many modes with fixed attachments to use; the part has these, and one for
    each independent motion of the attachments.

    The part has the stiffness of springs, loops and couplings, but no damping, which is an argument of `add_flexible_body`.
    Weights and other loads that act on the part in its new mechanism should be left out here. Raises ModelError if the
    mechanism is not at rest, can move without deforming, is not stable, has masses other than those of its bodies
    (armature, propellant), flexible bodies or nonholonomic constraints.

    >>> model = mbs.library.beam(8, length=2.0, mass=1.5, stiffness=40.0).build()
    >>> part = mbs.reduced_part(model, attachments={"tip": ("link_8", (0.125, 0, 0))}, modes=3)
    >>> print(part.modes, part.frequency[0].round(3))  # of a continuous beam: 1.022
    5 1.025
    """
    from jaxmbs.model.flexible_bodies.pieces import of_pieces, point_masses

    refuse_flexible(
        model, "reduced_part", "leave it out here, and join its part to the reduced one in the mechanism that has both"
    )
    q = model.neutral() if q is None else q
    stations = dict(stations or {})
    if both := [name for name in stations if name in attachments]:
        raise ModelError(f"reduced_part: {both[0]!r} is among the attachments and among the stations; choose one")
    linear = linearize(model, q, fixed=_above(model, frame))
    if (status := Status(int(linear.status))) is not Status.OK:
        raise ModelError(
            f"reduced_part: the mechanism is not at rest at q ({status.name}); leave out gravity and other loads, or find "
            "the configuration with mbs.equilibrium"
        )
    if linear.K.shape != linear.M.shape:
        raise ModelError("reduced_part: the mechanism has nonholonomic constraints, which a flexible body cannot have")
    poses, shapes = body_poses(model, q), np.asarray(linear.shapes)
    velocities = np.asarray(jax.jacfwd(lambda v: body_velocities(model, q, v))(np.zeros(model.nv)) @ shapes)
    origin, axes = np.zeros(3), np.eye(3)
    if frame != WORLD:
        origin, axes = (np.asarray(x) for x in (poses[frame].position, poses[frame].rotation))

    def at(body: str, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(position, displacements and rotations (6, n)) of a point of a body, in the frame of the part."""
        k, R = model.body_names.index(body), np.asarray(poses[body].rotation)
        turned, arm = velocities[k, :3], R @ point
        moved = velocities[k, 3:] + np.cross(turned, arm, axisa=0, axisc=0)
        return axes.T @ (np.asarray(poses[body].position) + arm - origin), np.concatenate(
            [axes.T @ moved, axes.T @ turned]
        )

    masses, points, moved = [], [], []
    for body in model.body_names:
        mass, com, inertia = (np.asarray(get(model, f"{body}.{name}")) for name in ("mass", "com", "inertia"))
        if mass > 0:
            own, places = point_masses(float(mass), com, inertia)
            found = [at(body, x) for x in places]
            masses, points, moved = (
                [*masses, *own],
                [*points, *(x for x, _ in found)],
                [*moved, *(u[:3] for _, u in found)],
            )
    nodes = {}
    for name, place in (*attachments.items(), *stations.items()):
        body, point = (place, (0.0, 0.0, 0.0)) if isinstance(place, str) else place
        if body not in model.body_names:
            raise unknown("body", body, model.body_names, f"reduced_part: {name!r}")
        nodes[name] = at(body, np.asarray(point, float))
    lumps = np.array(masses), np.array(points), np.array(moved)
    return Part(**of_pieces(linear.M, linear.K, *lumps, list(attachments), nodes, modes))


def _above(model: Model, frame: str) -> list[str]:
    """The joints between a body and the world that have degrees of freedom."""
    s = model.structure
    if frame != WORLD and frame not in s.body_index:
        raise unknown("body", frame, [WORLD, *s.body_index], "reduced_part: frame")
    above = s.inward(-1 if frame == WORLD else s.body_index[frame])
    return [s.links[i].name for i in above if s.links[i].joint.nv]
