"""A bicycle with a rigid rider [Whipple 1899; Meijaard, Papadopoulos, Ruina, Schwab 2007]."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmbs.building import Mechanism
from jaxmbs.library.chains import GRAVITY
from jaxmbs.library.drawing import DARK, WHITE, bar
from jaxmbs.model import Ball, Pose
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
    _draw(mech, rear, front, wheelbase, trail, math.tan(tilt))
    mech.add_constraint("rear_tyre", RollingDisc("rear_wheel", radius=rear, axis=Y))
    mech.add_constraint("front_tyre", RollingDisc("front_wheel", radius=front, axis=Y))
    return mech


def _draw(mech: Mechanism, rear: float, front: float, wheelbase: float, trail: float, slope: float) -> None:
    """Tubes, wheels with spokes, and the rider. slope: by which the steer axis falls back, per height."""

    def on_axis(height: float, side: float = 0.0) -> tuple[float, float, float]:  # of steering, in the fork
        return -slope * height, side, height

    def head(height: float) -> tuple[float, float, float]:  # the same, in the frame
        return wheelbase + trail - slope * height, 0.0, height

    hub, pedals, seat = (0, 0, rear), (0.43 * wheelbase, 0, 0.9 * rear), (0.27 * wheelbase, 0, 0.9)
    shoulders, hands = (0.5 * wheelbase, 0, 1.4), head(1.0)
    top, low = head(0.85), head(0.7)
    for a, b in ((hub, pedals), (hub, seat), (pedals, seat), (pedals, low), (seat, low), (low, top)):
        bar(mech, "frame", a, b, 0.018, DARK)
    for a, b, radius in ((seat, shoulders, 0.12), (shoulders, hands, 0.04), (seat, (*pedals[:2], 0.35), 0.07)):
        bar(mech, "frame", a, b, radius, WHITE)  # of the rider: trunk, arms, legs
    mech.add_visual("frame", Ball(0.11), pose=Pose((shoulders[0] + 0.05, 0, shoulders[2] + 0.2)), color=WHITE)
    bar(mech, "fork", (-trail, 0, front), on_axis(0.7), 0.018)
    bar(mech, "fork", on_axis(0.7), on_axis(1.0), 0.018)
    bar(mech, "fork", on_axis(1.0, -0.25), on_axis(1.0, 0.25), 0.015)
    for name, radius in (("rear_wheel", rear), ("front_wheel", front)):
        mech.add_visual(name, "pipe", (2 * radius, 2 * radius, 0.03), Pose().turned_to(Y), DARK)
        for x, z in ((1, 0), (0, 1)):
            bar(mech, name, (-radius * x, 0, -radius * z), (radius * x, 0, radius * z), 0.006, DARK)
