"""The three example robots of [T], with the parameter names and the coordinates q of the source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import limb
from jaxmbs.model import Pose
from jaxmbs.model.joints import Revolute

GRAVITY = (0.0, -9.81, 0.0)
Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def three_link_arm(
    L_2: float = 0.5,
    A: float = 0.4,
    B: float = 0.1,
    m_o: Sequence[float] = (6.0, 4.0, 2.5),
    y_c1: float = 0.2,
    x_c2: float = 0.18,
    y_c2: float = 0.06,
    x_c3: float = 0.25,
    I_q: Sequence[float] = (0.5, 0.3, 0.2),
    gravity: Sequence[float] = GRAVITY,
) -> Mechanism:
    """The articulated three-link arm in the vertical plane xy, y up [T 3, fig. 1].

    At q = 0 all body axes are parallel to the world's. O_1 is the world's origin, O_2 lies at L_2 y_1, O_3 at A x_2 + B y_2
    [m]. m_o: masses [kg]; the centres of mass are y_c1 y_1, x_c2 x_2 + y_c2 y_2 and x_c3 x_3 [m]; I_q: moments of
    inertia [kg m²] about the hinge axes. Bodies "body_1" to "body_3", joints "q_1" to "q_3" about z.

    >>> mbs.library.three_link_arm().build()
    <Model 'three-link arm': 3 bodies (body_1, body_2, body_3), nq = 3, nv = 3>
    """
    mech = Mechanism("three-link arm", gravity=tuple(gravity))
    centers = [(0.0, y_c1, 0.0), (x_c2, y_c2, 0.0), (x_c3, 0.0, 0.0)]
    poles = [(0.0, 0.0, 0.0), (0.0, L_2, 0.0), (A, B, 0.0)]
    for i in range(3):
        _planar_body(mech, i + 1, m_o[i], centers[i], I_q[i], i, poles[i])
        limb(mech, f"body_{i + 1}", (2 * x_c3, 0, 0) if i == 2 else poles[i + 1])
    return mech


def planar_two_arm_robot(
    A: float = 0.1,
    B: float = 0.3,
    L_3: float = 0.4,
    m_o: Sequence[float] = (12.0, 3.0, 2.0, 3.2, 1.8),
    x_c: Sequence[float] = (0.05, 0.2, 0.15, 0.19, 0.16),
    I_q: Sequence[float] = (1.5, 0.3, 0.1, 0.28, 0.12),
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
) -> Mechanism:
    """The robot with two arms in the horizontal plane xy, 5 degrees of freedom [T 4, fig. 2].

    Body 1 rotates about the world's origin; bodies 2 and 3 form one arm, 4 and 5 the other. O_2 and O_4 lie at
    A x_1 - B y_1 and A x_1 + B y_1, O_3 and O_5 at L_3 x_2 and L_3 x_4 (L_5 = L_3) [m]. m_o: masses [kg]; the centres of
    mass are x_c x_i [m]; I_q: moments of inertia [kg m²] about the hinge axes. Bodies "body_1" to "body_5", joints
    "q_1" to "q_5" about z.

    >>> mbs.library.planar_two_arm_robot().build().nv
    5
    """
    mech = Mechanism("planar two-arm robot", gravity=tuple(gravity))
    poles = [(0.0, 0.0, 0.0), (A, -B, 0.0), (L_3, 0.0, 0.0), (A, B, 0.0), (L_3, 0.0, 0.0)]
    for i, base in enumerate((0, 1, 2, 1, 4)):
        _planar_body(mech, i + 1, m_o[i], (x_c[i], 0.0, 0.0), I_q[i], base, poles[i])
        carried = poles[1::2] if i == 0 else [poles[2] if i in (1, 3) else (2 * x_c[i], 0, 0)]
        limb(mech, f"body_{i + 1}", *carried)
    return mech


def _planar_body(
    mech: Mechanism, i: int, mass: float, center: Sequence[float], I_q: float, base: int, pole: Sequence[float]
) -> None:
    about_center = I_q - mass * (center[0] ** 2 + center[1] ** 2)
    mech.add_body(f"body_{i}", mass, center, (about_center,) * 3)
    _hinge(mech, i, base, Z, pole)


def _hinge(mech: Mechanism, i: int, base: int, axis: Sequence[float], pole: Sequence[float]) -> None:
    parent = f"body_{base}" if base else "world"
    mech.add_joint(f"q_{i}", Revolute(tuple(axis)), parent, f"body_{i}", Pose(tuple(pole)))


# masses, centres of mass and inertias of the spatial robot: round numbers, roughly those of human arms
_MASSES = (15.0, 1.2, 2.5, 1.5, 1.2, 2.5, 1.5)
_CENTERS = (
    (0.01, 0.2, 0.02), (0.01, -0.01, 0.02), (0.02, 0.12, 0.01), (0.01, 0.1, -0.02),
    (-0.01, -0.02, 0.01), (-0.02, 0.13, 0.02), (0.015, 0.11, 0.01),
)  # fmt: skip
_INERTIAS = (
    (0.9, 0.3, 0.8, 0.03, 0.02, 0.05), (0.004, 0.004, 0.003, -0.0003, 0.0003, -0.0004),
    (0.05, 0.006, 0.05, 0.006, 0.0007, 0.003), (0.02, 0.004, 0.02, 0.0015, -0.0003, -0.003),
    (0.004, 0.003, 0.004, 0.0003, -0.0002, -0.0003), (0.055, 0.007, 0.054, -0.006, -0.0009, 0.006),
    (0.023, 0.003, 0.022, 0.002, 0.0003, 0.0018),
)  # fmt: skip


def spatial_two_arm_robot(
    L_2: float = 0.25,
    L_4: float = 0.3,
    m_o: Sequence[float] = _MASSES,
    r_c: Sequence[Sequence[float]] = _CENTERS,
    I: Sequence[Sequence[float]] = _INERTIAS,
    gravity: Sequence[float] = GRAVITY,
) -> Mechanism:
    """The robot with two arms in space, 7 degrees of freedom [T 5, fig. 3].

    At q = 0 all body axes are parallel to the world's: x to the right, y up. Axes: q_1, q_2, q_5 along y, q_3, q_4, q_6,
    q_7 along z. O_2 = O_3 at L_2 x_1, O_5 = O_6 at -L_2 x_1, O_4 at L_4 y_3 and O_7 at L_4 y_6 (L_5 = L_2, L_7 = L_4) [m].
    m_o: masses (7,) [kg]; r_c: centres of mass (7, 3) [m]; I: (I^x, I^y, I^z, I^xy, I^xz, I^yz) (7, 6) [kg m²] about
    the poles O_i, with [T]'s sign of the products of inertia, I^xy = +integral of x y dm. Bodies "body_1" to "body_7",
    joints "q_1" to "q_7".

    >>> mbs.library.spatial_two_arm_robot().build().nv
    7
    """
    mech = Mechanism("spatial two-arm robot", gravity=tuple(gravity))
    bases = (0, 1, 2, 3, 1, 5, 6)
    axes = (Y, Y, Z, Z, Y, Z, Z)
    poles = [(0, 0, 0), (L_2, 0, 0), (0, 0, 0), (0, L_4, 0), (-L_2, 0, 0), (0, 0, 0), (0, L_4, 0)]
    for i in range(7):
        x, y, z, xy, xz, yz = I[i]
        about_pole = np.array([[x, -xy, -xz], [-xy, y, -yz], [-xz, -yz, z]])
        c = np.asarray(r_c[i], float)
        mech.add_body(f"body_{i + 1}", m_o[i], c, about_pole - m_o[i] * (c @ c * np.eye(3) - np.outer(c, c)))
        _hinge(mech, i + 1, bases[i], axes[i], poles[i])
        carried = [pole for base, pole in zip(bases, poles, strict=True) if base == i + 1]
        own = [tuple(2 * c)] if i == 0 or not carried else []  # the trunk, and the last bodies of the arms
        limb(mech, f"body_{i + 1}", *carried, *own)
    return mech
