"""The elastic coordinates of a flexible body.

The displacement of a point x of the body is the sum of the modes phi_k(x), each times its coordinate q_k. Kinetic
energy follows from integrals over the body's volume, which are the numbers of `ElasticModes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints.base import Coordinate, Joint, JointMotion, Numbers, Scalars
from jaxmbs.spatial import IDENTITY, ZERO_MOTION
from jaxmbs.spatial.scalar import Scalar

UNIT = "m kg^0.5"  # of a coordinate of a mode with unit modal mass


@element
class ElasticModes(Joint):
    """The elastic coordinates of a flexible body, made by `Mechanism.add_flexible_body`; modes have unit modal mass.

    q: coordinates of the modes. The frame of the child is that of the parent; bodies at the nodes (`FlexibleNode`) move
    with q.
    """

    modes: int = field(Kind.COUNT, "", "number of modes")
    momentum: Vector = field(Kind.LIST, "kg^0.5", "for each mode, the integral of rho phi: 3 numbers")
    angular_momentum: Vector = field(Kind.LIST, "m kg^0.5", "for each mode, the integral of rho x × phi: 3 numbers")
    inertia_change: Vector = field(
        Kind.LIST, "m kg^0.5", "for each mode, the derivative of the inertia matrix: xx, yy, zz, xy, xz, yz"
    )
    coupling: Vector = field(
        Kind.LIST, "", "for each pair of modes k < l, the integral of rho phi_k × phi_l: 3 numbers; a zero for one mode"
    )
    inertia_curvature: Vector = field(
        Kind.LIST,
        "",
        "for each pair k <= l, the second derivative of the inertia: 6 numbers; or one zero",
        default=(0.0,),
    )

    moment_curvature: Vector = field(
        Kind.LIST,
        "1/m",
        "for each pair k <= l, the second derivative of mass times centre of mass: 3 numbers; or one zero",
        default=(0.0,),
    )

    recovery: Mapping[str, Vector] | tuple[tuple[str, Kind], ...] = field(
        Kind.NUMBERS,
        "",
        "stresses and the like by name: rows, one after the other, of a number per mode; SI",
        default=(),
    )
    recovery_units: str = field(Kind.TEXT, "", "their SI units, in the same order, separated by commas", default="")

    elastic: ClassVar[bool] = True

    @property
    def needed(self) -> Mapping[str, Kind]:
        return {name: kind for name, kind in self.numbers.items() if name not in self.recovered}

    @property
    def recovered(self) -> dict[str, str]:
        """{name: unit} of what can be recovered from the coordinates."""
        names = [x if isinstance(x, str) else x[0] for x in self.recovery]
        return dict(zip(names, self.recovery_units.split(","), strict=True)) if names else {}

    @property
    def nq(self) -> int:  # type: ignore[override]
        return self.modes

    @property
    def nv(self) -> int:  # type: ignore[override]
        return self.modes

    def requirements(self, p: Mapping[str, Any]) -> Mapping[str, Any]:
        n = self.modes
        lengths = {
            "momentum": 3 * n,
            "angular_momentum": 3 * n,
            "inertia_change": 6 * n,
            "coupling": 3 * n * (n - 1) // 2,
        }
        for name, length in lengths.items():
            if np.shape(p[name])[-1] != max(length, 1):
                raise ModelError(f"{name}: {np.shape(p[name])[-1]} numbers; {n} modes need {max(length, 1)}")
        conditions = {}
        for name, whole in (("inertia_curvature", 3 * n * (n + 1)), ("moment_curvature", 3 * n * (n + 1) // 2)):
            given = p[name]
            if np.shape(given)[-1] not in (1, whole):
                raise ModelError(f"{name}: {np.shape(given)[-1]} numbers; pass {whole}, or one zero")
            said = f"{name}: one number that is not zero, for {n} modes; pass {whole} numbers"
            conditions[said] = np.shape(given)[-1] == whole or (given == 0).all(-1)
        if self.recovery and len(self.recovery) != self.recovery_units.count(",") + 1:
            raise ModelError(
                f"recovery_units is {self.recovery_units!r}; give {len(self.recovery)} units with commas between"
            )
        for name in self.recovered:
            if np.shape(p[name])[-1] % n:
                raise ModelError(f"{name}: {np.shape(p[name])[-1]} numbers; rows for {n} modes have {n} each")
        return conditions

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        return JointMotion(IDENTITY, (ZERO_MOTION,) * self.modes, ZERO_MOTION, ZERO_MOTION)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"mode[{k}]", UNIT) for k in range(self.modes))

    def random(self, key: jax.Array) -> jax.Array:
        return 0.01 * jax.random.uniform(key, (self.nq,), minval=-1.0, maxval=1.0)
