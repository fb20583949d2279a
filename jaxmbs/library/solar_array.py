"""A solar array that unfolds, driven through a linkage: four bodies, five hinges, a closed loop [Y 2.1]."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import bar, solar_panel
from jaxmbs.library.shapes import box, cylinder
from jaxmbs.model import Pose
from jaxmbs.model.forces import TorsionSpring
from jaxmbs.model.joints import Revolute

Z = (0, 0, 1)


def solar_array_linkage(
    panel: float = 1.0, stiffness: float = 2.0, damping: float = 6.0, gravity: Sequence[float] = (0.0, 0.0, 0.0)
) -> Mechanism:
    """Two panels, a lever and a rod in the xy plane; two degrees of freedom, folded at q = 0.

    The inner panel (hinge "root") lies along y against the wall of the spacecraft (the world) and swings to x; the
    outer panel (hinge "fold") is folded back onto it and unfolds by half a turn. A lever (hinge "pivot"), driven by a
    spring, pushes the inner panel through a rod (hinge "joint"); the loop "clevis" hinges the rod to the inner panel.
    panel: length of a panel [m], 4 kg each; stiffness [N m/rad] and damping [N m s/rad] of the springs at "root" (rest at
    -pi/2), "fold" (rest at -pi) and, with a quarter of both values, "pivot" (rest at -1 rad). Bodies "inner", "outer",
    "lever", "rod".

    >>> mbs.library.solar_array_linkage().build()
    <Model 'solar array': 4 bodies (inner, outer, lever, rod), nq = 4, nv = 4>
    """
    mech = Mechanism("solar array", gravity=tuple(gravity))
    mass, thick = 4.0, 0.03
    mech.add_body("inner", mass, (0, panel / 2, 0), box(mass, thick, panel, 1.0))
    mech.add_body("outer", mass, (0, -panel / 2, 0), box(mass, thick, panel, 1.0))
    mech.add_body("lever", 0.3, (-0.05, 0.1, 0), cylinder(0.3, 0.01, 0.22, axis=1))
    mech.add_body("rod", 0.2, (0.1, 0.1, 0), cylinder(0.2, 0.01, 0.28, axis=1))
    solar_panel(mech, "inner", (thick, panel, 1.0), (0, panel / 2, 0))
    solar_panel(mech, "outer", (thick, panel, 1.0), (0, -panel / 2, 0), -1)
    bar(mech, "lever", (0, 0, 0), (-0.1, 0.2, 0), 0.01)
    bar(mech, "rod", (0, 0, 0), (0.2, 0.2, 0), 0.01)
    mech.add_joint("root", Revolute(Z), "world", "inner")
    mech.add_joint("fold", Revolute(Z), "inner", "outer", Pose((0.05, panel, 0)))
    mech.add_joint("pivot", Revolute(Z), "world", "lever", Pose((-0.1, -0.1, 0)))
    mech.add_joint("joint", Revolute(Z), "lever", "rod", Pose((-0.1, 0.2, 0)))
    mech.close_loop("clevis", Revolute(Z), "rod", "inner", Pose((0.2, 0.2, 0)), Pose((0, 0.3, 0)))
    for hinge, k, rest in (("root", 1.0, -1.5708), ("fold", 1.0, -3.1416), ("pivot", 0.25, -1.0)):
        mech.add_force(
            f"{hinge}_spring", TorsionSpring(hinge, stiffness=k * stiffness, damping=k * damping, rest_angle=rest)
        )
    return mech
