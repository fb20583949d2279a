"""The bodies, joints and the force element that are a flexible body in a mechanism."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import as_numbers
from jaxmbs.model.flexible_bodies.integrals import ROUNDING, cleaned, shape_integrals, upper_pairs
from jaxmbs.model.flexible_bodies.part import Part
from jaxmbs.model.forces.modal_stiffness import ModalStiffness
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.model.joints.base import Joint
from jaxmbs.model.joints.elastic_modes import ElasticModes
from jaxmbs.model.joints.flexible_node import FlexibleNode
from jaxmbs.model.pose import Pose


class FlexibleBody(NamedTuple):
    """What a flexible body consists of. bodies: {name: mass, com, inertia}; joints: {name: joint, parent, child, pose of the
    joint's frame in the parent}; stiffness: the force element."""

    bodies: dict[str, tuple[Any, ...]]
    joints: dict[str, tuple[Joint, str, str, Pose]]
    stiffness: ModalStiffness


def flexible_body(
    name: str, part: Part, damping: Number | Vector, damping_matrix: Rows | np.ndarray | None, order: int
) -> FlexibleBody:
    """What `Mechanism.add_flexible_body` adds. Raises ModelError before anything is added."""
    where = f"flexible body {name!r}"
    if not isinstance(part, Part):
        raise ModelError(f"{where}: {part!r} is not a part; pass one such as mbs.Part.beam(...)")
    if not part.modes:
        raise ModelError(f"{where}: its part has no modes; add a rigid body with add_body")
    if order not in (1, 2):
        raise ModelError(f"{where}: order is {order!r}; pass 1 or 2")
    bends = np.any(part.shortening) or np.any(part.moment_curvature)
    if bends and order == 1:
        raise ModelError(f"{where}: the foreshortening of its part is of second order; pass order=2")
    n, ratios = part.modes, as_numbers(damping, f"{where}: damping")
    if ratios.shape not in ((), (n,)) or not ((ratios >= 0) & np.isfinite(ratios)).all():
        raise ModelError(
            f"{where}: damping is {damping!r}; pass one number of zero or more, or one for each of {n} modes"
        )
    rows = _damping_rows(where, damping_matrix, n)
    carrier = f"{name}_modes"
    bodies: dict[str, tuple[Any, ...]] = {name: (part.mass, cleaned(part.com), cleaned(part.inertia)), carrier: ()}
    joints: dict[str, tuple[Joint, str, str, Pose]] = {
        name: (ElasticModes(**shape_integrals(part, order)), name, carrier, Pose())
    }
    for k, (node, at, u, w) in enumerate(
        zip(part.nodes, part.positions, part.displacements, part.rotations, strict=True)
    ):
        shorter = np.moveaxis(part.shortening[k], 0, -1)
        second = upper_pairs(shorter) if np.any(shorter) else (0.0,)
        moving = FlexibleNode(n, cleaned(u).T.reshape(-1), cleaned(w).T.reshape(-1), second)
        bodies[f"{name}_{node}"] = ()
        joints[f"{name}_{node}"] = (moving, carrier, f"{name}_{node}", Pose(cleaned(at)))
    stiffness = ModalStiffness(
        name, part.frequency, np.broadcast_to(ratios, n), rows, participation_limit=_participation_limit(part)
    )
    return FlexibleBody(bodies, joints, stiffness)


def _participation_limit(part: Part) -> float:
    """The factor on the momentum of all modes at which, in some motion, the modes carry all the momentum of the body."""
    M = part.mass_matrix
    own = np.sqrt(np.maximum(np.diag(M)[:6], ROUNDING * np.diag(M)[:6].max()))
    rigid, U = M[:6, :6] / own[:, None] / own, M[6:, :6] / own
    share = np.linalg.eigvalsh(U @ np.linalg.pinv(rigid, rcond=ROUNDING, hermitian=True) @ U.T)[-1]
    return float(max(1.0, 1e6 if share < 1e-12 else share**-0.5))


def _damping_rows(where: str, given: Rows | np.ndarray | None, n: int) -> Vector:
    """The damping between n modes, row by row; one zero if there is none."""
    if given is None:
        return (0.0,)
    rows = as_numbers(given, f"{where}: damping_matrix")
    if rows.shape != (n, n):
        raise ModelError(f"{where}: damping_matrix has shape {rows.shape}; pass {(n, n)}")
    if not np.isfinite(rows).all():
        raise ModelError(f"{where}: damping_matrix has numbers that are not finite; pass finite ones, in 1/s")
    least = np.linalg.eigvalsh(rows + rows.T)[0] / 2
    if 2 * least < -1e-9 * np.abs(rows).max():
        raise ModelError(
            f"{where}: the symmetric part of damping_matrix has the eigenvalue {least:.3g} 1/s and would supply energy; "
            "pass one without negative ones"
        )
    return rows.reshape(-1)
