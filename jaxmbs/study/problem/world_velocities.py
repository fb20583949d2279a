"""Velocities at the start that a file gives in world axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxmbs.model import Model

_ROUNDING = 1e-9  # relative to the velocities


def rates_for(
    model: Model, q: np.ndarray, v: np.ndarray, wanted: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, float]]:
    """(v, {joint: by how much the motion of its child differs, where the joint does not allow the wanted one}).

    q (nq,); v (nv,): the rates of the other joints, which are kept; wanted: by joint, the angular velocity of its child
    [rad/s], then the velocity of the origin of the child's frame [m/s], (6,), in world axes, at t = 0.
    """
    import jax

    from jaxmbs.dynamics import body_velocities

    with jax.enable_x64(True):  # files are read in double precision
        moving = np.asarray(body_velocities(model, q, v))
        slopes = np.asarray(jax.jacfwd(lambda v: body_velocities(model, q, v))(v))  # (n, 6, nv), whatever v
    v, refused = np.array(v, float), {}
    for k, link in enumerate(model.structure.links):  # parents first
        if link.name in wanted:
            own = model.v_slice(link.name)
            change = np.zeros_like(v)
            change[own] = np.linalg.lstsq(slopes[k][:, own], wanted[link.name] - moving[k])[0]
            v, moving = v + change, moving + slopes @ change
            missed = np.abs(moving[k] - wanted[link.name]).max()
            if missed > _ROUNDING * (1 + np.abs(wanted[link.name]).max()):
                refused[link.name] = float(missed)
    return v, refused
