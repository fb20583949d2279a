"""A payload on a rail: the beginning of the study files of several benchmarks."""

from __future__ import annotations


def study(name: str, criterion: str, t_end: float, dt: float, mass: float = 1.0) -> str:
    """The text of a study file: a payload of this mass [kg] moves for t_end [s], and its speed is the output.

    Callers append forces and dispersions.
    """
    return f"""
criteria = ["{criterion}"]
[mechanism]
name = "{name}"
[[mechanism.bodies]]
name = "payload"
mass = {mass}
inertia = [1.0, 1.0, 1.0]
[[mechanism.joints]]
name = "rail"
type = "prismatic"
axis = [1.0, 0.0, 0.0]
parent = "world"
child = "payload"
[simulation]
t_end = {t_end}
dt = {dt}
[outputs.speed]
type = "joint_velocity"
joint = "rail"
"""
