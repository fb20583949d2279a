"""Integration methods, which `simulate(method=...)` takes by name or as an object."""

from __future__ import annotations

from typing import Any

from jaxmbs.model import Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.simulate.steppers.base import Flow as Flow
from jaxmbs.simulate.steppers.base import Stepper as Stepper
from jaxmbs.simulate.steppers.base import Trial as Trial
from jaxmbs.simulate.steppers.rosenbrock import Rosenbrock as Rosenbrock
from jaxmbs.simulate.steppers.runge_kutta import TABLEAUS
from jaxmbs.simulate.steppers.runge_kutta import MuntheKaas as MuntheKaas
from jaxmbs.simulate.steppers.runge_kutta import RungeKutta as RungeKutta
from jaxmbs.simulate.steppers.variational import Variational as Variational

METHODS: dict[str, Stepper] = {
    **{name: RungeKutta(name) for name in TABLEAUS},
    "implicit": Rosenbrock(),
    "symplectic": Variational(),
}


def stepper(method: Any) -> Stepper:
    """The stepper with this name, or the given stepper itself."""
    if isinstance(method, Stepper):
        return method
    if not isinstance(method, str):
        raise ModelError(f"simulate: method is {method!r}; pass a name ({', '.join(METHODS)}) or one of mbs.steppers")
    if method not in METHODS:
        raise unknown("method", method, METHODS, "simulate")
    return METHODS[method]


def stepper_for(method: Any, model: Model, tolerance: Any) -> Stepper:
    """The stepper of a method. Raises ModelError if it does not support the model or the tolerance."""
    by = stepper(method)
    if reason := by.obstacle(model.structure):
        raise ModelError(f"simulate: method {method!r} does not support model {model.name!r}: {reason}")
    if tolerance is not None and by.error_order is None:
        able = [name for name, other in METHODS.items() if other.error_order is not None]
        raise ModelError(
            f"simulate: method {method!r} does not estimate its error and takes no tolerance; use {' or '.join(able)}"
        )
    return by
