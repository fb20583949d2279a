"""The public functions of absolute coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.absolute.assembly import Assembled, assembled
from jaxmbs.absolute.bodies import inertias, state_of
from jaxmbs.absolute.joints import arcs
from jaxmbs.absolute.plane import plane_of
from jaxmbs.absolute.solvers import SOLVERS, Solution, with_known
from jaxmbs.absolute.system import System
from jaxmbs.dynamics.formulations.moving_base import MovingBase
from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.dynamics.formulations.system import system as tree_system
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode, Model, ModelError, Pose
from jaxmbs.model.errors import unknown
from jaxmbs.model.given import Coordinates, GeneralizedForces, Number, Rates, Vector, shape_of
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.refusals import refuse_armature, refuse_flexible
from jaxmbs.model.shapes import Float


def coordinates(
    model: Model, q: Coordinates, v: Rates | None = None, *, t: Number = 0.0
) -> tuple[Pose, Float[jax.Array, "n 6"]]:
    """The absolute coordinates at q (nq,), v (nv,), None for zero: (poses of the bodies, their velocities X').

    Poses as from `mbs.body_poses`; X' (n, 6) = (angular velocity in body axes [rad/s], velocity of the centre of mass in
    world axes [m/s]). Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> poses, velocities = mbs.absolute.coordinates(model, [0.5, 0.3], [1.0, 2.0])
    >>> print(velocities[1, 3:].round(3))  # of the lower mass
    [2.968 0.    2.631]
    """
    v = jnp.zeros(model.nv) if v is None else v
    return _coordinates(model, q, v, t)


@compiles_itself()
def _coordinates(model: Model, q: Any, v: Any, t: Any) -> tuple[Pose, jax.Array]:
    state = _state(model, q, v, None, t, None)[0]
    bodies = state_of(state, tree_system(state)).at(slice(0, len(model.body_names)))
    _, com, _ = inertias(model.structure, state.tree.values, state.tree.dtype)
    return Pose(bodies.r - apply(bodies.A, com), bodies.A), jnp.concatenate([bodies.omega, bodies.v], axis=1)


def system(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    base: MovingBase | None = None,
    planar: bool = False,
) -> System:
    """M, Q, F, b of M X" = F + Q' lambda, Q X" = b at the state (q, v, t) of the model [Y 2.9, 2.22, 2.28, 2.43].

    X" of each body is (angular acceleration in body axes, acceleration of the centre of mass in world axes); planar:
    three coordinates (x, y, phi) per body instead, along the world axes of the plane in cyclic order and about its
    normal. Both tree joints and loops give equations. tau (nv,): generalized forces, applied as wrenches in the joints;
    mode: switches of force elements and loops; base: motion of the world [Y 2.3]. Raises ModelError for unsupported
    joints (General, Carried), constraint elements, flexible bodies, armature, wrong shapes, a lock, and (if planar) a base
    or a mechanism that does not move in a plane; a traced lock gives NaN.

    >>> model = mbs.library.crank_slider().build()
    >>> s = mbs.absolute.system(model, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    >>> s.M.shape, s.Q.shape
    ((18, 18), (17, 18))
    """
    _check(model, mode, base, planar)
    return _system(model, q, v, tau, t, mode, base=base, planar=planar)


@compiles_itself("base", "planar")
def _system(
    model: Model, q: Any, v: Any, tau: Any, t: Any, mode: Any, *, base: MovingBase | None, planar: bool
) -> System:
    return _unless_locked(mode, _assembled(model, q, v, tau, t, mode, base, planar).system)


def accelerations(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    base: MovingBase | None = None,
    prescribed: Mapping[str, Number | Vector] | None = None,
    planar: bool = False,
    solver: str = "dense",
) -> tuple[Float[jax.Array, "n k"], Float[jax.Array, " equations"]]:
    """Accelerations of the bodies X" (n, 6), or (n, 3) if planar, and multipliers (equations,) [Y 2.49].

    solver: "dense", "schur" [Y 2.54] or "ldl" [Y 2.60, 2.61], which is linear in the number of bodies. prescribed: given
    accelerations (6,) or (3,) of bodies, by name [Y 2.3]; the wrench that this requires is M X" - F - Q' lambda in the
    rows of these bodies. Multipliers are in the order of `rows`: components of the joint's wrench on its second body (a
    tree joint's child, a loop's body b), in the axes of the joint frame on it, [N] and [N m]; the forces act at the
    origin of the joint frame on the first body. If equations depend on one another, the multipliers have least norm
    (with "ldl", only those of the loops). q (nq,), v (nv,), tau (nv,), base and errors as in `system`.

    >>> model = mbs.library.crank_slider().build()
    >>> X, multipliers = mbs.absolute.accelerations(model, [0.0, 0.0, 0.0], [1.0, -4 / 3, 0.0])
    >>> print(X[2, 3:].round(3))  # of the slider [m/s²]
    [-0.133  0.     0.   ]
    """
    if solver not in SOLVERS:
        raise unknown("solver", solver, SOLVERS)
    _check(model, mode, base, planar)
    known = {name: x for name, x in (prescribed or {}).items() if model.structure.find_body(name, "prescribed") >= 0}
    k = 3 if planar else 6
    for name, x in known.items():
        if shape_of(x) != (k,):
            raise ModelError(f"prescribed: the acceleration of body {name!r} has shape {shape_of(x)}; it needs ({k},)")
    return _accelerations(model, q, v, tau, t, mode, known, base=base, planar=planar, solver=solver)


@compiles_itself("base", "planar", "solver")
def _accelerations(
    model: Model, q: Any, v: Any, tau: Any, t: Any, mode: Any, known: Any, *, base: Any, planar: bool, solver: str
) -> tuple[jax.Array, jax.Array]:
    s = _assembled(model, q, v, tau, t, mode, base, planar).system
    X, multipliers = _solved(model, s, known, solver)
    return _unless_locked(mode, (X, multipliers[s.rows]))


def _solved(model: Model, s: System, known: Any, solver: str) -> Solution:
    given = {model.structure.find_body(name): jnp.asarray(x, s.force.dtype) for name, x in known.items()}
    return SOLVERS[solver](with_known(s, given))


def reactions(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    base: MovingBase | None = None,
    solver: str = "dense",
) -> Float[jax.Array, "joints 6"]:
    """Wrench in every joint (joints + loops, 6), tree joints first: R = Q' lambda [Y 2.26] plus the joint's drive.

    A row is (torque [N m], force [N]) on the second body (the child), about the origin and in the axes of the joint
    frame on it, as from `mbs.joint_reactions`. q (nq,), v (nv,), tau (nv,), base, solver and errors as in
    `accelerations`.

    >>> model = mbs.library.crank_slider().build()
    >>> mbs.absolute.reactions(model, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).shape  # three joints and the loop
    (4, 6)
    """
    if solver not in SOLVERS:
        raise unknown("solver", solver, SOLVERS)
    _check(model, mode, base, False)
    return _reactions(model, q, v, tau, t, mode, base=base, solver=solver)


@compiles_itself("base", "solver")
def _reactions(model: Model, q: Any, v: Any, tau: Any, t: Any, mode: Any, *, base: Any, solver: str) -> jax.Array:
    state, tau = _state(model, q, v, tau, t, mode)
    found = assembled(state, tau, base, False)
    s, dtype = found.system, found.system.force.dtype
    _, multipliers = _solved(model, s, {}, solver)
    wrench = jnp.einsum("ark,ar->ak", s.near, multipliers)  # torque about the centre of mass, body axes; force, world
    A = found.bodies.A[np.array([i for i, _ in s.ends])]
    force = jnp.einsum("axy,ax->ay", A, wrench[:, 3:])
    assert found.frames is not None
    C, p = found.frames.C_i, found.frames.p_i
    moment = wrench[:, :3] - jnp.cross(p, force)
    n = len(found.drives)
    in_frame = jnp.concatenate([jnp.einsum("axy,ax->ay", C, x) for x in (moment, force)], axis=1)
    turn = A[:n] @ C[:n]
    drives = [jnp.einsum("axy,ax->ay", turn, x) for x in (found.drives[:, :3], found.drives[:, 3:])]
    out = in_frame.at[:n].add(jnp.concatenate(drives, axis=1))
    for name, F in state.loads.on_cut.items():
        out = out.at[n + model.loop_names.index(name)].add(state.tree.vector(list(F.scalars())))
    return _unless_locked(mode, out.astype(dtype))


def rows(model: Model, planar: bool = False) -> dict[str, slice]:
    """The slice of each joint's or loop's equations among the multipliers: {name: slice}; planar: as in `system`.

    >>> mbs.absolute.rows(mbs.library.crank_slider().build(), planar=True)
    {'bearing': slice(0, 2, None), 'knee': slice(2, 4, None), 'guide': slice(4, 6, None), 'pin': slice(6, 8, None)}
    """
    out, start = {}, 0
    for arc in plane_of(model).arcs if planar else arcs(model.structure):
        out[arc.name] = slice(start, start + len(arc.kept))
        start += len(arc.kept)
    return out


def _check(model: Model, mode: Mode | None, base: MovingBase | None, planar: bool) -> None:
    if not isinstance(model, Model):
        raise ModelError(f"the first argument is {type(model).__name__}; pass the Model that Mechanism.build() returns")
    if mode is not None and not is_traced(mode.lock) and np.any(mode.lock):
        raise ModelError(
            "absolute coordinates have no locks, because a lock acts on joint coordinates; use mbs.forward_dynamics, "
            "or hold the bodies by a Fixed loop that the mode switches on"
        )
    if base is not None and planar:
        raise ModelError("absolute coordinates in a plane cannot have a moving base; use planar=False")
    refuse_flexible(model, "absolute coordinates")
    refuse_armature(model, "absolute coordinates", "use mbs.forward_dynamics or mbs.constrained_dynamics")
    arcs(model.structure)


def _unless_locked(mode: Mode | None, x: Any) -> Any:
    """x, with NaN in place of its numbers if something is locked, because a traced lock cannot raise an error."""
    if mode is None or mode.lock is None:
        return x
    locked = jnp.any(mode.lock)
    return jax.tree_util.tree_map(lambda y: y if y.dtype == bool else jnp.where(locked, jnp.nan, y), x)


def _assembled(model: Model, q: Any, v: Any, tau: Any, t: Any, mode: Any, base: Any, planar: bool) -> Assembled:
    state, tau = _state(model, q, v, tau, t, mode)
    return assembled(state, tau, base, planar)


def _state(model: Model, q: Any, v: Any, tau: Any, t: Any, mode: Any) -> tuple[State, jax.Array | None]:
    q, v, tau = vectors(model, q=q, v=v, tau=tau)
    return State(Tree(model, q.dtype), q, v, t, mode), tau
