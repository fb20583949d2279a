"""Beams: finite elements of Euler and Bernoulli, reduced to a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse

from jaxmbs.flexible.reduction import reduced
from jaxmbs.model import ModelError
from jaxmbs.model.flexible import FlexiblePart

Array = np.ndarray


def beam(
    length: float,
    mass: float,
    bending: tuple[float, float],
    torsion: float,
    *,
    tension: float | None = None,
    gyration: tuple[float, float] | None = None,
    modes: int = 6,
    elements: int = 20,
    attach: Sequence[str] = ("tip",),
    stations: Mapping[str, float] | None = None,
    free: bool = False,
) -> FlexiblePart:
    """A straight slender beam along x, from its root, where the floating frame is, to the node "tip".

    length [m]; mass [kg]; bending: (EI_y, EI_z) [N m²], the stiffness against bending in the planes xz and xy;
    torsion: GJ [N m²]; tension: EA [N], None for 1e4 times the larger bending stiffness over length²; gyration: (r_y, r_z)
    [m], radii of gyration of the cross-section about y and z, whose rotary inertia acts on torsion alone; None: 1 % of the
    length. modes: the number kept, those of lowest frequency. elements: finite elements (cubic in bending); attach: the
    nodes that other elements may be attached to, of "root" and "tip"; stations: {name: place} of further nodes, which move
    with the beam, for shapes, outputs and light things; place: 0 at the root, 1 at the tip, rounded to a node of the finite
    elements. free: the modes are those of the free beam instead, and the floating frame is at its centre.

    Raises ModelError for numbers that are not positive.

    >>> part = mbs.flexible.beam(length=2.0, mass=1.5, bending=(40.0, 90.0), torsion=10.0, modes=2)
    >>> f = 1.875104**2 / (2 * jnp.pi * 2.0**2) * jnp.sqrt(40.0 / (1.5 / 2.0))  # of Euler and Bernoulli
    >>> print(part.frequency[0].round(4), f.round(4))
    1.0216 1.0216
    """
    EI, r = tuple(bending), gyration or (0.01 * length, 0.01 * length)
    EA = 1e4 * max(EI) / length**2 if tension is None else tension
    for name, x in (("length", length), ("mass", mass), ("torsion", torsion), ("tension", EA), ("elements", elements)):
        if not x > 0:
            raise ModelError(f"beam: {name} is {x!r}; it must be more than zero")
    if len(EI) != 2 or min(EI) <= 0 or min(r) <= 0:
        raise ModelError(f"beam: bending {bending!r}, gyration {gyration!r}; pass two numbers that are more than zero")
    places = {"root": 0, "tip": elements}
    if lacking := [name for name in attach if name not in places]:
        raise ModelError(f"beam: {lacking[0]!r} is no node to attach to; choose from {', '.join(places)}")
    for name, place in (stations or {}).items():
        if not 0 <= place <= 1:
            raise ModelError(f"beam: station {name!r} is at {place!r}; pass 0 (root) to 1 (tip)")
    x = np.zeros((elements + 1, 3))
    x[:, 0] = np.linspace(0, length, elements + 1) - (length / 2 if free else 0.0)
    M, K = _assembled(elements, length / elements, mass / length, EI, torsion, EA, r[0] ** 2 + r[1] ** 2)
    part = reduced(
        M, K, x, attachments={name: places[name] for name in attach},
        stations={name: round(place * elements) for name, place in (stations or {}).items()}, frame=None if free else 0,
        modes=min(2 * modes + 6, 6 * (elements - 1)),
    )  # fmt: skip
    return part.keep(min(modes, part.modes))


def _assembled(
    n: int, h: float, rho: float, EI: tuple[float, float], GJ: float, EA: float, polar: float
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Mass and stiffness (6 (n + 1), 6 (n + 1)) of n elements of length h and mass rho per length."""
    M, K = (scipy.sparse.lil_array((6 * (n + 1), 6 * (n + 1))) for _ in range(2))
    rod_m, rod_k = h / 6 * np.array([[2, 1], [1, 2]]), 1 / h * np.array([[1, -1], [-1, 1]])
    bend_m = h / 420 * np.array([
        [156, 22 * h, 54, -13 * h],
        [22 * h, 4 * h * h, 13 * h, -3 * h * h],
        [54, 13 * h, 156, -22 * h],
        [-13 * h, -3 * h * h, -22 * h, 4 * h * h],
    ])  # fmt: skip
    bend_k = 1 / h**3 * np.array([
        [12, 6 * h, -12, 6 * h],
        [6 * h, 4 * h * h, -6 * h, 2 * h * h],
        [-12, -6 * h, 12, -6 * h],
        [6 * h, 2 * h * h, -6 * h, 4 * h * h],
    ])  # fmt: skip
    down = np.diag([1, -1, 1, -1])  # in the plane xz the slope is minus the rotation about y
    parts = [  # places among the twelve displacements of an element, its mass and its stiffness
        ((0, 6), rho * rod_m, EA * rod_k),
        ((3, 9), rho * polar * rod_m, GJ * rod_k),
        ((1, 5, 7, 11), rho * bend_m, EI[1] * bend_k),
        ((2, 4, 8, 10), rho * down @ bend_m @ down, EI[0] * down @ bend_k @ down),
    ]
    for e in range(n):
        for places, m, k in parts:
            at = np.ix_(*[[6 * e + c for c in places]] * 2)
            M[at] += m
            K[at] += k
    return M.tocsr(), K.tocsr()
