"""Checks that what is a part of a body, such as its flywheels, has no more mass or inertia than the body."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.forces.base import Force
from jaxmbs.model.parameters import Values
from jaxmbs.spatial import RigidInertia
from jaxmbs.spatial.inertias import ZERO_INERTIA

if TYPE_CHECKING:
    from jaxmbs.model.model import Model

_ROUNDING = 1e-9  # relative to the inertia of the body
_OF_BODY = ("mass", "com", "inertia")


def check_taken(model: Model, changed: Collection[str] | None = None, where: str = "") -> None:
    """Raise ModelError if elements such as flywheels take more mass or inertia from a body than it has.

    changed: names of the parameters that have changed, None for all; where: beginning of the message. Traced and batched
    numbers are not checked.
    """
    takers: dict[str, dict[str, Force]] = {}
    for name, element in ((f.name, f.element) for f in model.structure.forces):
        if element.takes:
            takers.setdefault(getattr(element, element.bodies[0]), {})[name] = element
    for body, parts in takers.items():
        names = {f"{body}.{path}" for path in _OF_BODY}
        names |= {f"{name}.{path}" for name, element in parts.items() for path in element.numbers}
        concrete = isinstance(model.numbers, np.ndarray) and names.isdisjoint(model.overrides)
        if concrete and (changed is None or not names.isdisjoint(changed)):
            _check_body(body, parts, model.values(), where)


def _check_body(body: str, parts: dict[str, Force], values: Values, where: str) -> None:
    own = RigidInertia.at_com(*(values[f"{body}.{path}"] for path in _OF_BODY))
    taken = ZERO_INERTIA
    for name, element in parts.items():
        taken += element.masses(values.of(name, element.numbers)).get(body, ZERO_INERTIA)
    rest, several = own + taken, " and ".join(map(repr, parts))
    left = float(rest.mass)
    if left < -_ROUNDING * float(own.mass):
        raise ModelError(
            f"{where}body {body!r} has a mass of {float(own.mass):.6g} kg, but {several}, which belongs to it, "
            f"{-float(taken.mass):.6g} kg; pass the mass of the body together with it, or a smaller one for {several}"
        )
    size, moments = np.trace(_about_center(own)), np.linalg.eigvalsh(_about_center(rest))
    if size and moments[0] < -_ROUNDING * size:  # a point mass has no inertia to take from; only masses matter there
        raise ModelError(
            f"{where}body {body!r} has less inertia than {several}, which belongs to it: {moments[0]:.3g} kg m2 about some "
            f"axis would be left without it; pass the inertia of the body together with it, or a smaller one for {several}"
        )


def _about_center(x: RigidInertia) -> np.ndarray:
    """The inertia (3, 3) about the centre of mass."""
    found = np.array([[float(c) for c in row] for row in x.inertia.full().rows()])
    if not float(x.mass):
        return found
    h = np.array([float(c) for c in x.moment])
    return found - (h @ h * np.eye(3) - np.outer(h, h)) / float(x.mass)
