"""User-defined constraint functions, differentiated by JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.functions import WithParameters, check_arguments


@element
class FunctionConstraint(WithParameters):
    """Base of the constraints fn(model, t, q, v) = 0, or fn(model, t, q, v, parameters) = 0, with a result (rows,); fn is
    written with jax.numpy.

    The first evaluation raises ModelError if the result has another shape, or depends on v although the constraint is
    `Holonomic`, or is not affine in v although it is `Nonholonomic`.
    """

    fn: Callable[..., Any] = field(Kind.FUNCTION, "", "fn(model, t, q, v) -> (rows,), written with jax.numpy")

    def __post_init__(self) -> None:
        check_arguments(self.fn, f"{type(self).__name__}: fn")
        self.check_functions(f"{type(self).__name__}: fn", self.fn)


@element
class Holonomic(FunctionConstraint):
    """Constraint on the configuration: fn depends on q and t only; rheonomic if it uses t.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_constraint("ratio", mbs.Holonomic(lambda model, t, q, v: q[1] - 2 * q[0]))
    >>> mech.build().constraint_names
    ('ratio',)
    """


@element
class Nonholonomic(FunctionConstraint):
    """Constraint fn = 0 that is affine in the velocities, a0(q, t) + sum a_k(q, t) v_k = 0 [Y 3.6.1].

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_constraint("drive", mbs.Nonholonomic(lambda model, t, q, v: v[0] - jnp.sin(t)))
    >>> mech.build().constraint_names
    ('drive',)
    """
