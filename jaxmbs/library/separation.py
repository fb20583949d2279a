"""A spent rocket stage and its payload, pushed apart by springs."""

from __future__ import annotations

import math

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import GREY, WHITE, bar
from jaxmbs.library.shapes import cylinder
from jaxmbs.model import Panel, Pose
from jaxmbs.model.forces import Pusher, Thruster
from jaxmbs.model.joints import Free


def stage_separation(
    stage_mass: float = 3000.0,
    payload_mass: float = 500.0,
    pushers: int = 4,
    pusher_radius: float = 0.45,
    stiffness: float = 10e3,
    preload: float = 1500.0,
    stroke: float = 0.1,
    residual_thrust: float = 300.0,
) -> Mechanism:
    """Two bodies floating in space, with equal spring pushers around the plane at which they separate.

    The x axis points from the stage to the payload; both body frames are at the centre of the separation plane, where
    they coincide at `neutral()`. stage_mass, payload_mass [kg] (uniform cylinders with lengths of 6 m and 1.2 m and
    radii of 1.3 m and 0.6 m); pushers: their number; each is mounted on the stage at `pusher_radius` [m] and pushes
    with `preload` [N] minus `stiffness` [N/m] times travel, up to `stroke` [m]; `residual_thrust` [N] acts on the stage
    at t = 0 and tails off in half a second.

    The payload is connected to the stage by a Free joint ("interface"): with `model.mode(lock=["interface"])` the two
    are joined, without a lock they separate. Other names: bodies "stage" and "payload", joint "flight", forces
    "pusher_1", ... and "residual". With the default values, and without thrust, 400 J in the springs give a relative
    speed of 1.37 m/s.

    >>> mbs.library.stage_separation(pushers=6).build().force_names
    ('pusher_1', 'pusher_2', 'pusher_3', 'pusher_4', 'pusher_5', 'pusher_6', 'residual')
    """
    mech = Mechanism("stage separation")
    mech.add_body("stage", stage_mass, (-3.0, 0, 0), cylinder(stage_mass, 1.3, 6.0, axis=0))
    mech.add_body("payload", payload_mass, (0.6, 0, 0), cylinder(payload_mass, 0.6, 1.2, axis=0))
    along = Pose().turned_to((1, 0, 0))
    bar(mech, "stage", (-5.2, 0, 0), (-0.4, 0, 0), 1.3, GREY)  # tanks
    mech.add_visual("stage", "nozzle", (1.4, 1.4, 0.8), Pose((-5.6, 0, 0), along.rotation))
    adapter = Panel(radius=1.28, length=0.4, thickness=0.02, end_radius=max(0.58, pusher_radius))
    mech.add_visual("stage", adapter, pose=Pose((-0.2, 0, 0), along.rotation))
    bar(mech, "payload", (0, 0, 0), (1.2, 0, 0), 0.6, WHITE)
    mech.add_joint("flight", Free(), "world", "stage")
    mech.add_joint("interface", Free(), "stage", "payload")
    for i in range(pushers):
        angle = 2 * math.pi * (i + 0.5) / pushers
        seat = (0.0, pusher_radius * math.cos(angle), pusher_radius * math.sin(angle))
        bar(mech, "stage", (-stroke, *seat[1:]), seat, 0.03)
        mech.add_force(f"pusher_{i + 1}", Pusher("stage", "payload", seat, seat, (1, 0, 0), stiffness, preload, stroke))
    tail_off = {"times": (0.0, 0.1, 0.2, 0.3, 0.5), "values": (1.0, 0.5, 0.25, 0.1, 0.0)}
    mech.add_force("residual", Thruster("stage", (-6.0, 0, 0), (1, 0, 0), residual_thrust, **tail_off))
    return mech
