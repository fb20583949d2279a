"""Rectangular plates: finite elements of Adini, Clough and Melosh for thin plates, reduced to a part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.flexible_bodies.beams import bend_k, gathered, positive, rod_k, rod_m
from jaxmbs.model.flexible_bodies.reduction import reduced

Array = np.ndarray
Place = tuple[float, float]
IN_PLANE = 1e4  # stiffness in the plane of the plate, relative to that against bending


def plate(
    length: float,
    width: float,
    mass: float,
    stiffness: float,
    *,
    poisson: float,
    root: str,
    modes: int,
    elements: tuple[int, int],
    attach: Mapping[str, Place],
    stations: Mapping[str, Place] | None,
) -> dict[str, Any]:
    """The fields of a part, with more modes than are asked for: see `Part.plate`."""
    positive("plate", length=length, width=width, mass=mass, stiffness=stiffness)
    if not -1 < poisson < 0.5:
        raise ModelError(f"plate: poisson is {poisson!r}; pass a ratio between -1 and 0.5")
    if len(elements) != 2 or not all(isinstance(n, int) and n >= 2 for n in elements) or elements[1] % 2:
        raise ModelError(f"plate: elements is {elements!r}; pass two integers of two or more, the second of them even")
    nx, ny = elements
    grid = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    x = np.zeros((nx + 1, ny + 1, 3))
    x[..., 0] = np.linspace(0, length, nx + 1)[:, None] - (length / 2 if root == "free" else 0.0)
    x[..., 1] = np.linspace(-width / 2, width / 2, ny + 1)
    roots = {"edge": grid[0].tolist(), "point": int(grid[0, ny // 2]), "free": None}
    if root not in roots:
        raise ModelError(f"plate: root is {root!r}; choose from {', '.join(roots)}")

    def node(name: str, place: Place) -> int:
        if np.shape(place) != (2,) or not (0 <= place[0] <= 1 and -0.5 <= place[1] <= 0.5):
            raise ModelError(
                f"plate: {name!r} is at {place!r}; pass 0 (root) to 1 along its length, -0.5 to 0.5 across"
            )
        return int(grid[round(place[0] * nx), round((place[1] + 0.5) * ny)])

    M, K = assembled(grid, length / nx, width / ny, mass / (length * width), stiffness, poisson)
    return reduced(
        M, K, x.reshape(-1, 3), attachments={name: node(name, at) for name, at in attach.items()},
        stations={name: node(name, at) for name, at in (stations or {}).items()}, frame=roots[root],
        modes=2 * max(modes, 1) + 6,
    )  # fmt: skip


def assembled(grid: Array, a: float, b: float, rho: float, D: float, poisson: float) -> tuple[Any, Any]:
    """Mass and stiffness (6 N, 6 N) of elements of a by b and mass rho per area between the nodes of a grid. In its plane
    the plate is a lattice of beams, much stiffer than in bending."""
    m, k = _element(a, b, rho, D, poisson)
    masses, springs, sides = [], [], ((0, 0), (1, 0), (1, 1), (0, 1))
    flat = rho * a * b * np.array([[rod_m[i, k] * rod_m[j, l] for k, l in sides] for i, j in sides])
    for p, q, r, s in zip(
        *(g.reshape(-1) for g in (grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:])), strict=True
    ):
        bent = [6 * n + c for n in (p, q, r, s) for c in (2, 3, 4)]
        masses += [(bent, m), *(([6 * n + c for n in (p, q, r, s)], flat) for c in (0, 1))]
        springs.append((bent, k))
    along_x, along_y = (grid[:-1], grid[1:]), (grid[:, :-1], grid[:, 1:])
    turned = np.diag([-1, 1, -1, 1])  # a beam along y: to its left is -x
    for (first, last), h, axis, signs in ((along_x, a, 0, np.eye(4)), (along_y, b, 1, turned)):
        stretched, bowed = IN_PLANE * D / (a * h) * rod_k, IN_PLANE * D * a * signs @ bend_k(h) @ signs
        for p, q in zip(first.reshape(-1), last.reshape(-1), strict=True):
            springs.append(([6 * p + axis, 6 * q + axis], stretched))
            springs.append(([6 * p + 1 - axis, 6 * p + 5, 6 * q + 1 - axis, 6 * q + 5], bowed))
    return gathered(6 * grid.size, masses), gathered(6 * grid.size, springs)


POWERS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3), (3, 1), (1, 3))


def _terms(x: float, y: float, dx: int = 0, dy: int = 0) -> Array:
    """The polynomials of the deflection, or their derivatives, at a point."""

    def one(x: float, n: int, d: int) -> float:
        return 0.0 if d > n else float(np.prod(np.arange(n - d + 1, n + 1))) * x ** (n - d)

    return np.array([one(x, i, dx) * one(y, j, dy) for i, j in POWERS])


def _element(a: float, b: float, rho: float, D: float, poisson: float) -> tuple[Array, Array]:
    """(mass, stiffness) (12, 12) of an element, for the deflection and the rotations about x and y at each corner."""
    corners = [(0.0, 0.0), (a, 0.0), (a, b), (0.0, b)]
    at_nodes = [f for x, y in corners for f in (_terms(x, y), _terms(x, y, dy=1), -_terms(x, y, dx=1))]
    inverse = np.linalg.inv(np.array(at_nodes))
    elastic = D * np.array([[1, poisson, 0], [poisson, 1, 0], [0, 0, (1 - poisson) / 2]])
    m, k = np.zeros((12, 12)), np.zeros((12, 12))
    points, weights = np.polynomial.legendre.leggauss(4)
    for s, ws in zip((points + 1) / 2 * a, weights * a / 2, strict=True):
        for t, wt in zip((points + 1) / 2 * b, weights * b / 2, strict=True):
            w, bent = _terms(s, t), np.array([_terms(s, t, dx=2), _terms(s, t, dy=2), 2 * _terms(s, t, 1, 1)])
            m += ws * wt * rho * np.outer(w, w)
            k += ws * wt * bent.T @ elastic @ bent
    return inverse.T @ m @ inverse, inverse.T @ k @ inverse
