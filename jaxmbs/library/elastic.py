"""Deformable bodies as rigid elements connected by joints or springs: a beam, a cable, a plate.

Errors of deflections and frequencies decrease with the square of the element size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.building import Mechanism
from jaxmbs.library.chains import GRAVITY
from jaxmbs.library.shapes import box, cylinder
from jaxmbs.model import ModelError, Pose
from jaxmbs.model.forces import Bushing, TorsionSpring
from jaxmbs.model.joints import Free, Revolute, Spherical, Universal

NONE = (0.0, 0.0, 0.0)
SHEAR = 1e3  # ratio of displacement to bending stiffness in a plate's connections, so that shear is negligible


def beam(
    n: int,
    length: float = 1.0,
    mass: float = 1.0,
    stiffness: float = 1.0,
    damping: float = 0.0,
    gravity: Sequence[float] = NONE,
) -> Mechanism:
    """A cantilever of n elastic hinges that bends in the xz plane, clamped to the world at the origin, along +x at q = 0.

    length [m], mass [kg]; stiffness: EI [N m²]; damping: torque per rate of curvature [N m² s]. The hinges are in the
    middle of n equal parts; bodies "link_1", ... (the first half part belongs to the world), joints "hinge_1", ..., springs
    "spring_1", .... Positive angles bend towards -z.

    >>> mbs.library.beam(4, stiffness=25.0).build()
    <Model 'beam of 4': 4 bodies (link_1, link_2, link_3, link_4), nq = 4, nv = 4>
    """
    _some(n, "beam")
    mech, h = Mechanism(f"beam of {n}", gravity=tuple(gravity)), length / n
    for i in range(1, n + 1):
        own = h if i < n else h / 2
        m = mass * own / length
        mech.add_body(f"link_{i}", m, (own / 2, 0, 0), cylinder(m, 0.0, own, axis=0))
        parent, position = ("world", h / 2) if i == 1 else (f"link_{i - 1}", h)
        mech.add_joint(f"hinge_{i}", Revolute((0, 1, 0)), parent, f"link_{i}", Pose((position, 0, 0)))
        mech.add_force(f"spring_{i}", TorsionSpring(f"hinge_{i}", stiffness=stiffness / h, damping=damping / h))
    return mech


def cable(
    n: int, length: float = 1.0, mass: float = 1.0, span: float | None = None, gravity: Sequence[float] = GRAVITY
) -> Mechanism:
    """A cable of n stiff links that hangs from the origin, along -z at q = 0, and bends freely in both directions.

    length [m] and mass [kg] of the whole cable; span [m]: the other end is attached at (span, 0, 0) by a cut joint
    "end" (None: it is loose). Bodies "link_1", ..., joints "hinge_1", ... about y and x.

    >>> mbs.library.cable(3).build()
    <Model 'cable of 3': 3 bodies (link_1, link_2, link_3), nq = 6, nv = 6>
    """
    _some(n, "cable")
    mech, h, m = Mechanism(f"cable of {n}", gravity=tuple(gravity)), length / n, mass / n
    for i in range(1, n + 1):
        mech.add_body(f"link_{i}", m, (0, 0, -h / 2), cylinder(m, 0.0, h))
        parent, position = ("world", 0.0) if i == 1 else (f"link_{i - 1}", -h)
        joint = Universal(axis_1=(0, 1, 0), axis_2=(1, 0, 0))
        mech.add_joint(f"hinge_{i}", joint, parent, f"link_{i}", Pose((0, 0, position)))
    if span is not None:
        mech.close_loop("end", Spherical(), f"link_{n}", "world", pose_a=Pose((0, 0, -h)), pose_b=Pose((span, 0, 0)))
    return mech


def plate(
    n_x: int, n_y: int, length_x: float = 1.0, length_y: float = 1.0, mass: float = 1.0, stiffness: float = 1.0
) -> Mechanism:
    """A plate of n_x times n_y elements in the xy plane, simply supported along its four edges, one corner at the origin.

    length_x, length_y [m], mass [kg]; stiffness: D = E t³ / (12 (1 - nu²)) [N m] (with such edges, Poisson's ratio matters
    only in D). Each element is a body "element_i_j" with a free joint "place_i_j", connected to its neighbours by
    bushings: "x_i_j" and "y_i_j" are on its sides towards -x and -y, with one more at the end of each row and column.

    >>> mbs.library.plate(2, 1).build().nv
    12
    """
    _some(min(n_x, n_y), "plate")
    mech, a, b = Mechanism(f"plate of {n_x} x {n_y}", gravity=NONE), length_x / n_x, length_y / n_y
    m = mass / (n_x * n_y)
    for i in range(n_x):
        for j in range(n_y):
            name = f"element_{i}_{j}"
            mech.add_body(name, m, inertia=box(m, a, b, 0.0))
            mech.add_joint(f"place_{i}_{j}", Free(), "world", name, Pose(((i + 0.5) * a, (j + 0.5) * b, 0)))
    k = (SHEAR * stiffness / (a * b),) * 3
    bend_x, bend_y = stiffness * b / a, stiffness * a / b  # torque per radian between neighbours along x, along y
    for j in range(n_y):
        for i in range(n_x + 1):
            edge = i in (0, n_x)  # the plate can rotate about its edge, but cannot twist there
            turns = (2 * bend_x, 0.0, 0.0) if edge else (bend_x, bend_x, bend_x)
            ends = _ends(f"element_{i - 1}_{j}" if i else None, f"element_{i}_{j}" if i < n_x else None, (a / 2, 0, 0),
                         (i * a, (j + 0.5) * b, 0.0))  # fmt: skip
            mech.add_force(f"x_{i}_{j}", Bushing(**ends, stiffness=k, rotational_stiffness=turns))
    for i in range(n_x):
        for j in range(n_y + 1):
            turns = (0.0, 2 * bend_y, 0.0) if j in (0, n_y) else (bend_y, bend_y, bend_y)
            ends = _ends(f"element_{i}_{j - 1}" if j else None, f"element_{i}_{j}" if j < n_y else None, (0, b / 2, 0),
                         ((i + 0.5) * a, j * b, 0.0))  # fmt: skip
            mech.add_force(f"y_{i}_{j}", Bushing(**ends, stiffness=k, rotational_stiffness=turns))
    return mech


def _ends(before: str | None, after: str | None, half: Sequence[float], place: Sequence[float]) -> dict[str, Any]:
    """Bodies and poses of a bushing between two elements, or between one element and the world."""
    at = Pose(tuple(place))
    return {
        "body_a": before or "world", "pose_a": Pose(tuple(half)) if before else at,
        "body_b": after or "world", "pose_b": Pose(tuple(-x for x in half)) if after else at,
    }  # fmt: skip


def _some(n: int, what: str) -> None:
    if n < 1:
        raise ModelError(f"{what}: {n} elements; pass 1 or more")
