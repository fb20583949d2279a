"""The public functions of dynamics: arrays in, arrays out.

All except `integrate` take the time t and a mode, so that they can be called in the same way; poses, Jacobians, rates,
the mass matrix and momentum do not depend on the mode.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained import wrenches
from jaxmbs.dynamics.constrained.public import constrained_dynamics, constrained_state
from jaxmbs.dynamics.formulations import methods
from jaxmbs.dynamics.formulations import public as formulas
from jaxmbs.dynamics.formulations.moving_base import MovingBase
from jaxmbs.dynamics.recursive import aba, energies, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, state_dtype, vector, vectors
from jaxmbs.dynamics.state.kinematics import displaced, world_placements
from jaxmbs.dynamics.state.tree import UNROLLED, Tree
from jaxmbs.model import Mode, Model, ModelError
from jaxmbs.model.given import Accelerations, Coordinates, GeneralizedForces, Number, Rates, Triple
from jaxmbs.model.pose import BodyPoses
from jaxmbs.model.shapes import Float
from jaxmbs.spatial import Transform, Vector3
from jaxmbs.spatial.factorization import solve
from jaxmbs.spatial.known import ZERO


def _state(model: Model, q: Any, v: Any, t: Any, mode: Mode | None, *others: Any) -> State:
    dtype = state_dtype(q, v, *others)
    qa = vector(model, "q", q, model.nq, dtype)
    va = jnp.zeros(model.nv, dtype) if v is None else vector(model, "v", v, model.nv, dtype)
    return State(Tree(model, dtype), qa, va, t, mode)


def _optional(state: State, name: str, x: Any) -> Any:
    return None if x is None else vector(state.tree.model, name, x, state.tree.structure.nv, state.tree.dtype)


def _scalar(state: State, x: Any) -> jax.Array:
    return jnp.asarray(x, state.tree.dtype)


@compiles_itself()
def body_poses(model: Model, q: Coordinates, *, t: Number = 0.0, mode: Mode | None = None) -> BodyPoses:
    """Poses of all bodies in the world.

    q (nq,). Returns position (n, 3) [m] and rotation (n, 3, 3), body to world, in the order of model.body_names; the name
    of a body gives its Pose. Raises ModelError for a wrong shape.

    >>> model = mbs.library.double_pendulum().build()
    >>> poses = mbs.body_poses(model, [0.5, 0.3])
    >>> print(poses["lower"].position.round(3), poses.position.shape)
    [ 0.479  0.    -0.878] (2, 3)
    """
    state = _state(model, q, None, t, None)
    tree = state.tree
    placements = tree.per_link(world_placements(tree, state.motions))
    bodies = [W @ B for W, B in zip(placements, tree.body_in_link, strict=True)]

    def table(rows: list[list[Any]]) -> jax.Array:
        return jnp.stack([jnp.stack([jnp.asarray(x, tree.dtype) for x in row]) for row in rows])

    R = table([list(T.rotation) for T in bodies])
    return BodyPoses(table([list(T.position) for T in bodies]), R.reshape(-1, 3, 3), tuple(model.body_names))


@compiles_itself("body")
def jacobian(
    model: Model,
    q: Coordinates,
    body: str,
    point: Triple = (0.0, 0.0, 0.0),
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
) -> Float[jax.Array, "6 nv"]:
    """Jacobian (6, nv) of a point of a body: (angular, linear) velocity in world axes per unit of v.

    q (nq,); body: its name; point (3,) [m] in body axes. Raises ModelError for an unknown body.

    >>> model = mbs.library.double_pendulum().build()
    >>> J = mbs.jacobian(model, [0.5, 0.3], "lower", point=(0, 0, -1))
    >>> print((J @ jnp.array([1.0, 0.0])).round(3))
    [ 0.    -1.     0.     1.574  0.     1.197]
    """
    state = _state(model, q, None, t, None)
    tree, s = state.tree, state.tree.structure
    i = s.find_body(body, "jacobian")
    columns = [[ZERO] * 6 for _ in range(s.nv)]
    if i >= 0:
        placements, motions = world_placements(tree, state.motions), state.motions
        local = Vector3.of(list(jnp.asarray(point, tree.dtype)))
        target = (tree.pick(placements, i) @ tree.body_in_link[i]).point(local)
        for link in s.inward(i):
            W = tree.pick(placements, link)
            at_target = Transform(W.rotation.T, W.rotation.T @ (target - W.position))
            own = (
                tree.pick(motions, link).S if not s.links[link].joint.elastic else []
            )  # the nodes of the body have them
            for k, S in enumerate(own, s.motion_v[link].start):
                w = W.rotation @ S.angular
                columns[k] = [*w, *(W.rotation @ (S.linear + S.angular.cross(at_target.position)))]
    return jnp.stack([jnp.stack([jnp.asarray(x, tree.dtype) for x in c]) for c in columns], axis=1)


@compiles_itself()
def rates(
    model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None
) -> Float[jax.Array, " nq"]:
    """dq/dt (nq,) at velocities v (nv,), which is v except for the coordinates of Spherical and Free joints.

    A quaternion p has the rate p o (0, omega)/2; the position of a Free joint has the linear velocity, rotated into the
    axes of the parent joint frame. Linear in v and smooth at every q (nq,) without a zero quaternion. Raises ModelError
    for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.rates(model, [0.3, 0.4], [1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    state = _state(model, q, v, t, None)
    return state.tree.vector(state.tree.flat([m.rates for m in state.motions]))


@compiles_itself()
def integrate(model: Model, q: Coordinates, dv: Rates) -> Float[jax.Array, " nq"]:
    """q (nq,) moved along the tangent vector dv (nv,): the configuration after one second at the constant v = dv.

    The step of integrators and optimisers on the configuration manifold: for quaternions and Free joints the
    exponential map of the group (a screw motion), for other joints the sum q + dv [m, rad]. integrate(model, q, 0) is
    exactly q, and its derivative there is `rates`; the length of quaternions does not change. Raises ModelError for
    wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.integrate(model, [0.25, 0.5], [1.0, 2.0]).tolist()
    [1.25, 2.5]
    """
    x, dx = vectors(model, q=q, dv=dv)
    tree = Tree(model, x.dtype)
    return tree.vector(displaced(tree, x, dx))


@compiles_itself()
def inverse_dynamics(
    model: Model, q: Coordinates, v: Rates, a: Accelerations, *, t: Number = 0.0, mode: Mode | None = None
) -> Float[jax.Array, " nv"]:
    """Generalized forces tau (nv,) that produce the accelerations a (nv,): tau = A a + bias (recursive Newton-Euler).

    q (nq,), v (nv,). Gravity and the force elements act in addition to tau. Units: N m or N, depending on the
    coordinate. Constraints are left out: for a mechanism that has some, the result is tau plus their generalized
    forces. Raises ModelError for wrong shapes. [Y 3.170-3.172]

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.inverse_dynamics(model, [0.5, 0.3], [0.0, 0.0], [0.0, 0.0]).round(3))  # what holds it still
    [16.444  7.037]
    """
    state = _state(model, q, v, t, mode, a)
    return state.tree.vector(rnea.inverse_dynamics(state, vector(model, "a", a, model.nv, state.tree.dtype)))


@compiles_itself()
def bias_forces(
    model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None
) -> Float[jax.Array, " nv"]:
    """bias (nv,) of A a + bias = tau: Coriolis, centrifugal and gyroscopic forces, gravity, force elements [N, N m].

    At q (nq,), v (nv,). Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.bias_forces(model, [0.5, 0.3], [1.0, 2.0]).round(3))
    [14.079  7.333]
    """
    state = _state(model, q, v, t, mode)
    return state.tree.vector(rnea.inverse_dynamics(state, None))


@compiles_itself("method")
def mass_matrix(
    model: Model, q: Coordinates, *, method: str = "crba", t: Number = 0.0, mode: Mode | None = None
) -> Float[jax.Array, "nv nv"]:
    """Mass matrix A (nv, nv) at q (nq,), symmetric, in kg, kg m, kg m² depending on the units of v: v' A v/2 is in J.

    method: "crba" (composite rigid bodies) or a formulation of the literature: "configuration", "jacobian" for any
    joints, "barycentric", "wang" for rotational joints, "fictitious" for trees on Free joints, "planar", "telegin" for
    revolute joints. All give the same matrix. Raises ModelError for an unknown method, and for one that cannot serve
    the model; the message names those that can.

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.mass_matrix(model, [0.5, 0.3]).round(3))
    [[4.911 1.955]
     [1.955 1.   ]]
    """
    return methods.find(method, model).mass_matrix(_state(model, q, None, t, None))


@compiles_itself("method")
def forward_dynamics(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    prescribed: Accelerations | None = None,
    method: str = "aba",
) -> Float[jax.Array, " nv"]:
    """Accelerations a (nv,) under generalized forces tau (nv,), gravity and the force elements.

    q (nq,), v (nv,); tau None is zero. mode: locks and switches (`Model.mode`); prescribed (nv,): acceleration of the
    locked degrees of freedom, None for zero. method: "aba" (articulated bodies, linear in the number of links,
    [Y 3.174-3.177]), or a method of `mass_matrix`: a is then solved from its A and bias. With loops or constraints the
    accelerations are those of `constrained_dynamics`. Raises ModelError for wrong shapes, an unknown method, or one that
    cannot serve the model.

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.forward_dynamics(model, [0.5, 0.3], [1.0, 2.0], tau=[0.0, 1.0]).round(3))
    [-1.56  -3.282]
    """
    found = None if method == "aba" else methods.find(method, model, also=("aba",))
    if model.structure.constrained:
        if method != "aba":
            raise ModelError(
                f"forward_dynamics: method {method!r} is for trees, but model {model.name!r} has constraints"
            )
        return constrained_dynamics(model, q, v, tau, t=t, mode=mode, prescribed=prescribed)[0]
    state = _state(model, q, v, t, mode, tau)
    tau, prescribed = _optional(state, "tau", tau), _optional(state, "prescribed", prescribed)
    if found is None:
        return state.tree.vector(aba.forward_dynamics(state, tau, prescribed))
    return _by_mass_matrix(state, found.mass_matrix(state), found.bias(state), tau, prescribed)


def _by_mass_matrix(state: State, A: jax.Array, bias: jax.Array, tau: Any, prescribed: Any) -> jax.Array:
    """Accelerations from A and the bias; locked rows state a = prescribed [Y 3.92]."""
    tree, nv = state.tree, state.tree.structure.nv
    given = jnp.zeros(nv, tree.dtype) if prescribed is None else prescribed
    right = (0 if tau is None else tau) - bias
    if (lock := state.lock) is not None:
        right = jnp.where(lock, given, right - A @ jnp.where(lock, given, 0.0))
        A = jnp.where(lock[:, None] | lock[None, :], jnp.eye(nv, dtype=tree.dtype), A)
    if nv > UNROLLED:
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(A, lower=True), right)
    x = solve([[A[i, j] for j in range(nv)] for i in range(nv)], [right[i] for i in range(nv)])
    return jnp.stack(x) if x else jnp.zeros(0, tree.dtype)


@compiles_itself()
def energy(
    model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""]]:
    """(kinetic, potential) energy [J]; potential: gravity, zero at the world origin, and elements that store energy.

    At q (nq,), v (nv,). Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> kinetic, potential = mbs.energy(model, [0.5, 0.3], [1.0, 2.0])
    >>> print(kinetic.round(3), potential.round(3))
    8.366 -24.053
    """
    state = _state(model, q, v, t, mode)
    return _scalar(state, energies.kinetic(state)), _scalar(state, energies.potential(state))


@compiles_itself()
def momentum(
    model: Model, q: Coordinates, v: Rates, *, t: Number = 0.0, mode: Mode | None = None
) -> tuple[Float[jax.Array, " 3"], Float[jax.Array, " 3"]]:
    """(angular momentum (3,) about the common centre of mass [N m s], linear momentum (3,) [N s]), world axes.

    At q (nq,), v (nv,). Raises ModelError for wrong shapes.

    >>> model = mbs.library.double_pendulum().build()
    >>> angular, linear = mbs.momentum(model, [0.5, 0.3], [1.0, 2.0])
    >>> print(linear.round(3))
    [3.845 0.    3.111]
    """
    state = _state(model, q, v, t, None)
    angular, linear = energies.momentum(state)
    return jnp.stack([_scalar(state, x) for x in angular]), jnp.stack([_scalar(state, x) for x in linear])


@compiles_itself("base", "method")
def joint_reactions(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    base: MovingBase | None = None,
    method: str | None = None,
    t: Number = 0.0,
    mode: Mode | None = None,
    prescribed: Accelerations | None = None,
) -> Float[jax.Array, "joints 6"]:
    """Wrench in every joint, (joints, 6): model.joint_names in order, then the cut joints, model.loop_names.

    A row is (torque [N m], force [N]) on the child, about the origin and in the axes of the child joint frame; for a
    cut joint, on its second body at frame b. It is the whole wrench that the joint transmits, and includes drive and
    spring torques along the joint's degrees of freedom; the modes of a flexible body transmit none, and their rows are NaN.
    q (nq,), v (nv,), tau (nv,) or None, prescribed (nv,): as in `forward_dynamics`. Raises ModelError for wrong shapes.

    base: a `mbs.textbook.MovingBase`, the motion of the world of a tree. method: None is the recursive algorithm, which
    serves every mechanism; "configuration" (any tree; the default with a base) and "barycentric" (rotational joints)
    are the explicit formulas for X^c and Y^c. With a base or a method, mode and prescribed must be None, and constraints,
    flexible bodies and armature raise ModelError.
    [Y 3.86, 3.170; the hinge force of Y 3.4; W 3.1; 3.199 for cut joints]

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.joint_reactions(model, [0.0, 0.0], [0.0, 0.0]).round(3)[:, 3:])  # the weights, carried
    [[ 0.    0.   19.62]
     [ 0.    0.    9.81]]
    """
    if base is not None or method is not None:
        if mode is not None or prescribed is not None:
            raise ModelError(
                "joint_reactions: mode and prescribed cannot be combined with base or method; leave out one or the other"
            )
        return formulas.reactions(model, q, v, tau, base, t, method or "configuration")
    constrained = model.structure.constrained
    state = constrained_state(model, q, v, t, mode, tau) if constrained else _state(model, q, v, t, mode, tau)
    tau, prescribed = _optional(state, "tau", tau), _optional(state, "prescribed", prescribed)
    if constrained:
        in_joints, in_loops = wrenches.reactions(state, tau, prescribed)
    else:
        in_joints, _ = rnea.joint_wrenches(state, aba.forward_dynamics(state, tau, prescribed))
        in_loops = []
    return wrenches.in_rows(state.tree, in_joints, in_loops)
