"""Path generation: a point of a linkage passes through given points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.constrained.public import constrained_state
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@element
class CurveThroughPoints(Objective):
    """The origin of a body passes through given points (x, y) with all loops closed; its z is not constrained.

    The coordinates of all joints at every point are unknowns of the search, in addition to the parameters; a driver joint
    may have given angles at the points. To use another point of a body, fix a massless body to it and use its origin.

    >>> mbs.design.CurveThroughPoints("pen", x=(0.0, 1.0), y=(0.0, 0.5)).body
    'pen'
    """

    body: str = field(Kind.BODY, "", "body whose origin passes through the points")
    x: Vector = field(Kind.LIST, "m", "x of the points")
    y: Vector = field(Kind.LIST, "m", "y of the points")
    driver: str | None = field(Kind.JOINT, "", "joint with given angles at the points", default=None)
    angles: Vector | None = field(Kind.LIST, "rad", "its angles", default=None)

    def check(self, setting: Setting) -> None:
        model = setting.model
        if self.body not in model.body_names:
            raise unknown("body", self.body, model.body_names, "CurveThroughPoints")
        if len(self.x) != len(self.y):
            raise ModelError(
                f"CurveThroughPoints: {len(self.x)} values of x and {len(self.y)} of y; give the same number of both"
            )
        if self.driver is not None:
            if self.driver not in model.joint_names:
                raise unknown("joint", self.driver, model.joint_names, "CurveThroughPoints")
            if self.angles is None or len(self.angles) != len(self.x):
                raise ModelError(f"CurveThroughPoints: driver {self.driver!r} needs as many angles as there are points")

    def data(self, setting: Setting) -> Any:
        angles = np.zeros(len(self.x)) if self.angles is None else np.asarray(self.angles, float)
        return jnp.asarray(np.stack([np.asarray(self.x, float), np.asarray(self.y, float), angles], axis=1))

    def constants(self, setting: Setting) -> Any:
        """Extent of the points [m]."""
        return np.array([max(np.ptp(np.asarray(self.x)), np.ptp(np.asarray(self.y)), 1e-6)])

    def own(self, setting: Setting) -> tuple[int, float]:
        return setting.model.nq, 0.7

    def own_start(self, setting: Setting) -> np.ndarray:
        start = np.tile(np.asarray(setting.model.neutral(), float), (len(self.x), 1))
        if self.driver is not None:
            start[:, setting.model.q_slice(self.driver)] = np.asarray(self.angles, float)[:, None]
        return start

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        state = constrained_state(model, own, jnp.zeros(model.nv, own.dtype), 0.0, None)
        rows = constraints(state)
        open_by = [jnp.asarray(g) for g, on in zip(rows.residual, rows.holonomic, strict=True) if on]
        place = mbs.body_poses(model, own).position[model.body_names.index(self.body)]
        found = [*open_by, place[0] - instance[0], place[1] - instance[1]]
        if self.driver is not None:
            found.append(own[model.q_slice(self.driver)][0] - instance[2])
        return jnp.stack(found)

    def residuals(self, measured: Array, constants: Any) -> Array:
        return (measured / constants[0]).reshape(-1)

    def describe(self, model: Model) -> str:
        return f"{self.body} passes through {len(self.x)} points"
