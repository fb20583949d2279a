"""Objectives on the mass matrix A(q): that it is constant, that it is diagonal, or that a base feels no reaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@element
class _OfMassMatrix(Objective):
    """Base: the upper triangle of A at random configurations, divided by the sizes from `_scales`."""

    configurations: int = field(
        Kind.COUNT, "", "number of random configurations at which it must hold", default=24, kw_only=True
    )

    def check(self, setting: Setting) -> None:
        if self.configurations < 2:
            raise ModelError(f"{type(self).__name__}: {self.configurations} configurations; take 2 or more")
        if setting.model.structure.loops or setting.model.structure.constraints:
            raise ModelError(
                f"{type(self).__name__}: A(q) is the mass matrix of a tree, but the model has loops or constraints"
            )

    def data(self, setting: Setting) -> Any:
        return setting.configurations(self.configurations)

    def constants(self, setting: Setting) -> Any:
        """Mean diagonal of the nominal A, (nv,)."""
        points = np.asarray(setting.configurations(self.configurations))[:8]
        found = [np.diagonal(np.array(scalar.mass_matrix(setting.model, list(map(float, q))), float)) for q in points]
        return np.mean(found, axis=0)

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        return mbs.mass_matrix(model, instance)[np.triu_indices(model.nv)]


def _scales(measured: Array, nominal: np.ndarray) -> Array:
    """Sizes (entries,) by which the entries of A are divided, so that neither large nor small inertias hide a
    departure.

    size² is a smooth minimum of A_ii A_jj and its nominal value: the present value matters for small inertias, the
    nominal value for large ones. If an entry were scaled by the present size alone, or by the trace, its variation
    would vanish as an inertia goes to infinity, although the true condition is violated.
    """
    rows, columns = np.triu_indices(len(nominal))
    mean = measured.mean(axis=0)
    diagonal = mean[np.flatnonzero(rows == columns)]
    now = diagonal[rows] * diagonal[columns]
    then = nominal[rows] * nominal[columns]
    return jnp.sqrt(then * (1 + (then / now) ** 4) ** -0.25)


@element
class ConfigurationIndependence(_OfMassMatrix):
    """The mass matrix does not depend on the configuration.

    The residuals are the departures of all entries from their means over the configurations, divided by sqrt(A_ii A_jj)
    of the present or of the nominal A, roughly whichever is smaller, so that neither very large nor very small inertias
    reduce them. If A is constant, the equations of motion have constant coefficients [T 5].

    >>> mbs.design.ConfigurationIndependence(configurations=32).goal
    'zero'
    """

    rows: str = field(Kind.TEXT, "", "joints whose rows of A are used, separated by spaces; all if empty", default="")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        self._entries(setting.model)

    def _entries(self, model: Model) -> np.ndarray:
        """(entries,) 1 for the entries in the rows or columns of the chosen joints, else 0."""
        i, j = np.triu_indices(model.nv)
        wanted = np.ones(model.nv, bool)
        if self.rows.split():
            wanted[:] = False
            for joint in self.rows.split():
                if joint not in model.joint_names:
                    raise unknown("joint", joint, model.joint_names, type(self).__name__)
                wanted[model.v_slice(joint)] = True
        return (wanted[i] | wanted[j]).astype(float)

    def constants(self, setting: Setting) -> Any:
        return super().constants(setting), self._entries(setting.model)

    def residuals(self, measured: Array, constants: Any) -> Array:
        nominal, meant = constants
        return ((measured - measured.mean(axis=0)[None]) * (meant / _scales(measured, nominal))[None]).reshape(-1)

    def conditions(self, measured: Array, constants: Any) -> Array:
        nominal, meant = constants
        rows, columns = np.triu_indices(len(nominal))
        size = np.sqrt(nominal[rows] * nominal[columns])
        return ((measured - measured.mean(axis=0)[None]) * (meant / size)[None]).reshape(-1)


@element
class Decoupling(_OfMassMatrix):
    """The mass matrix is diagonal: no joint's acceleration needs another's torque.

    >>> mbs.design.Decoupling().configurations
    24
    """

    def constants(self, setting: Setting) -> Any:
        return super().constants(setting)

    def residuals(self, measured: Array, constants: Any) -> Array:
        rows, columns = np.triu_indices(len(constants))
        return (measured / _scales(measured, constants)[None])[:, rows != columns].reshape(-1)

    def conditions(self, measured: Array, constants: Any) -> Array:
        rows, columns = np.triu_indices(len(constants))
        return (measured / np.sqrt(constants[rows] * constants[columns])[None])[:, rows != columns].reshape(-1)


@element
class NoBaseReaction(_OfMassMatrix):
    """The joints move without reaction on a moving base: the base's rows of A are zero in the columns of the joints.

    >>> mbs.design.NoBaseReaction("flight").base
    'flight'
    """

    base: str = field(Kind.JOINT, "", "joint that carries the base", default="")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if self.base not in setting.model.joint_names:
            raise unknown("joint", self.base, setting.model.joint_names, "NoBaseReaction")

    def constants(self, setting: Setting) -> Any:
        own = np.zeros(setting.model.nv, bool)
        own[setting.model.v_slice(self.base)] = True
        rows, columns = np.triu_indices(setting.model.nv)
        return super().constants(setting), (own[rows] != own[columns]).astype(float)

    def residuals(self, measured: Array, constants: Any) -> Array:
        nominal, meant = constants
        return (measured * (meant / _scales(measured, nominal))[None]).reshape(-1)

    def conditions(self, measured: Array, constants: Any) -> Array:
        nominal, meant = constants
        rows, columns = np.triu_indices(len(nominal))
        return (measured * (meant / np.sqrt(nominal[rows] * nominal[columns]))[None]).reshape(-1)
