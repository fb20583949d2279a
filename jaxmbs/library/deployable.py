"""Long structures that deploy with one degree of freedom: a scissor mast, a wing of synchronised panels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import SLENDER, bar, block, solar_panel
from jaxmbs.library.shapes import box
from jaxmbs.model import Pose
from jaxmbs.model.constraints import Coupling
from jaxmbs.model.forces import TorsionSpring
from jaxmbs.model.joints import Prismatic, Revolute

Z = (0.0, 0.0, 1.0)


def _turned(along: float, by: float) -> Pose:
    """A pose on a bar, at the distance `along` [m], rotated about z by `by` times pi."""
    angle = by * math.pi / 2
    return Pose((along, 0.0, 0.0), (math.cos(angle), 0.0, 0.0, math.sin(angle)))


def scissor_mast(
    bays: int = 50, length: float = 1.0, mass: float = 1.0, gravity: Sequence[float] = (0.0, -9.81, 0.0)
) -> Mechanism:
    """A mast of crossed bars that rises along y: `bays` pairs on top of one another, with one degree of freedom.

    length [m] and mass [kg] of a bar. Bars "rising_1", ... lean to the right, "falling_1", ... to the left; they cross at
    their middles (joints "cross_1", ...). The left foot is hinged at the world's origin (joint "foot"), the right foot on a
    "slider" along x (joint "track", loop "shoe"); each pair is pinned to the upper ends of the pair below (joints "left_2",
    ..., loops "right_2", ...). At q = 0 the bars cross at right angles. If every bar is raised by the angle c, the
    coordinates are foot = c, cross = -2 c, left = 2 c and track = length * (cos(c + pi/4) - cos(pi/4)).

    >>> model = mbs.library.scissor_mast(10).build()
    >>> (model.nv, len(model.loop_names))
    (21, 10)
    """
    mech = Mechanism(f"mast of {bays} bays", gravity=tuple(gravity))
    mech.add_body("slider", 0.1 * mass, inertia=(1e-3 * mass * length**2,) * 3)
    width = 2 * SLENDER * length  # of a bar
    block(mech, "slider", (3 * width, width, 3 * width), (0, 0, 0))
    half = math.sqrt(0.5)
    mech.add_joint("track", Prismatic((1, 0, 0)), "world", "slider", Pose((half * length, 0, 0)))
    across = mass * length**2 / 12
    middle, head = Pose((length / 2, 0, 0)), Pose((length, 0, 0))
    for k in range(1, bays + 1):
        rising, falling = f"rising_{k}", f"falling_{k}"
        for name in (rising, falling):
            mech.add_body(name, mass, (length / 2, 0, 0), (0.0, across, across))
            level = width / 2 if name == rising else -width / 2  # the bars of a pair lie side by side
            bar(mech, name, (0, 0, level), (length, 0, level))
        below = (
            ("foot", "world", _turned(0.0, 0.25))
            if k == 1
            else (f"left_{k}", f"falling_{k - 1}", _turned(length, -0.5))
        )
        mech.add_joint(below[0], Revolute(Z), below[1], rising, below[2])
        mech.add_joint(f"cross_{k}", Revolute(Z), rising, falling, _turned(length / 2, 0.5), middle)
        if k == 1:
            mech.close_loop("shoe", Revolute(Z), "slider", falling)
        else:
            mech.close_loop(f"right_{k}", Revolute(Z), f"rising_{k - 1}", falling, head)
    return mech


def synchronised_wing(
    panels: int = 20,
    length: float = 1.0,
    mass: float = 4.0,
    stiffness: float = 0.5,
    damping: float = 2.0,
    gravity: Sequence[float] = (0.0, 0.0, 0.0),
) -> Mechanism:
    """A solar wing whose panels unfold like an accordion in the xy plane, synchronised by cables; 1 degree of freedom.

    length [m] and mass [kg] of a panel. At q = 0 all panels are stacked along y against the wall. During deployment the
    hinge "root" rotates by -pi/2, the hinges "fold_2", ... alternately by pi and -pi. Every hinge has a spring
    "spring_1", ... of stiffness [N m/rad] and damping [N m s/rad] that is relaxed when the wing is unfolded; the
    constraints "cable_2", ... couple each hinge to the previous one.

    >>> model = mbs.library.synchronised_wing(6).build()
    >>> model.constraint_names
    ('cable_2', 'cable_3', 'cable_4', 'cable_5', 'cable_6')
    """
    mech = Mechanism(f"wing of {panels} panels", gravity=tuple(gravity))
    quarter, before = 1.5707963267948966, ""
    for k in range(1, panels + 1):
        up = 1 if k % 2 else -1  # when folded, every second panel points down
        mech.add_body(f"panel_{k}", mass, (0, up * length / 2, 0), box(mass, 0.03, length, 1.0))
        solar_panel(mech, f"panel_{k}", (0.02, length, 1.0), (0, up * length / 2, 0), up)
        parent, place = ("world", Pose()) if k == 1 else (f"panel_{k - 1}", Pose((0.03, -up * length, 0)))
        hinge = "root" if k == 1 else f"fold_{k}"
        mech.add_joint(hinge, Revolute(Z), parent, f"panel_{k}", place)
        rest = -quarter if k == 1 else -2 * up * quarter
        mech.add_force(f"spring_{k}", TorsionSpring(hinge, stiffness=stiffness, damping=damping, rest_angle=rest))
        if k > 1:
            ratio = -2.0 if k == 2 else -1.0
            mech.add_constraint(f"cable_{k}", Coupling(hinge, before, coefficients=(0.0, ratio)))
        before = hinge
    return mech
