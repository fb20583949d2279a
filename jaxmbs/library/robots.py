"""A seven-axis arm and a humanoid, with typical sizes rather than the data of a particular machine."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import bar, block
from jaxmbs.library.shapes import box, cylinder
from jaxmbs.model import Pose
from jaxmbs.model.joints import Free, Revolute

GRAVITY = (0.0, 0.0, -9.81)
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def arm7(gravity: Sequence[float] = GRAVITY) -> Mechanism:
    """A light arm with seven revolute joints (about 1.3 m and 23 kg), upright at q = 0.

    The axes alternate between z (along the arm) and y (across it): shoulder 3, elbow 1, wrist 3. Bodies are "link_1" to
    "link_7", joints "joint_1" to "joint_7"; the flange is the point (0, 0, 0.07) of link_7.

    >>> mbs.library.arm7().build().nv
    7
    """
    mech = Mechanism("arm7", gravity=tuple(gravity))
    # axis, height of the joint above the previous one [m], mass [kg], length [m] and radius [m] of the link
    links = [
        (Z, 0.16, 4.0, 0.20, 0.08),
        (Y, 0.20, 4.0, 0.20, 0.08),
        (Z, 0.20, 3.5, 0.22, 0.07),
        (Y, 0.22, 3.5, 0.20, 0.07),
        (Z, 0.20, 3.0, 0.20, 0.06),
        (Y, 0.20, 3.0, 0.08, 0.06),
        (Z, 0.08, 2.0, 0.07, 0.05),
    ]
    parent = "world"
    for i, (axis, height, mass, length, radius) in enumerate(links, 1):
        mech.add_body(f"link_{i}", mass, (0, 0, length / 2), cylinder(mass, radius, length))
        bar(mech, f"link_{i}", (0, 0, 0), (0, 0, length), radius)
        mech.add_joint(f"joint_{i}", Revolute(axis), parent, f"link_{i}", Pose((0, 0, height)))
        parent = f"link_{i}"
    return mech


def humanoid30(gravity: Sequence[float] = GRAVITY) -> Mechanism:
    """A standing robot (1.6 m, 65 kg) with a floating pelvis; 2 axes each in waist and neck, 6 per leg, 4 per arm.

    30 degrees of freedom, 25 bodies. x is forward, y to the left, z up; the frame of the pelvis lies between the hips,
    0.85 m above the soles. Every axis has its own body, such as "left_hip_yaw" or "right_forearm"; joints are "base" and
    "<body>_hinge".

    >>> mbs.library.humanoid30().build().nv
    30
    """
    mech = Mechanism("humanoid30", gravity=tuple(gravity))
    mech.add_body("pelvis", 10.0, (0, 0, 0.05), box(10.0, 0.18, 0.28, 0.18))
    block(mech, "pelvis", (0.18, 0.28, 0.18), (0, 0, 0.05))
    mech.add_joint("base", Free(), "world", "pelvis", Pose((0, 0, 0.85)))

    def segment(name, axis, parent, position, mass, length, radius, com=(0, 0, 0)):
        mech.add_body(name, mass, com, cylinder(mass, radius, length))
        x, y, z = com
        bar(mech, name, (x, y, z - length / 2), (x, y, z + length / 2), radius)
        mech.add_joint(f"{name}_hinge", Revolute(axis), parent, name, Pose(position))

    segment("waist_yaw", Z, "pelvis", (0, 0, 0.12), 2.0, 0.08, 0.08)
    segment("torso", Y, "waist_yaw", (0, 0, 0.05), 18.0, 0.40, 0.14, (0, 0, 0.20))
    bar(mech, "torso", (0, -0.2, 0.36), (0, 0.2, 0.36), 0.04)  # from shoulder to shoulder
    segment("neck", Z, "torso", (0, 0, 0.42), 0.8, 0.08, 0.05)
    bar(mech, "neck", (0, 0, 0), (0, 0, 0.06), 0.05)
    segment("head", Y, "neck", (0, 0, 0.06), 3.5, 0.20, 0.09, (0, 0, 0.09))
    for side, s in (("left", 1), ("right", -1)):
        segment(f"{side}_hip_yaw", Z, "pelvis", (0, 0.09 * s, 0), 1.0, 0.08, 0.06)
        segment(f"{side}_hip_roll", X, f"{side}_hip_yaw", (0, 0, 0), 1.0, 0.08, 0.06)
        segment(f"{side}_thigh", Y, f"{side}_hip_roll", (0, 0, 0), 4.5, 0.38, 0.07, (0, 0, -0.17))
        segment(f"{side}_shin", Y, f"{side}_thigh", (0, 0, -0.38), 2.8, 0.38, 0.05, (0, 0, -0.16))
        segment(f"{side}_ankle", Y, f"{side}_shin", (0, 0, -0.39), 0.5, 0.06, 0.04)
        mech.add_body(f"{side}_foot", 0.9, (0.04, 0, -0.05), box(0.9, 0.24, 0.10, 0.05))
        block(mech, f"{side}_foot", (0.24, 0.10, 0.05), (0.04, 0, -0.05))
        mech.add_joint(f"{side}_foot_hinge", Revolute(X), f"{side}_ankle", f"{side}_foot")
        segment(f"{side}_shoulder_pitch", Y, "torso", (0, 0.20 * s, 0.36), 0.9, 0.08, 0.05)
        segment(f"{side}_shoulder_roll", X, f"{side}_shoulder_pitch", (0, 0.02 * s, 0), 0.9, 0.08, 0.05)
        segment(f"{side}_upper_arm", Z, f"{side}_shoulder_roll", (0, 0, -0.03), 1.6, 0.26, 0.04, (0, 0, -0.12))
        segment(f"{side}_forearm", Y, f"{side}_upper_arm", (0, 0, -0.27), 1.2, 0.26, 0.035, (0, 0, -0.12))
    return mech
