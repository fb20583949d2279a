"""Euler-Bernoulli beams: finite elements, reduced to a part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from jaxmbs.model.errors import ModelError
from jaxmbs.model.flexible_bodies.reduction import inertia_of, reduced


def beam(
    length: float,
    mass: float,
    bending: tuple[float, float],
    torsion: float,
    *,
    tension: float | None,
    gyration: tuple[float, float] | None,
    modes: int,
    elements: int,
    attach: Sequence[str],
    stations: Mapping[str, float] | None,
    sections: Mapping[str, float] | None,
    free: bool,
    foreshortening: bool,
) -> dict[str, Any]:
    """The fields of a part, with more modes than are asked for: see `Part.beam`."""
    positive("beam", length=length, mass=mass, torsion=torsion)
    EI, r = _two("bending", bending), _two("gyration", gyration or (0.01 * length, 0.01 * length))
    EA = 1e4 * max(EI) / length**2 if tension is None else tension
    positive("beam", tension=EA)
    if not isinstance(elements, int) or elements < 2:
        raise ModelError(f"beam: elements is {elements!r}; pass an integer of two or more")
    places = {"root": 0, "tip": elements}
    if lacking := [name for name in attach if name not in places]:
        raise ModelError(f"beam: {lacking[0]!r} is no node to attach to; choose from {', '.join(places)}")
    for name, place in (stations or {}).items():
        if not 0 <= place <= 1:
            raise ModelError(f"beam: station {name!r} is at {place!r}; pass 0 (root) to 1 (tip)")
    for name, place in (sections or {}).items():
        if not 0 <= place < 1:
            raise ModelError(f"beam: section {name!r} is at {place!r}; pass 0 (root) to less than 1 (tip)")
    x = np.zeros((elements + 1, 3))
    x[:, 0] = np.linspace(0, length, elements + 1) - (length / 2 if free else 0.0)
    M, K = assembled(elements, length / elements, mass / length, EI, torsion, EA, r[0] ** 2 + r[1] ** 2)
    at = [places[name] for name in attach] + [round(place * elements) for place in (stations or {}).values()]

    def further(shapes: np.ndarray, found: Mapping[str, Any]) -> dict[str, Any]:
        return foreshortened(shapes, found, x[:, 0], mass / length, at)

    return reduced(
        M, K, x, attachments={name: places[name] for name in attach},
        stations={name: round(place * elements) for name, place in (stations or {}).items()}, frame=None if free else 0,
        modes=min(2 * max(modes, 1) + 6, 6 * (elements - 1)),
        recovery=_section_loads(
            assembled(1, length / elements, mass / length, EI, torsion, EA, 1.0)[1].toarray(), elements, sections or {}
        ),
        further=further if foreshortening else None,
    )  # fmt: skip


def _section_loads(K: np.ndarray, elements: int, sections: Mapping[str, float]) -> dict[str, Any]:
    """Rows of the torque and the bending moments that the element beyond each section exerts on it; K (12, 12): of one
    element."""
    found: dict[str, Any] = {}
    for section, place in sections.items():
        e = min(round(place * elements), elements - 1)
        for k, name in enumerate(("torque", "moment_y", "moment_z")):
            row = np.zeros((1, 6 * (elements + 1)))
            row[0, 6 * e : 6 * e + 12] = -K[3 + k]
            found[f"{section}_{name}"] = (row, "N m")
    return found


def foreshortened(
    shapes: np.ndarray, found: Mapping[str, Any], x: np.ndarray, rho: float, at: Sequence[int]
) -> dict[str, Any]:
    """The fields of a part that the foreshortening of its beam changes; found: those of `of_shapes`; shapes (6 N, n); x
    (N,): places of the nodes of finite elements; rho: mass per length; at: the nodes of the part.

    A beam whose axis does not stretch has the displacement -qᵀ C(x) q / 2 along x, with C the integral, from its root to x,
    of the products of the slopes of its modes. The integral of rho f(x) C over the beam is that of dC/dx times the integral
    of rho f from x to the tip. The mean displacement of a free beam is zero, like that of each of its modes.
    """
    h, n = x[1] - x[0], shapes.shape[1]
    points, weights = np.polynomial.legendre.leggauss(4)  # exact: the integrand is of sixth order
    s, weights = (points + 1) / 2, weights * h / 2
    slope = np.stack([6 * (s * s - s) / h, 1 - 4 * s + 3 * s * s, 6 * (s - s * s) / h, 3 * s * s - 2 * s])
    u = shapes.reshape(len(x), 6, n)
    rates: Any = 0.0
    for moved, turned in ((u[:, 1], u[:, 5]), (u[:, 2], -u[:, 4])):
        own = np.einsum("dg,edk->egk", slope, np.stack([moved[:-1], turned[:-1], moved[1:], turned[1:]], axis=1))
        rates = rates + np.einsum("egk,egl->egkl", own, own)
    place = x[:-1, None] + s * h
    beyond = [rho * (x[-1] ** k - place**k) / k for k in (1, 2)]  # the integrals of rho and of rho x
    first, second = (np.einsum("g,eg,egkl->kl", weights, mass, rates) for mass in beyond)
    along = np.concatenate([np.zeros((1, n, n)), np.cumsum(np.einsum("g,egkl->ekl", weights, rates), axis=0)])
    if x[0]:  # free
        along, first = along - first / (rho * (x[-1] - x[0])), 0 * first
    spread = np.zeros((n, n, 3, 3))
    spread[..., 0, 0] = -second
    axis = np.array([1.0, 0.0, 0.0])
    return {
        "inertia_curvature": found["inertia_curvature"] + inertia_of(spread),
        "moment_curvature": -first[..., None] * axis,
        "shortening": -along[list(at), None] * axis[:, None, None],
    }


def positive(where: str, **numbers: Any) -> None:
    """Refuse numbers that are not more than zero."""
    for name, x in numbers.items():
        if np.ndim(x) or not x > 0 or not np.isfinite(x):
            raise ModelError(f"{where}: {name} is {x!r}; it must be more than zero")


def _two(name: str, given: Any) -> tuple[float, float]:
    x = np.asarray(given, float)
    if x.shape != (2,) or not (x > 0).all() or not np.isfinite(x).all():
        raise ModelError(f"beam: {name} is {given!r}; pass two numbers that are more than zero")
    return float(x[0]), float(x[1])


rod_m, rod_k = np.array([[2, 1], [1, 2]]) / 6, np.array([[1, -1], [-1, 1]])  # times mass per length and h, and EA / h


def bend_m(h: float) -> np.ndarray:
    """Mass of an element of length h per unit mass per length, for the deflections and slopes at its ends."""
    return h / 420 * np.array([
        [156, 22 * h, 54, -13 * h],
        [22 * h, 4 * h * h, 13 * h, -3 * h * h],
        [54, 13 * h, 156, -22 * h],
        [-13 * h, -3 * h * h, -22 * h, 4 * h * h],
    ])  # fmt: skip


def bend_k(h: float) -> np.ndarray:
    """Stiffness of an element of length h per unit bending stiffness, for the deflections and slopes at its ends."""
    return 1 / h**3 * np.array([
        [12, 6 * h, -12, 6 * h],
        [6 * h, 4 * h * h, -6 * h, 2 * h * h],
        [-12, -6 * h, 12, -6 * h],
        [6 * h, 2 * h * h, -6 * h, 4 * h * h],
    ])  # fmt: skip


def gathered(size: int, blocks: Iterable[tuple[Sequence[int], np.ndarray]]) -> scipy.sparse.csr_array:
    """The sum of matrices of elements, each at its places."""
    rows, columns, numbers = [], [], []
    for places, own in blocks:
        rows.append(np.repeat(places, len(places)))
        columns.append(np.tile(places, len(places)))
        numbers.append(own.reshape(-1))
    triplets = np.concatenate(numbers), (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.coo_array(triplets, shape=(size, size)).tocsr()


def assembled(
    n: int, h: float, rho: float, EI: tuple[float, float], GJ: float, EA: float, polar: float
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Mass and stiffness (6 (n + 1), 6 (n + 1)) of n elements of length h and mass rho per length; polar: the square of the
    radius of gyration about the axis."""
    down = np.diag([1, -1, 1, -1])  # in the plane xz the slope is minus the rotation about y
    parts = [  # places among the twelve displacements of an element, its mass and its stiffness
        ((0, 6), rho * h * rod_m, EA / h * rod_k),
        ((3, 9), rho * h * polar * rod_m, GJ / h * rod_k),
        ((1, 5, 7, 11), rho * bend_m(h), EI[1] * bend_k(h)),
        ((2, 4, 8, 10), rho * down @ bend_m(h) @ down, EI[0] * down @ bend_k(h) @ down),
    ]
    at = [([6 * e + c for c in places], m, k) for e in range(n) for places, m, k in parts]
    return gathered(6 * (n + 1), ((x, m) for x, m, _ in at)), gathered(6 * (n + 1), ((x, k) for x, _, k in at))
