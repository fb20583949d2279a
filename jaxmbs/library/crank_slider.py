"""The crank-slider of [Y 2.6.2]: a closed chain of three bodies in a plane."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import WHITE, bar
from jaxmbs.library.shapes import cylinder
from jaxmbs.model import Pose
from jaxmbs.model.joints import Prismatic, Revolute


def crank_slider(
    crank: float = 0.1, rod: float = 0.3, offset: float = 0.0, gravity: Sequence[float] = (0.0, -9.81, 0.0)
) -> Mechanism:
    """A crank that rotates in the xy plane and drives a slider along x through a connecting rod; one degree of freedom.

    crank, rod: lengths [m]; offset [m]: height of the slider's path above the crank's axis. Bodies "crank" (1 kg), "rod"
    (0.5 kg) and "slider" (2 kg); joints "bearing" (angle of the crank from x), "knee" (relative angle) and "guide" (x of
    the slider minus (crank + rod)); the loop "pin" hinges the slider to the rod. At q = 0 crank and rod point along x,
    which closes the loop if offset is 0.

    >>> mbs.library.crank_slider().build()
    <Model 'crank-slider': 3 bodies (crank, rod, slider), nq = 3, nv = 3>
    """
    mech = Mechanism("crank-slider", gravity=tuple(gravity))
    mech.add_body("crank", 1.0, (crank / 2, 0, 0), cylinder(1.0, 0.01, crank, axis=0))
    mech.add_body("rod", 0.5, (rod / 2, 0, 0), cylinder(0.5, 0.01, rod, axis=0))
    mech.add_body("slider", 2.0, (0.02, 0, 0), cylinder(2.0, 0.04, 0.08, axis=0))
    mech.add_joint("bearing", Revolute((0, 0, 1)), "world", "crank")
    mech.add_joint("knee", Revolute((0, 0, 1)), "crank", "rod", Pose((crank, 0, 0)))
    mech.add_joint("guide", Prismatic((1, 0, 0)), "world", "slider", Pose((crank + rod, offset, 0)))
    bar(mech, "crank", (0, 0, 0), (crank, 0, 0), 0.01)
    bar(mech, "rod", (0, 0, 0), (rod, 0, 0), 0.01)
    bar(mech, "slider", (-0.02, 0, 0), (0.06, 0, 0), 0.04, WHITE)
    mech.close_loop("pin", Revolute((0, 0, 1)), "rod", "slider", Pose((rod, 0, 0)))
    return mech
