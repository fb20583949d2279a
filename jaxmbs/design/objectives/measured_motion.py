"""Identification from measured motions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.base import Setting
from jaxmbs.design.objectives.measurements import Measured, coordinate
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.study import Study

Array = Any
TIME = "t"


@element
class MeasuredMotion(Measured):
    """A simulated motion explains measured positions, velocities and outputs, weighted by their noise.

    measurements: {"t": (T,) increasing times, none below 0, "joint.q": (T,), "joint.v": (T,), "output of the study": (T,)};
    joints with several coordinates have columns "joint.q[0]" and so on; NaN marks a gap. noise: standard deviation of each
    of `columns`, or one for all. The motion begins at t = 0 from q0, v0, or from the study's initial state; if that is not
    known exactly, `start_noise` is its standard deviation, and the initial state is estimated as well. Use one objective for
    each experiment.

    >>> swing = {"t": [0.0, 0.1], "elbow.q": [0.3, 0.29]}
    >>> mbs.design.MeasuredMotion(swing, columns="elbow.q", noise=(1e-3,), goal="least").dt
    0.01
    """

    simulates: ClassVar[bool] = True

    columns: str = field(Kind.TEXT, "", "columns that are explained, separated by spaces", kw_only=True)
    noise: Vector = field(Kind.LIST, "SI", "standard deviation of each column, or one of all", kw_only=True)
    q0: Vector | None = field(Kind.LIST, "rad or m", "coordinates at t = 0", default=None, kw_only=True)
    v0: Vector | None = field(Kind.LIST, "rad/s or m/s", "rates at t = 0", default=None, kw_only=True)
    start_noise: float | None = field(
        Kind.POSITIVE, "SI", "standard deviation of q0 and v0; they are exact by default", default=None, kw_only=True
    )
    dt: float = field(Kind.POSITIVE, "s", "step of the simulation", default=0.01, kw_only=True)
    study: Study | None = field(
        Kind.ARRAYS, "", "study whose outputs columns may name; a problem fills it in", default=None, kw_only=True
    )

    @property
    def explained(self) -> list[str]:
        """Names of the columns to be explained."""
        return self.columns.split()

    def ready(self, setting: Setting) -> MeasuredMotion:
        return replace(self, study=setting.study)

    def check(self, setting: Setting) -> None:
        given, model = self.named(), setting.model
        t = np.asarray(given.get(TIME, ()), float)
        if t.ndim != 1 or len(t) < 2 or not (t[0] >= 0 and np.all(np.diff(t) > 0)):
            raise ModelError('MeasuredMotion: "t" must be two or more increasing times from 0 on')
        if not self.explained:
            raise ModelError("MeasuredMotion: no columns; name those that the motion should explain")
        for name in self.explained:
            if name not in given:
                raise unknown("column", name, [k for k in given if k != TIME], "MeasuredMotion")
            if np.shape(given[name]) != t.shape:
                raise ModelError(f"MeasuredMotion: {name!r} has shape {np.shape(given[name])}; pass one for each time")
            if coordinate(model, name, "q v") is None:
                known = () if setting.study is None else setting.study.outputs
                if name not in known:
                    raise unknown("output", name, known, "MeasuredMotion (joint.q and joint.v name coordinates)")
        if len(self.noise) not in (1, len(self.explained)) or not np.all(np.asarray(self.noise) > 0):
            raise ModelError(f"MeasuredMotion: noise must be one number more than zero, or {len(self.explained)}")
        q, v = self._start(setting)
        if len(q) != model.nq or len(v) != model.nv:
            raise ModelError(f"MeasuredMotion: q0 needs {model.nq} numbers and v0 {model.nv}")
        if self.start_noise is not None and model.nq != model.nv:
            raise ModelError("MeasuredMotion: start_noise needs joints that have as many coordinates as velocities")

    def _start(self, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        # with NumPy, not JAX: files are read before the precision is chosen
        links = setting.model.structure.links
        q, v = np.array([c for link in links for c in link.joint.neutral()], float), np.zeros(setting.model.nv)
        if setting.study is not None:
            q, v = setting.study.q0, setting.study.v0
        q, v = q if self.q0 is None else self.q0, v if self.v0 is None else self.v0
        return np.asarray(q, float), np.asarray(v, float)

    def own(self, setting: Setting) -> tuple[int, float]:
        return (0 if self.start_noise is None else setting.model.nq + setting.model.nv), 0.0

    def own_start(self, setting: Setting) -> np.ndarray:
        return np.zeros((1, setting.model.nq + setting.model.nv))

    def data(self, setting: Setting) -> Any:
        """One instance: the experiment's initial state, times and measured values."""
        given = self.named()
        values = np.stack([np.asarray(given[name], float) for name in self.explained], axis=1)
        q, v = self._start(setting)
        return tuple(jnp.asarray(a)[None] for a in (q, v, np.asarray(given[TIME], float), values))

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        q, v, t, values = instance
        if self.start_noise is not None:
            q, v = q + self.start_noise * own[: model.nq], v + self.start_noise * own[model.nq :]
        times = np.asarray(self.named()[TIME], float)
        if times[0] > 0:
            times = np.concatenate([[0.0], times])
        run = mbs.simulate(model, q, v, times=times, dt=self.dt)
        first = len(times) - len(t)
        found = jnp.stack(
            [self._column(model, name, t, run.q[first:], run.v[first:]) for name in self.explained], axis=1
        )
        gap = jnp.isnan(values)
        size = jnp.broadcast_to(jnp.asarray(self.noise, float), values.shape[1:])[None]
        misses = jnp.where(gap, 0.0, (found - jnp.where(gap, 0.0, values)) / size)
        # a failed motion has no valid residuals
        return jnp.concatenate([jnp.where(run.status == 0, misses.reshape(-1), jnp.nan), own])

    def _column(self, model: Model, name: str, t: Array, q: Array, v: Array) -> Array:
        where = coordinate(model, name, "q v")
        if where is not None:
            return (q if where[0] == "q" else v)[:, where[1]]
        from jaxmbs.study.outputs.folding import measured

        assert self.study is not None
        output = {name: self.study.outputs[name]}
        value, defined = jax.vmap(lambda *at: measured(output, model, *at)[name])(t, q, v)
        return jnp.where(defined, value, jnp.nan)

    def residuals(self, measured: Array, constants: Any) -> Array:
        return measured.reshape(-1)

    def describe(self, model: Model) -> str:
        return f"a simulated motion explains {', '.join(self.explained)}"
