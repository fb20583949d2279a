"""A body whose mass distribution is free but stays physically possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.pseudo_inertia import distribution, inertia_of, second_moments, unconstrained
from jaxmbs.design.variables import Coordinate, Part
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown

if TYPE_CHECKING:
    from jaxmbs.model import Model

Vector = Sequence[float]
_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of an inertia, in the order of its six numbers
_PLACES: Any = np.array([[_ENTRIES.index((min(i, j), max(i, j))) for j in range(3)] for i in range(3)])
_INERTIA = ("I_xx", "I_yy", "I_zz", "I_xy", "I_xz", "I_yz")


@dataclass(frozen=True)
class MassDistribution:
    """Centre of mass and inertia of a body, free but always physically possible; its mass is free, too, if it has bounds.

    body: its name; mass: None for the given mass, or (low, high) [kg]; center, half_axes (3,) [m]: an ellipsoid in the
    body's frame that contains all of its mass (half_axes None: no envelope); pole (3,) [m]: the point about which
    relations express first moments and inertia, the body's origin by default; equal: other bodies that get the same
    mass and distribution, each in its own frame; mirrored: other bodies that get the mirror image, with the coordinate
    `across` ("x", "y" or "z") reversed in their own frame; least_thickness t [m]: in every direction, the second moment
    of mass about the centre of mass is at least m t²/12, that of a uniform plate of thickness t along its normal.

    Relations are expressed in body.I_xx, I_yy, I_zz, I_xy, I_xz, I_yz, entries of the inertia matrix about the pole (I_xy is
    minus the integral of x y dm), in the first moments body.h_x, h_y, h_z (mass times centre of mass), and body.mass.

    >>> mbs.design.MassDistribution("link", half_axes=(0.1, 0.3, 0.1)).center
    (0.0, 0.0, 0.0)
    """

    body: str
    mass: tuple[float, float] | None = None
    center: Vector = (0.0, 0.0, 0.0)
    half_axes: Vector | None = None
    pole: Vector = (0.0, 0.0, 0.0)
    equal: Sequence[str] = ()
    mirrored: Sequence[str] = ()
    across: str = "x"
    least_thickness: float = 0.0

    def part(self, model: Model) -> Part:
        """The variables of this item. Raises ModelError for an unknown body, a body without mass, or wrong bounds."""
        bodies = (self.body, *self.equal, *self.mirrored)
        for name in bodies:
            if name not in model.body_names:
                raise unknown("body", name, model.body_names, "free")
        mass = float(mbs.get(model, f"{self.body}.mass"))
        if not mass > 0:
            raise ModelError(f"free: body {self.body!r} has no mass to distribute; give it one")
        if self.across not in ("x", "y", "z"):
            raise ModelError(f'free: across = {self.across!r}; pass "x", "y" or "z"')
        inside = self.half_axes is not None
        com, second = np.asarray(mbs.get(model, f"{self.body}.com"), float), self._second(model, mass)
        # lengths are in units of the body's size, so that the variables are of similar size for small and large bodies
        reach = max(float(np.sqrt(np.trace(second))), float(np.linalg.norm(com)), 1e-6)
        center = np.asarray(self.center if inside else np.zeros(3), float)
        half = np.asarray(self.half_axes if inside else np.full(3, reach), float)
        if half.shape != (3,) or np.any(half <= 0):
            raise ModelError(f"free: half_axes {self.half_axes} of {self.body!r}; pass three lengths more than zero")
        pole = np.asarray(self.pole, float)
        thin = self.least_thickness**2 / 12
        if not self.least_thickness >= 0:
            raise ModelError(f"free: least_thickness {self.least_thickness} of {self.body!r}; pass a length, 0 or more")
        if inside and np.sum(thin / half**2) >= 1:
            raise ModelError(
                f"free: body {self.body!r} with the least thickness {self.least_thickness:g} m does not fit into half_axes "
                f"{tuple(self.half_axes or ())}; reduce least_thickness or enlarge half_axes"
            )
        own = unconstrained(com, second, center, half, inside, thin)
        low, high, log = np.full(9, -np.inf), np.full(9, np.inf), np.arange(9) < 3
        names = [Coordinate(f"{self.body}.{n}", "kg m2", (1, 2)) for n in _INERTIA]
        names += [Coordinate(f"{self.body}.h_{a}", "kg m", (1, 1)) for a in "xyz"]
        if self.mass is not None:
            least, most = self.mass
            if not 0 < least <= most:
                raise ModelError(f"free: mass {self.mass} of {self.body!r}; pass (low, high) with 0 < low <= high")
            own, log = np.append(own, 0.0), np.append(log, True)
            low, high = np.append(low, np.log(least / mass)), np.append(high, np.log(most / mass))
            names.append(Coordinate(f"{self.body}.mass", "kg", (1, 0)))

        def place(x: Any) -> Any:
            m = mass * jnp.exp(x[9]) if self.mass is not None else mass
            c, S = distribution(x[:9], center, half, inside, thin)
            r = c - pole
            I = inertia_of(m * (S + r[:, None] * r[None, :]))
            found = jnp.concatenate([jnp.stack([I[k] for k in _ENTRIES]), m * r])
            return found if self.mass is None else jnp.append(found, m)

        def values(c: Any, given: Any) -> dict[str, Any]:
            xp = np if isinstance(c, np.ndarray) else jnp
            m = c[9] if self.mass is not None else given.get(f"{self.body}.mass", mass)
            r, I = c[6:9] / m, c[_PLACES]
            I = I - m * (r @ r * xp.eye(3) - r[:, None] * r[None, :])
            flip = np.diag([-1.0 if a == self.across else 1.0 for a in "xyz"])
            found = {}
            for name in bodies:
                F = flip if name in self.mirrored else np.eye(3)
                found |= {f"{name}.com": F @ (r + pole), f"{name}.inertia": F @ I @ F}
                if self.mass is not None or len(bodies) > 1:
                    found[f"{name}.mass"] = m
            return found

        return Part(self.body, own, low, high, log, tuple(names), place, values, inside)

    def _second(self, model: Model, mass: float) -> np.ndarray:
        return second_moments(np.asarray(mbs.get(model, f"{self.body}.inertia"), float)) / mass
