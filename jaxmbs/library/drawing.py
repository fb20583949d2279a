"""Forms that the pictures of several ready mechanisms share. They have neither mass nor contact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxmbs.building import Mechanism
from jaxmbs.model import Ball, Box, Pose, Tube

SLENDER = 0.02  # radius of a bar per its length, where the mechanism does not say how thick it is
ARM, JOINT = 0.08, 0.04  # radius of a limb per its length; of a joint [m]
CELLS = "#1f3a6e"  # the colour of solar cells
WHITE, GREY, DARK = "#d9dee6", "#8a94a6", "#4a5362"


def bar(
    mech: Mechanism, body: str, start: Sequence[float], end: Sequence[float], radius: float = 0.0, color: str = ""
) -> None:
    """Draw a round bar between two points of a body; radius [m]: `SLENDER` times its length if it is 0."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(b - a))
    middle = Pose(tuple((a + b) / 2)).turned_to(tuple(b - a))
    mech.add_visual(body, Tube(radius or SLENDER * length, length), pose=middle, color=color)


def limb(mech: Mechanism, body: str, *ends: Sequence[float]) -> None:
    """Draw bars as thick as arms from the origin of a body to points of it; where such a point is the origin, a ball of
    the size of a joint [m]."""
    for end in ends:
        length = float(np.linalg.norm(end))
        if length:
            bar(mech, body, (0, 0, 0), end, ARM * length)
        else:
            mech.add_visual(body, Ball(JOINT))


def block(mech: Mechanism, body: str, size: Sequence[float], center: Sequence[float], color: str = "") -> None:
    """Draw a box with edges along the axes of a body; size, center (3,) [m]."""
    mech.add_visual(body, Box(tuple(size)), pose=Pose(tuple(center)), color=color)


def solar_panel(mech: Mechanism, body: str, size: Sequence[float], center: Sequence[float], cells: int = 1) -> None:
    """Draw a panel across x of a body, with solar cells on the side of `cells` (1: towards x, -1: towards -x); size, center
    (3,) [m]."""
    (x, y, z), (at_x, at_y, at_z) = size, center
    block(mech, body, size, center, GREY)
    block(mech, body, (x / 10, 0.94 * y, 0.94 * z), (at_x + cells * 0.55 * x, at_y, at_z), CELLS)
