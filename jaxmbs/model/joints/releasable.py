"""Releasable joints, which are Free joints: a run locks what the given joint would hold, until the release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.joints.base import Joint
from jaxmbs.model.joints.free import Free
from jaxmbs.model.pose import Pose


def released(where: str, joint: Joint, *poses: Pose) -> tuple[Joint, Joint, Pose, Pose]:
    """(Free joint, hinge: the given joint with its axis along z, the two poses that match this axis)."""
    if joint.within_free is None:
        raise ModelError(
            f"{where}: {joint.type_name} cannot be releasable; Revolute, Prismatic, Cylindrical, Spherical, Planar and "
            "Fixed can"
        )
    axis = getattr(joint, "axis", None)
    if axis is None:
        return Free(), joint, poses[0], poses[1]
    own = np.asarray(axis, float)
    if own.shape != (3,) or not np.isfinite(own).all() or not own.any():
        raise ModelError(f"{where}: axis {axis!r} is not a direction; pass three numbers that are not all zero")
    return Free(), replace(joint, axis=(0.0, 0.0, 1.0)), poses[0].turned_to(own), poses[1].turned_to(own)
