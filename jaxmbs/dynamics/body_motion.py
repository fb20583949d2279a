"""Velocities and accelerations of all bodies in the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.dynamics.trees import rates
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.given import Accelerations, Coordinates, Number, Rates
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.shapes import Float
from jaxmbs.spatial import ZERO3


@compiles_itself()
def body_velocities(
    model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None
) -> Float[jax.Array, "bodies 6"]:
    """Velocities (n, 6) of all bodies in world axes: angular velocity [rad/s], then the velocity [m/s] of the origin of the
    body's frame, in the order of model.body_names.

    q (nq,), v (nv,). Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.body_velocities(model, [0.5, 0.3], [1.0, 0.0])[1, 3:].round(3))
    [0.878 0.    0.479]
    """
    q, v = vectors(model, q=q, v=v)
    return _velocities(model, q, v, t)


def _velocities(model: Model, q: jax.Array, v: jax.Array, t: Any) -> jax.Array:
    scene = State(Tree(model, q.dtype), q, v, t, None).scene.around(*model.body_names)
    rows = [[*scene.angular(b), *scene.velocity(b, ZERO3)] for b in model.body_names]
    return jnp.stack([jnp.stack([jnp.asarray(x, q.dtype) for x in row]) for row in rows])


@compiles_itself()
def body_accelerations(
    model: Model, q: Coordinates, v: Rates, a: Accelerations, *, t: Number = 0.0, mode: Mode | None = None
) -> Float[jax.Array, "bodies 6"]:
    """Accelerations (n, 6) of all bodies in world axes: angular acceleration [rad/s²], then the acceleration [m/s²] of the
    origin of the body's frame, in the order of model.body_names. They are the time derivatives of `body_velocities`.

    q (nq,), v (nv,), a (nv,): accelerations, such as those of `forward_dynamics`. Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.body_accelerations(model, [0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[1, 3:].tolist()  # centripetal
    [0.0, 0.0, 1.0]
    """
    q, v, a = vectors(model, q=q, v=v, a=a)
    t = jnp.asarray(t, q.dtype)
    now, along = (q, v, t), (rates(model, q, v, t=t), a, jnp.ones((), q.dtype))
    return jax.jvp(lambda q, v, t: _velocities(model, q, v, t), now, along)[1]


def velocities(
    model: Model, q: Coordinates, bodies: Mapping[str, Sequence[float] | jax.Array], *, t: Number = 0.0
) -> Float[jax.Array, " nv"]:
    """Velocities (nv,) with which bodies move as given in world axes, for the start of a run.

    q (nq,); bodies: {name: (6,)}, angular velocity [rad/s], then the velocity [m/s] of the origin of the body's frame. Where
    this leaves v undetermined, it has the least norm. Raises ModelError for unknown names, for wrong shapes, and, unless
    the numbers are traced, if the joints do not allow this motion.

    >>> mech = mbs.Mechanism("satellite")
    >>> mech.add_body("bus", mass=1.0, inertia=(1.0, 1.0, 1.0))
    >>> mech.add_joint("flight", mbs.Free(), "world", "bus")
    >>> upside_down = [0, 0, 0, 0.0, 1.0, 0, 0]
    >>> print(mbs.velocities(mech.build(), upside_down, {"bus": [0, 0, 0.1, 0, 0, 2.0]}).round(6))
    [ 0.   0.  -0.1  0.   0.  -2. ]
    """
    names, rows, wanted = list(model.body_names), [], []
    for name, given in bodies.items():
        if name not in names:
            raise unknown("body", name, names, "velocities")
        twist = jnp.asarray(given, float)
        if twist.shape != (6,):
            raise ModelError(f"velocities: {name!r} has shape {twist.shape}; pass 6 numbers, angular velocity first")
        rows.append(names.index(name))
        wanted.append(twist)
    if not rows:
        raise ModelError("velocities: name at least one body, {name: (6,)}")
    still = jnp.zeros(model.nv)
    picked = jnp.asarray(rows)

    def twists(v: jax.Array) -> jax.Array:
        return body_velocities(model, q, v, t=t)[picked].reshape(-1)

    moving, target = twists(still), jnp.concatenate(wanted)
    J = jax.jacfwd(twists)(still)
    v = jnp.linalg.lstsq(J, target - moving)[0]
    missed = jnp.abs(twists(v) - target).max()
    if not is_traced(missed) and missed > jnp.finfo(v.dtype).eps ** 0.5 * (1 + jnp.abs(target).max()):
        raise ModelError(
            f"velocities: the joints do not allow the motion of {', '.join(bodies)}; the nearest differs by {missed:.3g}"
        )
    return v
