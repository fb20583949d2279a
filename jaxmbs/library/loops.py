"""Mechanisms with closed loops, from the benchmark literature.

The IFToMM benchmark library: M. Gonzalez, D. Dopico, U. Lugris, J. Cuadrado, "A benchmarking system for MBS simulation
software", Multibody System Dynamics 16 (2006), problems A02, A03, A04.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import SLENDER, bar
from jaxmbs.model import Hull, Pose
from jaxmbs.model.forces import LinearSpring
from jaxmbs.model.joints import Revolute

Z = (0.0, 0.0, 1.0)
DOWN = (0.0, -9.81, 0.0)


def _rod(mech: Mechanism, name: str, length: float, mass: float, direction: Sequence[float] = (1, 0, 0)) -> None:
    """Add a thin uniform rod that extends from the body's origin along a coordinate direction."""
    across = mass * length**2 / 12
    inertia = tuple(0.0 if x else across for x in direction)
    mech.add_body(name, mass, tuple(length / 2 * x for x in direction), inertia)
    bar(mech, name, (0, 0, 0), tuple(length * x for x in direction))


def four_bar(
    crank: float = 1.0,
    coupler: float = 2.0,
    rocker: float = 1.8,
    base: float = 2.2,
    mass_per_length: float = 1.0,
    gravity: Sequence[float] = DOWN,
) -> Mechanism:
    """Planar four-bar linkage of thin rods in the xy plane.

    crank, coupler, rocker: lengths of the rods [m]; base: distance between the hinges of crank and rocker [m];
    mass_per_length [kg/m]. The crank is hinged at the world's origin, the rocker at (base, 0, 0), the coupler at the end of
    the crank; the loop "pin" joins the ends of coupler and rocker. Angles: crank and rocker from the x axis, coupler from
    the crank. Most q are not consistent: `assemble` finds one that is.

    >>> mbs.library.four_bar().build().loop_names
    ('pin',)
    """
    mech = Mechanism("four-bar", gravity=tuple(gravity))
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        _rod(mech, name, length, mass_per_length * length)
    mech.add_joint("crank_hinge", Revolute(Z), "world", "crank")
    mech.add_joint("coupler_hinge", Revolute(Z), "crank", "coupler", Pose((crank, 0, 0)))
    mech.add_joint("rocker_hinge", Revolute(Z), "world", "rocker", Pose((base, 0, 0)))
    mech.close_loop("pin", Revolute(Z), "coupler", "rocker", Pose((coupler, 0, 0)), Pose((rocker, 0, 0)))
    return mech


def four_bar_windows(n: int = 2, length: float = 1.0, mass: float = 1.0, gravity: Sequence[float] = DOWN) -> Mechanism:
    """A row of n square windows of equal rods in the xy plane [IFToMM A02]; 2n + 1 rods, n loops, 1 degree of freedom.

    length [m] and mass [kg] of a rod. Posts "post_0", ..., "post_n" stand on the world at x = 0, length, ...; bars
    "bar_1", ..., "bar_n" join their upper ends. At q = 0 everything lies flat on the x axis, where the motion may branch;
    the windows are square at the post angles pi/2 and the bar angles -pi/2 (relative to the post that carries the bar).

    >>> mbs.library.four_bar_windows(3).build().nv
    7
    """
    mech = Mechanism(f"{n} four-bar windows", gravity=tuple(gravity))
    for i in range(n + 1):
        _rod(mech, f"post_{i}", length, mass)
        mech.add_joint(f"foot_{i}", Revolute(Z), "world", f"post_{i}", Pose((i * length, 0, 0)))
        if i:
            _rod(mech, f"bar_{i}", length, mass)
            head = Pose((length, 0, 0))
            mech.add_joint(f"head_{i - 1}", Revolute(Z), f"post_{i - 1}", f"bar_{i}", head)
            mech.close_loop(f"window_{i}", Revolute(Z), f"bar_{i}", f"post_{i}", head, head)
    return mech


def bricard(length: float = 1.0, mass: float = 1.0, gravity: Sequence[float] = DOWN) -> Mechanism:
    """Bricard's mechanism of five rods along the edges of a cube [IFToMM A04]: overconstrained, one degree of freedom.

    length [m] and mass [kg] of a rod. The sixth edge belongs to the world, from (0, 0, length) to the origin. Each of the
    six hinge axes is perpendicular to both its rods; counting the constraints would leave no degree of freedom. q = 0
    is the cube. Bodies "rod_1" to "rod_5", joints "hinge_1" to "hinge_5", loop "hinge_6"; the frames of all bodies are
    parallel to the world's at q = 0.

    >>> import warnings
    >>> warnings.simplefilter("ignore", mbs.ModelWarning)  # its constraints depend on one another
    >>> mbs.library.bricard().build().nv
    5
    """
    mech = Mechanism("Bricard", gravity=tuple(gravity))
    directions = ((1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0))
    axes = ((0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))
    parent, end = "world", Pose()
    for i, (direction, axis) in enumerate(zip(directions, axes, strict=False), 1):
        _rod(mech, f"rod_{i}", length, mass, direction)
        mech.add_joint(f"hinge_{i}", Revolute(axis), parent, f"rod_{i}", end)
        parent, end = f"rod_{i}", Pose(tuple(length * x for x in direction))
    mech.close_loop("hinge_6", Revolute(axes[5]), parent, "world", end, Pose((0, 0, length)))
    return mech


def andrews_squeezer() -> Mechanism:
    """Andrews' squeezing mechanism, seven bodies in the plane [IFToMM A03; Hairer and Wanner II, VII.7].

    Bodies K1 to K7, SI units, no gravity; the drive is a torque of 0.033 N m on joint "O" (pass it as tau). The joint
    angles are those of the literature: O beta, K1-K2 Theta, B gamma, A5 delta, K5-K4 Phi, A7 epsilon, K7-K6 Omega; at
    `ANDREWS_START` they are consistent.

    >>> model = mbs.library.andrews_squeezer().build()
    >>> [round(mbs.library.ANDREWS_START[joint], 4) for joint in model.joint_names[:3]]
    [-0.0617, 0.0, 0.4553]
    """
    d, e, zf, rr, ss = 28e-3, 2e-2, 2e-2, 7e-3, 35e-3
    da, ea, fa, ra, sa, sb = 115e-4, 1421e-5, 1421e-5, 92e-5, 1874e-5, 1043e-5
    sc, sd, ta, tb, u, ua, ub, zt = 18e-3, 2e-2, 2308e-5, 916e-5, 4e-2, 1228e-5, 449e-5, 4e-2
    A, B, C = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), (0.014, 0.072, 0.0)
    masses = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
    inertias = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
    # Centres of mass, in the axes of each body. The angles of K3 to K7 are measured such that the line to the end to
    # which the next body or the loop is attached points along -y (K3, K4, K7) or +x (K5, K6).
    coms = ((ra, 0), (-da, 0), (sb, -sa), (0, -(e - ea)), (ta, tb), (zf - fa, 0), (ua, -ub))
    mech = Mechanism("Andrews' squeezer")
    for k, (m, I, (x, y)) in enumerate(zip(masses, inertias, coms, strict=True), 1):
        mech.add_body(f"K{k}", m, (x, y, 0.0), (I, I, I))
    for name, end in (("K1", (rr, 0, 0)), ("K2", (-d, 0, 0)), ("K4", (0, -e, 0)), ("K6", (zf, 0, 0))):
        bar(mech, name, (0, 0, 0), end, SLENDER * u)
    for name, one, other in (
        ("K3", (0, -ss), (sd, -sc)),
        ("K5", (zt, 0), (3 * ta - zt, 3 * tb)),
        ("K7", (0, -u), (3 * ua, u - 3 * ub)),
    ):  # triangular plates; the last corners of K5 and K7 are where their centres of mass want them
        mech.add_visual(name, Hull([(x, y, z) for x, y in ((0, 0), one, other) for z in (-SLENDER * u, SLENDER * u)]))
    mech.add_joint("O", Revolute(Z), "world", "K1")
    mech.add_joint("K1-K2", Revolute(Z), "K1", "K2", Pose((rr, 0, 0)))
    mech.add_joint("B", Revolute(Z), "world", "K3", Pose(B))
    mech.add_joint("A5", Revolute(Z), "world", "K5", Pose(A))
    mech.add_joint("K5-K4", Revolute(Z), "K5", "K4", Pose((zt, 0, 0)))
    mech.add_joint("A7", Revolute(Z), "world", "K7", Pose(A))
    mech.add_joint("K7-K6", Revolute(Z), "K7", "K6", Pose((0, -u, 0)))
    for name, body, end in (("K3-E", "K3", (0, -ss, 0)), ("K4-E", "K4", (0, -e, 0)), ("K6-E", "K6", (zf, 0, 0))):
        mech.close_loop(name, Revolute(Z), body, "K2", Pose(end), Pose((-d, 0, 0)))
    spring = LinearSpring("K3", "world", (sd, -sc, 0), C, stiffness=4530.0, rest_length=0.07785)
    mech.add_force("spring", spring)
    return mech


ANDREWS_START = {
    "O": -0.0617138900142764496, "K1-K2": 0.0, "B": 0.455279819163070380, "A5": 0.487364979543842550,
    "K5-K4": 0.222668390165885885, "A7": 1.23054744454982120, "K7-K6": -0.222668390165885885,
}  # fmt: skip
"""Consistent joint angles [rad] at t = 0; the mechanism starts at rest."""
