"""Pendulums: a chain of equal rods, and the double pendulum with point masses."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import bar
from jaxmbs.library.shapes import cylinder
from jaxmbs.model import Pose
from jaxmbs.model.joints import Revolute

GRAVITY = (0.0, 0.0, -9.81)


def chain(
    n: int,
    length: float = 0.5,
    mass: float = 1.0,
    radius: float = 0.03,
    axes: Sequence[Sequence[float]] = ((0, 1, 0), (1, 0, 0)),
    gravity: Sequence[float] = GRAVITY,
) -> Mechanism:
    """A chain of n equal round rods, each hanging from the previous one, with n degrees of freedom.

    length, radius [m] and mass [kg] of one rod; axes: hinge axes, used cyclically (by default every second rod swings
    sideways; `((0, 1, 0),)` keeps all rods in the xz plane). At q = 0 the chain hangs along -z; bodies are "link_1",
    "link_2", ..., joints "hinge_1", "hinge_2", ....

    >>> mbs.library.chain(3).build()
    <Model 'chain of 3': 3 bodies (link_1, link_2, link_3), nq = 3, nv = 3>
    """
    mech = Mechanism(f"chain of {n}", gravity=tuple(gravity))
    for i in range(1, n + 1):
        mech.add_body(f"link_{i}", mass, (0, 0, -length / 2), cylinder(mass, radius, length))
        bar(mech, f"link_{i}", (0, 0, 0), (0, 0, -length), radius)
        parent, position = ("world", (0, 0, 0)) if i == 1 else (f"link_{i - 1}", (0, 0, -length))
        axis = tuple(axes[(i - 1) % len(axes)])
        mech.add_joint(f"hinge_{i}", Revolute(axis), parent, f"link_{i}", Pose(position))
    return mech


def double_pendulum(
    length_1: float = 1.0,
    length_2: float = 1.0,
    mass_1: float = 1.0,
    mass_2: float = 1.0,
    gravity: Sequence[float] = GRAVITY,
) -> Mechanism:
    """Two point masses on massless rods, swinging in the xz plane: the textbook system, with known equations.

    length_1, length_2 [m]: of the rods; mass_1, mass_2 [kg]: at their ends. Bodies "upper" and "lower", joints "shoulder"
    and "elbow" about -y: positive angles swing the masses towards +x; the second angle is relative to the first rod. At
    q = 0 both rods hang along -z.

    >>> mbs.library.double_pendulum(mass_2=2.0).build()
    <Model 'double pendulum': 2 bodies (upper, lower), nq = 2, nv = 2>
    """
    mech = Mechanism("double pendulum", gravity=tuple(gravity))
    mech.add_body("upper", mass_1, (0, 0, -length_1))
    mech.add_body("lower", mass_2, (0, 0, -length_2))
    mech.add_joint("shoulder", Revolute((0, -1, 0)), "world", "upper")
    mech.add_joint("elbow", Revolute((0, -1, 0)), "upper", "lower", Pose((0, 0, -length_1)))
    return mech
