"""Controlled variables: coordinates that are given functions of time, and the forces that drive them [Y 3.3.1].

Correction to the printed source: M_k^m of (3.91) is minus the torque along phi_k; `drive` is the torque itself,
A_k q" + bias_k - tau_k.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.formulations import methods
from jaxmbs.dynamics.formulations.system import refuse_constraints
from jaxmbs.dynamics.recursive import aba, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, require_model, state_dtype, vectors
from jaxmbs.dynamics.state.programs import Opaque, Program, program
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model, ModelError
from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.given import Coordinates, GeneralizedForces, Number, Rates
from jaxmbs.model.shapes import Float
from jaxmbs.model.structure import Structure

Motions = tuple[tuple[str, int | None, Program | Opaque], ...]


class Controlled(NamedTuple):
    """The motion of a tree whose controlled coordinates are given.

    q (nq,), v (nv,): with the given values of the controlled coordinates; a (nv,): accelerations; drive (nv,) [N, N m]: zero
    along coordinates that are not controlled.

    >>> model = mbs.library.double_pendulum().build()
    >>> found = mbs.textbook.controlled_dynamics(model, [0.0, 0.3], [0.0, 0.0], motions={"elbow": jnp.sin})
    >>> print(found.q, found.v)  # the elbow as the sine at t = 0
    [0. 0.] [0. 1.]
    """

    q: Float[jax.Array, " nq"]
    v: Float[jax.Array, " nv"]
    a: Float[jax.Array, " nv"]
    drive: Float[jax.Array, " nv"]


def controlled_dynamics(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    motions: Mapping[str | tuple[str, int], Callable[[jax.Array], Number]],
    t: Number = 0.0,
    method: str = "aba",
) -> Controlled:
    """Accelerations when some coordinates are given functions of time, and the forces that drive them.

    q (nq,), v (nv,), tau (nv,) or None. motions: {joint: function t -> (nv,) or a number} or {(joint, index): function t
    -> number}, written with jax.numpy; their values and rates replace those in q and v. method: "aba" (the degrees of
    freedom are locked and accelerate as given) or one of `mass_matrix` (their rows and columns are deleted [Y 3.92]).
    Drives are in N m or N, along the coordinates, in addition to tau [Y 3.91]. Raises ModelError for joints whose rates
    are not derivatives of their coordinates (Spherical, Free), and for models with constraints.

    >>> model = mbs.library.double_pendulum().build()
    >>> motions = {"shoulder": lambda t: 0.5 * t**2}
    >>> found = mbs.textbook.controlled_dynamics(model, [0.0, 0.3], [0.0, 0.0], motions=motions, t=1.0)
    >>> print(found.a.round(3), found.drive.round(3))
    [ 1.    -9.288] [3.193 0.   ]
    """
    require_model(model, "controlled_dynamics")
    refuse_constraints(
        model,
        "controlled_dynamics",
        "lock the joints: mbs.constrained_dynamics(mode=model.mode(lock=[...]), prescribed=...)",
    )
    s, dtype, listed, numbers = model.structure, state_dtype(q, v, tau), [], []
    for key, function in motions.items():
        name, index = key if isinstance(key, tuple) else (key, None)
        joint = s.links[s.find_joint(name, "controlled_dynamics")].joint
        if joint.nq != joint.nv:
            raise ModelError(
                f"controlled_dynamics: joint {name!r} is {joint.type_name}, whose velocities are not time derivatives "
                "of its coordinates; lock it and give its acceleration: forward_dynamics(mode=..., prescribed=...)"
            )
        if index is not None and not 0 <= index < joint.nv:
            raise ModelError(
                f"controlled_dynamics: joint {name!r} has no coordinate {index}; it has {joint.nv}, numbered from 0"
            )
        where = f"controlled_dynamics: motion of {key!r}"
        check_arguments(function, where, ("t",))
        call = functools.partial(evaluated, function, where, (joint.nv if index is None else 1,), dtype)
        found, data = program(function, where, (jax.ShapeDtypeStruct((), dtype),), call, (model, q, v, tau, t))
        listed.append((name, index, found))
        numbers.append(data)
    return _controlled(model, q, v, tau, t, numbers, motions=tuple(listed), method=method)


def _slots(s: Structure, motions: Motions) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the controlled coordinates in q and in v."""
    in_q: list[int] = []
    in_v: list[int] = []
    for name, index, _ in motions:
        i = s.find_joint(name)
        for out, part in ((in_q, s.q_slices[i]), (in_v, s.v_slices[i])):
            out += range(part.start, part.stop) if index is None else [part.start + index]
    return np.asarray(in_q, int), np.asarray(in_v, int)


@compiles_itself("motions", "method")
def _controlled(
    model: Model, q: Any, v: Any, tau: Any, t: Any, numbers: list[Any], *, motions: Motions, method: str
) -> Controlled:
    q, v, tau = vectors(model, q=q, v=v, tau=tau)
    tau, dtype = jnp.zeros_like(v) if tau is None else tau, q.dtype
    in_q, in_v = _slots(model.structure, motions)

    def given(t: jax.Array) -> jax.Array:
        return jnp.concatenate([f(data, t) for (*_, f), data in zip(motions, numbers, strict=True)])

    time = jnp.asarray(t, dtype)
    one = jnp.ones_like(time)
    (phi, rate), (_, rate_of_rate) = jax.jvp(lambda t: jax.jvp(given, (t,), (one,)), (time,), (one,))
    q, v = q.at[in_q].set(phi), v.at[in_v].set(rate)

    if method == "aba":
        lock = np.isin(np.arange(model.nv), in_v)
        mode = replace(model.mode(), lock=jnp.asarray(lock))
        state = State(Tree(model, dtype), q, v, time, mode)
        wanted = jnp.zeros(model.nv, dtype).at[in_v].set(rate_of_rate)
        a = state.tree.vector(aba.forward_dynamics(state, tau, wanted))
        needed = state.tree.vector(rnea.inverse_dynamics(state, a)) - tau
        return Controlled(q, v, a, jnp.where(jnp.asarray(lock), needed, 0.0))
    found = methods.find(method, model, also=("aba",))
    state = State(Tree(model, dtype), q, v, time)
    return Controlled(q, v, *_deleted(found.mass_matrix(state), tau - found.bias(state), in_v, rate_of_rate))


def _deleted(A: jax.Array, B: jax.Array, given: np.ndarray, rate_of_rate: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A' phi'" = B' - eta phi_k" [Y 3.92], and the drives [Y 3.91]."""
    rest = np.setdiff1d(np.arange(len(B)), given)
    a = jnp.zeros_like(B).at[given].set(rate_of_rate)
    if rest.size:
        eta = A[np.ix_(rest, given)]
        a = a.at[rest].set(jnp.linalg.solve(A[np.ix_(rest, rest)], B[rest] - eta @ rate_of_rate))
    return a, jnp.zeros_like(B).at[given].set(A[given] @ a - B[given])
