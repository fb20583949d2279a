"""Stiffness and damping of a flexible body."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial.known import ONE, known
from jaxmbs.spatial.scalar import Scalar, total


@element
class ModalStiffness(Force):
    """Stiffness and damping along the modes of a flexible body, made by `Mechanism.add_flexible_body`. Modes have unit
    modal mass, so that the force along one is -(2 pi f)² q - 4 pi f damping dq/dt. f is its frequency [Hz] with the
    frame of the body held.

    damping_matrix: further damping between modes, n² numbers row by row; one zero for none. Its symmetric part should not
    be negative, or it supplies energy.

    participation: factor s on how much the modes take part in the motion of the body; 1 leaves the body as its `Part` gives
    it. The body behaves as one whose shapes are all larger by the factor s at unit modal mass: momentum, angular
    momentum and the change of inertia with each mode are multiplied by s, effective masses by s², while mass, inertia,
    frequencies and damping stay the same. The coordinates q, and displacements and stresses per q, remain those of the given
    shapes, which then have the modal mass 1/s².
    """

    joint: str = field(Kind.JOINT, "", "joint with the elastic coordinates")
    frequency: Vector = field(Kind.LIST, "Hz", "natural frequency of each mode with the frame of the body held")
    damping: Vector = field(Kind.LIST, "", "damping of each mode, as a fraction of critical damping")
    damping_matrix: Vector = field(
        Kind.LIST, "1/s", "further damping between modes: n² numbers, row by row; or one zero", default=(0.0,)
    )
    participation: Number = field(
        Kind.POSITIVE, "", "factor on how much the modes take part in the motion of the body", default=1.0, neutral=1.0,
        kw_only=True,
    )  # fmt: skip
    participation_limit: Number = field(
        Kind.POSITIVE, "", "participation at which the modes have all of the body's momentum in some motion", default=1e6,
        kw_only=True,
    )  # fmt: skip
    freedoms: ClassVar[int | None] = None

    def requirements(self, p: Mapping[str, Any]) -> Mapping[str, Any]:
        n = np.shape(p["frequency"])[-1]
        if np.shape(p["damping"])[-1] != n:
            raise ModelError(f"damping: {np.shape(p['damping'])[-1]} numbers for {n} modes; pass {n}")
        if np.shape(p["damping_matrix"])[-1] not in (1, n * n):
            raise ModelError(
                f"damping_matrix: {np.shape(p['damping_matrix'])[-1]} numbers for {n} modes; pass {n * n}, or one zero"
            )
        whole = np.shape(p["damping_matrix"])[-1] == n * n
        return {
            f"damping_matrix: one number that is not zero, for {n} modes; pass {n * n} numbers": whole
            | (p["damping_matrix"] == 0).all(-1),
            "frequency: a mode has a negative frequency; pass frequencies of zero or more": (p["frequency"] >= 0).all(
                -1
            ),
            "damping: a mode has negative damping; pass fractions of zero or more": (p["damping"] >= 0).all(-1),
            "participation: above participation_limit the modes carry more momentum than the body's mass and inertia "
            "allow; pass less": p["participation"] <= p["participation_limit"],
        }

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        q, lost = scene.coordinates(self.joint), self._lost(p, scene)
        m = _modal_mass(p)
        loads.joint(self.joint, [m * (-(w * w * x) - y) for w, x, y in zip(_circular(p), q, lost, strict=True)])

    def armatures(self, p: Numbers) -> Mapping[str, Scalar]:
        return {self.joint: _modal_mass(p) - ONE}

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        q = scene.coordinates(self.joint)
        return _modal_mass(p) * total(*(0.5 * (w * w * x * x) for w, x in zip(_circular(p), q, strict=True)))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return -_modal_mass(p) * total(
            *(x * y for x, y in zip(self._lost(p, scene), scene.rates(self.joint), strict=True))
        )

    def _lost(self, p: Numbers, scene: Scene) -> list[Scalar]:
        """Damping force along each mode, per modal mass."""
        v, C, n = scene.rates(self.joint), p["damping_matrix"], len(p["frequency"])
        own = [2 * w * z * x for w, z, x in zip(_circular(p), p["damping"], v, strict=True)]
        if len(C) < n * n:
            return own
        return [f + total(*(c * x for c, x in zip(C[k * n : (k + 1) * n], v, strict=True))) for k, f in enumerate(own)]


def _modal_mass(p: Numbers) -> Scalar:
    return known(1.0) / (p["participation"] * p["participation"])


def _circular(p: Numbers) -> list[Scalar]:
    return [2 * math.pi * f for f in p["frequency"]]
