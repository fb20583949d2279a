"""Consistent initial values for absolute coordinates [Y 2.36]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.absolute.assembly import unloaded
from jaxmbs.absolute.bodies import inertias
from jaxmbs.absolute.equations import Body
from jaxmbs.absolute.joints import arcs
from jaxmbs.absolute.solvers import SOLVERS
from jaxmbs.absolute.system import System
from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.dynamics.state.calling import compiles_itself, state_dtype
from jaxmbs.model import Model, ModelError, Pose
from jaxmbs.model.errors import unknown
from jaxmbs.model.given import AnyShape, shape_of
from jaxmbs.model.shapes import Float
from jaxmbs.spatial import from_quaternion

STEPS = 12


def consistent(
    model: Model, poses: Pose, velocities: Float[jax.Array, "n 6"] | AnyShape | None = None, *, solver: str = "dense"
) -> tuple[Pose, Float[jax.Array, "n 6"], Float[jax.Array, " equations"]]:
    """The poses and velocities nearest to the given ones that satisfy the equations of all joints [Y 2.36].

    The equations of index 1 constrain accelerations only, so that residual = 0 and Q X' = 0 must hold at the start.
    poses: those of the body frames, positions (n, 3) and rotations (n, 3, 3) or quaternions (n, 4), in the order of
    model.body_names; velocities X' (n, 6) as from `coordinates`, None for zero. "Nearest" is in the metric of M, by
    Newton steps M d = Q' mu, Q d = -residual; solver: as in `accelerations`. Returns (poses, X', residual (equations,)
    [m, rad]); the residual is large if the steps do not converge. Raises ModelError for joints and constraints that `system`
    does not support, an unknown solver, and wrong shapes.

    >>> model = mbs.library.crank_slider().build()
    >>> poses, _ = mbs.absolute.coordinates(model, [0.1, -0.1, 0.0])
    >>> poses, velocities, residual = mbs.absolute.consistent(model, poses)
    >>> bool(abs(residual).max() < 1e-5)
    True
    """
    if solver not in SOLVERS:
        raise unknown("solver", solver, SOLVERS)
    arcs(model.structure)
    n = len(model.body_names)
    given = jnp.zeros((n, 6)) if velocities is None else velocities
    shapes = {"positions": (poses.position, ((n, 3),)), "rotations": (poses.rotation, ((n, 3, 3), (n, 4)))}
    for name, (x, known) in (shapes | {"velocities": (given, ((n, 6),))}).items():
        if shape_of(x) not in known:
            raise ModelError(
                f"consistent: {name} have shape {shape_of(x)}; model {model.name!r} needs {' or '.join(map(str, known))}"
            )
    return _consistent(model, poses.position, poses.rotation, given, solver=solver)


@compiles_itself("solver")
def _consistent(model: Model, position: Any, rotation: Any, velocities: Any, *, solver: str) -> Any:
    dtype = state_dtype(position, rotation, velocities)
    s, values = model.structure, model.values(dtype)
    position, A, V = (jnp.asarray(x, dtype) for x in (position, rotation, velocities))
    if A.ndim == 2:
        A = jax.vmap(lambda q: jnp.stack([jnp.asarray(x, dtype) for x in from_quaternion(list(q))]).reshape(3, 3))(A)
    _, com, _ = inertias(s, values, dtype)

    def at(r: jax.Array, A: jax.Array, V: jax.Array) -> System:
        """The equations, with the world as last row."""
        rows = ((r, jnp.zeros(3, dtype)), (A, jnp.eye(3, dtype=dtype)), (V[:, :3], jnp.zeros(3, dtype)))
        rows = (*rows, (V[:, 3:], jnp.zeros(3, dtype)))
        return unloaded(s, values, Body(*(jnp.concatenate([x, world[None]]) for x, world in rows)))

    def step(pose: tuple[jax.Array, jax.Array], _: Any) -> tuple[tuple[jax.Array, jax.Array], None]:
        r, A = pose
        found = at(r, A, jnp.zeros_like(V))
        change, _ = SOLVERS[solver](replace(found, target=-found.residual))
        return (r + change[:, 3:], A @ _rotation(change[:, :3])), None

    (r, A), _ = jax.lax.scan(step, (position + apply(A, com), A), None, length=STEPS)
    found = at(r, A, V)
    # M (X'+ - X'-) = Q' mu, Q X'+ = 0
    momentum = jnp.einsum("ikl,il->ik", found.inertia, V)
    zero = jnp.zeros_like(found.target)
    V, _ = SOLVERS[solver](replace(found, force=momentum, target=zero))
    return Pose(r - apply(A, com), A), V, found.residual[found.rows]


def _rotation(d: jax.Array) -> jax.Array:
    """Rotations (n, 3, 3) by small vectors d (n, 3), with an error of third order; orthogonal for every d (Cayley)."""
    c = d / 2
    zero = jnp.zeros_like(c[:, 0])
    x, y, z = c.T
    K = jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    scale = 2 / (1 + (c * c).sum(axis=1))
    return jnp.eye(3, dtype=d.dtype)[None] + scale[:, None, None] * (K + K @ K)
