"""The triple physical pendulum of the method of separate bodies [Y 3.5], with the values of its file `init.m`."""

from __future__ import annotations

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import bar
from jaxmbs.model import Pose
from jaxmbs.model.joints import Revolute


def triple_pendulum() -> Mechanism:
    """Three rods of 2 m, 1 kg and 1 kg m² about their centres, hinged end to end about z; each weighs 1 N along -y.

    At q = 0 all rods lie along x. Bodies "rod_1" to "rod_3", joints "hinge_1" to "hinge_3"; the angles are relative,
    whereas the source's program measures each from the x axis.

    >>> mbs.library.triple_pendulum().build()
    <Model 'triple pendulum': 3 bodies (rod_1, rod_2, rod_3), nq = 3, nv = 3>
    """
    mech = Mechanism("triple pendulum", gravity=(0, -1, 0))
    parent, end = "world", (0, 0, 0)
    for k in (1, 2, 3):
        mech.add_body(f"rod_{k}", 1.0, (1, 0, 0), (0, 1, 1))
        bar(mech, f"rod_{k}", (0, 0, 0), (2, 0, 0))
        mech.add_joint(f"hinge_{k}", Revolute((0, 0, 1)), parent, f"rod_{k}", Pose(end))
        parent, end = f"rod_{k}", (2, 0, 0)
    return mech
