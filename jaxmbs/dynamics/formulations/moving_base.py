"""Body 0 with a given motion r0(t), omega0(t) [Y 1.1, 3.4]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.shapes import Float


@dataclass(frozen=True)
class MovingBase:
    """A motion of the world of a model (body 0) as a function of time.

    position: function t -> (3,) [m], origin of body 0 in inertial axes; rotation: function t -> (3, 3), from body 0 to
    inertial axes. Both must be smooth and written with jax.numpy. Gravity keeps its inertial direction; force elements
    on "world" are attached to the moving body 0. A base is a static argument: create it once, because new function
    objects, even if they compute the same, are compiled again.

    >>> lift = mbs.textbook.MovingBase(position=lambda t: jnp.stack([0 * t, 0 * t, t**2]))
    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.textbook.moving_base_dynamics(model, [0.5, 0.0], [0.0, 0.0], base=lift).round(3))
    [-5.662  5.662]
    """

    position: Callable[[Float[jax.Array, ""]], Float[jax.Array, " 3"]] = lambda t: jnp.zeros(3, jnp.result_type(t))
    rotation: Callable[[Float[jax.Array, ""]], Float[jax.Array, "3 3"]] = lambda t: jnp.eye(3, dtype=jnp.result_type(t))

    def __post_init__(self) -> None:
        check_arguments(self.position, "MovingBase: position", ("t",))
        check_arguments(self.rotation, "MovingBase: rotation", ("t",))

    def at(self, t: Any, dtype: Any) -> BaseMotion:
        """Placement, velocity and acceleration at time t [s], as arrays of dtype; derivatives by JAX.

        Raises ModelError for functions whose results have other shapes.
        """
        t = jnp.asarray(t, dtype)
        one = jnp.ones_like(t)

        def placement(t: jax.Array) -> tuple[jax.Array, jax.Array]:
            position = evaluated(self.position, "MovingBase: position", (3,), dtype, t)
            return position, evaluated(self.rotation, "MovingBase: rotation", (3, 3), dtype, t)

        def velocity(t: jax.Array) -> tuple[jax.Array, jax.Array]:
            (_, A), (v, dA) = jax.jvp(placement, (t,), (one,))
            W = dA @ A.T
            return v, jnp.stack([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]) / 2

        r, A = placement(t)
        (v, omega), (a, alpha) = jax.jvp(velocity, (t,), (one,))
        return BaseMotion(r, A, v, omega, a, alpha)


@dataclass(frozen=True)
class BaseMotion:
    """Motion of body 0 at one time, in inertial axes [Y 1.1].

    r (3,) [m], A (3, 3), v (3,) [m/s], omega (3,) [rad/s], a (3,) [m/s²], alpha (3,) [rad/s²]: r0, A0 and their rates.

    >>> lift = mbs.textbook.MovingBase(position=lambda t: jnp.stack([0 * t, 0 * t, t**2]))
    >>> print(lift.at(3.0, float).v)
    [0. 0. 6.]
    """

    r: Float[jax.Array, " 3"]
    A: Float[jax.Array, "3 3"]
    v: Float[jax.Array, " 3"]
    omega: Float[jax.Array, " 3"]
    a: Float[jax.Array, " 3"]
    alpha: Float[jax.Array, " 3"]


def at_rest(dtype: Any) -> BaseMotion:
    """The motion of a body 0 that is at rest."""
    zero = jnp.zeros(3, dtype)
    return BaseMotion(zero, jnp.eye(3, dtype=dtype), zero, zero, zero, zero)
