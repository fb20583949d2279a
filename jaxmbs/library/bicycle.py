"""A bicycle with a rigid rider [Whipple 1899; Meijaard, Papadopoulos, Ruina, Schwab 2007]."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.chains import GRAVITY
from jaxmbs.model import Pose
from jaxmbs.model.constraints import RollingDisc
from jaxmbs.model.joints import Free, Revolute

Y = (0, 1, 0)


def bicycle(
    wheelbase: float = 1.02,
    trail: float = 0.08,
    tilt: float = math.pi / 10,
    gravity: Sequence[float] = GRAVITY,
) -> Mechanism:
    """The benchmark bicycle: rear frame with rider, fork, two wheels; three degrees of freedom in velocity, seven in
    configuration.

    wheelbase, trail [m], tilt of the steer axis [rad]; masses, inertias and radii (0.3 m and 0.35 m) are those of the
    benchmark. x points forwards, y to the left, z up; at q = 0 it stands upright with the rear wheel touching the origin.
    Joints "frame" (free: its velocities are those of the rear frame, in the frame's axes, at the point that touches the
    ground at q = 0), "steer" (positive to the right), "rear_hub", "front_hub" (positive when rolling forwards), constraints
    "rear_tyre", "front_tyre".

    >>> model = mbs.library.bicycle().build()
    >>> straight = jnp.array([0, 0, 0, 4.0, 0, 0, 0, 4.0 / 0.3, 4.0 / 0.35])  # at 4 m/s
    >>> J, _ = mbs.constraint_jacobian(model, model.neutral(), straight)
    >>> model.nv, J.shape[0], bool(jnp.abs(J @ straight).max() < 1e-5)  # the tyres roll
    (9, 6, True)
    """
    rear, front = 0.3, 0.35
    mech = Mechanism("bicycle", gravity=tuple(gravity))
    mech.add_body("frame", 85.0, (0.3, 0, 0.9), ((9.2, 0, -2.4), (0, 11.0, 0), (-2.4, 0, 2.8)))
    steer = Pose((wheelbase + trail, 0, 0))  # where the steer axis meets the ground
    inertia = ((0.05892, 0, 0.00756), (0, 0.06, 0), (0.00756, 0, 0.00708))
    mech.add_body("fork", 4.0, (0.9 - steer.position[0], 0, 0.7), inertia)
    mech.add_body("rear_wheel", 2.0, inertia=(0.0603, 0.12, 0.0603))
    mech.add_body("front_wheel", 3.0, inertia=(0.1405, 0.28, 0.1405))
    mech.add_joint("frame", Free(), "world", "frame")
    mech.add_joint("steer", Revolute((math.sin(tilt), 0, -math.cos(tilt))), "frame", "fork", steer)
    mech.add_joint("rear_hub", Revolute(Y), "frame", "rear_wheel", Pose((0, 0, rear)))
    mech.add_joint("front_hub", Revolute(Y), "fork", "front_wheel", Pose((-trail, 0, front)))
    mech.add_constraint("rear_tyre", RollingDisc("rear_wheel", radius=rear, axis=Y))
    mech.add_constraint("front_tyre", RollingDisc("front_wheel", radius=front, axis=Y))
    return mech
