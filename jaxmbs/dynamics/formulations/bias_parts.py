"""The bias forces by origin: centrifugal, Coriolis, gyroscopic; gravity; force elements [T Introduction]."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.recursive.rnea import inverse_dynamics
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.loads import LinkLoads
from jaxmbs.dynamics.state.state import Inertial
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model
from jaxmbs.model.given import Coordinates, Number, Rates
from jaxmbs.model.shapes import Float


class BiasSplit(NamedTuple):
    """The parts of the bias, each (nv,), on the left-hand side of A a + bias = tau.

    bias = centrifugal + coriolis + rheonomic + gravity + elements. centrifugal: the terms with the square of one rate;
    coriolis: those with the product of two; rheonomic: the terms due to the prescribed motion of rheonomic joints
    (linear in v and independent of v). gyroscopic: the part of centrifugal + coriolis that does no work for any v,
    which is everything except A' v/2 with A' = dA/dt along the motion; only A' v/2 changes the kinetic energy.

    >>> model = mbs.library.double_pendulum().build()
    >>> parts = mbs.textbook.bias_split(model, [0.5, 0.3], [1.0, 2.0])
    >>> bool(abs(parts.gyroscopic @ jnp.array([1.0, 2.0])) < 1e-5)  # does no work
    True
    """

    centrifugal: Float[jax.Array, " nv"]
    coriolis: Float[jax.Array, " nv"]
    rheonomic: Float[jax.Array, " nv"]
    gravity: Float[jax.Array, " nv"]
    elements: Float[jax.Array, " nv"]
    gyroscopic: Float[jax.Array, " nv"]


class _Unloaded(State):
    """A state without force elements."""

    @functools.cached_property
    def loads(self) -> LinkLoads:
        return LinkLoads()


@compiles_itself()
def bias_split(model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None) -> BiasSplit:
    """The bias forces at q (nq,), v (nv,) by origin [N, N m].

    For Spherical and Free joints v is not the derivative of q; "centrifugal" then means the terms with the square of
    one component of v. Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> parts = mbs.textbook.bias_split(model, [0.5, 0.3], [1.0, 2.0])
    >>> print(parts.centrifugal.round(3), parts.gravity.round(3))
    [-1.182  0.296] [16.444  7.037]
    """
    q, v = vectors(model, q=q, v=v)
    tree = Tree(model, q.dtype)
    zero = jnp.zeros_like(v)

    def inertial(v: jax.Array, a: Any = None, q: jax.Array = q) -> jax.Array:
        return tree.vector(inverse_dynamics(Inertial(tree, q, v, t), a))

    drift = inertial(zero) if tree.structure.rheonomic else zero

    def quadratic(v: jax.Array) -> jax.Array:
        """The part of second degree in v."""
        return (inertial(v) + inertial(-v)) / 2 - drift if tree.structure.rheonomic else inertial(v)

    both = quadratic(v)
    centrifugal = jax.vmap(quadratic)(jnp.diag(v)).sum(axis=0) if v.size else zero
    rheonomic = inertial(v) - both if tree.structure.rheonomic else zero
    gravity = tree.vector(inverse_dynamics(_Unloaded(tree, q, zero, t), None)) - drift
    elements = zero
    if tree.structure.forces:
        loaded = tree.vector(inverse_dynamics(State(tree, q, v, t, mode), None))
        elements = loaded - tree.vector(inverse_dynamics(_Unloaded(tree, q, v, t), None))
    gyroscopic = both - _half_rate(tree, q, v, t, inertial)
    return BiasSplit(centrifugal, both - centrifugal, rheonomic, gravity, elements, gyroscopic)


def _half_rate(tree: Tree, q: jax.Array, v: jax.Array, t: Any, inertial: Any) -> jax.Array:
    """A' v/2, the derivative of A(q) u along dq/dt at u = v."""
    rates = tree.vector(tree.flat([m.rates for m in State(tree, q, v, t).motions]))
    zero = jnp.zeros_like(v)

    def momentum(q: jax.Array) -> jax.Array:
        return inertial(zero, v, q) - (inertial(zero, None, q) if tree.structure.rheonomic else 0)

    return jax.jvp(momentum, (q,), (rates,))[1] / 2
