"""Trees of revolute joints with parallel axes: one angle per body, measured from body 0 [Y 3.2.2].

Method "planar": sum_j (A_ij phi_j" + B_ij phi_j'^2) = R_i + sum_a S_ia Y_a with absolute angles phi [Y 3.40, 3.41].
Only the components of d_ij and b_i0 normal to the axes n enter; with magnitudes and angles alpha_ij, beta_i

    A_ij = M d_ij b_j0 cos(phi_i - phi_j + alpha_ij - beta_j),  B_ij = the same with sin,      s_i < s_j
    A_ij = M d_ji b_i0 cos(phi_i - phi_j - alpha_ji + beta_i),  B_ij = the same with sin,      s_j < s_i
    R_i = M_i - M b_i0 [r0_1" sin(phi_i + beta_i) - r0_2" cos(phi_i + beta_i)]
              + sum_{s_i <= s_j} d_ij [F_j1 sin(phi_i + alpha_ij) - F_j2 cos(phi_i + alpha_ij)]

Corrections to the printed source: the arguments, sine in B, and the bracket of R. Derivation: with n as the third axis,
the third component of d x (omega_j x (omega_j x b)) is -phi_j'^2 (d_1 b_2 - d_2 b_1) = -phi_j'^2 d b sin(beta + phi_j -
alpha - phi_i). The matrix A is symmetric, B is skew: B_ji = -B_ij (the text calls both symmetric).

In joint angles v (relative): A_rel = P' A P, bias_rel = P'(B phi'^2 - R), phi' = P v. Vectors are used as pairs
(d cos alpha, d sin alpha), so that vectors of zero length have derivatives; `planar_parameters` returns magnitudes
and angles.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.formulations import barycentric
from jaxmbs.dynamics.formulations.free_systems import subtree_masses
from jaxmbs.dynamics.formulations.system import System, apply, system
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model, ModelError
from jaxmbs.model.refusals import refuse_flexible
from jaxmbs.model.shapes import Float
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import is_number


def obstacle(model: Model) -> str | None:
    """Why the joints are not Revolute joints with structurally parallel axes, or None."""
    s, values = model.structure, model.values()
    axes: dict[int, Vector3] = {}
    for i, link in enumerate(s.links):
        if not (link.joint.revolute or link.joint.rigid):
            return f"joint {link.name!r} is {link.joint.type_name}, not Revolute"
        own = values[f"{link.name}.{link.joint.turning_axis}"] if link.joint.nv else None
        carried = axes.get(link.parent)
        if carried is not None:
            up = s.links[link.parent].name
            turn = values[f"{up}.child_pose.rotation"] @ values[f"{link.name}.parent_pose.rotation"]
            carried = turn.T @ carried
        if own is not None and carried is not None and not _parallel(own, carried):
            return (
                f"the axis of joint {link.name!r} is not known to be parallel to that of the joint before it; "
                "give axes and poses along the coordinate axes"
            )
        if own is not None or carried is not None:
            axes[i] = own if own is not None else carried  # type: ignore[assignment]
    return None


def _parallel(a: Vector3, b: Vector3) -> bool:
    return all(is_number(x) for x in (*a, *b)) and all(x == 0 for x in a.cross(b))


class _Plane(NamedTuple):
    """A planar tree: P (n, nv) of the rates phi' = P v; axes n (n, 3), and E (n, 2, 3): e1, e2 normal to them.

    E is common to a subtree. d (n, n, 2), b (n, 2): d_ij and b_i0 at phi = 0; phi (n,): angles from this configuration.
    """

    P: jax.Array
    n: jax.Array
    E: jax.Array
    d: jax.Array
    b: jax.Array
    phi: jax.Array


def _plane(state: State, s: System) -> _Plane:
    """Constants of the bodies, from the configuration q = 0 in which all phi vanish."""
    tree = state.tree
    rest = system(State(tree, jnp.zeros_like(state.q), jnp.zeros_like(state.v), state.t))
    of = barycentric.of_system(rest)
    # for each body, a degree of freedom that rotates it
    first = (s.graph.T[s.arc] != 0).argmax(axis=0) if len(s.arc) else []
    n = rest.hinges.p[np.asarray(first)] if len(s.arc) else jnp.ones((s.graph.n, 3), s.m.dtype)
    P = -jnp.einsum("kix,ix->ik", rest.pT, n)
    E = _normal_axes(n)
    d = jnp.einsum("iux,ijx->iju", E, of.d)
    b = jnp.einsum("iux,ix->iu", E, of.b0)
    return _Plane(P, n, E, d, b, P @ state.q)


def _normal_axes(n: jax.Array) -> jax.Array:
    """(n, 2, 3): e1, e2 with e1 x e2 = n, x and y for n = z; the unit vectors n vary only between subtrees."""
    after = (jnp.argmax(jnp.abs(n), axis=1) + 1) % 3
    e = jnp.eye(3, dtype=n.dtype)[after]
    e1 = e - n * (n * e).sum(axis=1, keepdims=True)
    e1 = e1 / jnp.sqrt((e1 * e1).sum(axis=1, keepdims=True))
    return jnp.stack([e1, jnp.cross(n, e1)], axis=1)


def _turned(x: jax.Array, angle: jax.Array) -> jax.Array:
    """Pairs (..., 2) rotated by the angles: (r cos a, r sin a) to (r cos(a + angle), r sin(a + angle))."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([x[..., 0] * c - x[..., 1] * s, x[..., 0] * s + x[..., 1] * c], axis=-1)


def _A_and_B(s: System, p: _Plane) -> tuple[jax.Array, jax.Array]:
    """A_ij and B_ij of [Y 3.40], for absolute angles."""
    outward = s.graph.carries & ~np.eye(s.graph.n, dtype=bool)
    u = _turned(p.d, p.phi[:, None] - p.phi[None])  # d_ij at phi_i - phi_j + alpha_ij
    Mb = (subtree_masses(s)[:, None] * p.b)[None]
    A = jnp.where(outward, u[..., 0] * Mb[..., 0] + u[..., 1] * Mb[..., 1], 0.0)
    B = jnp.where(outward, u[..., 1] * Mb[..., 0] - u[..., 0] * Mb[..., 1], 0.0)
    K = barycentric.augmented_inertias(s.J, s.m, jnp.einsum("iax,aj->ijx", s.C[1:], s.T))
    own = jnp.einsum("ix,ixy,iy->i", p.n, K, p.n)
    return A + A.T + jnp.diag(own), B - B.T


def _R(s: System, p: _Plane) -> jax.Array:
    """R_i of [Y 3.40]."""

    def in_plane(x: jax.Array) -> jax.Array:
        return apply(p.E, x)

    def torque(arm: jax.Array, force: jax.Array) -> jax.Array:
        return arm[..., 1] * force[..., 0] - arm[..., 0] * force[..., 1]

    base, F = in_plane(barycentric.base_acceleration(s)), in_plane(s.F)
    d, b = _turned(p.d, p.phi[:, None] * jnp.ones_like(p.d[..., 0])), _turned(p.b, p.phi)
    forces = torque(d, F[None]).sum(axis=1)
    return jnp.einsum("ix,ix->i", p.n, s.M) - subtree_masses(s) * torque(b, base) + forces


def mass_matrix(state: State) -> jax.Array:
    """P' A P of [Y 3.40]."""
    s = system(state)
    p = _plane(state, s)
    return p.P.T @ _A_and_B(s, p)[0] @ p.P


def bias(state: State) -> jax.Array:
    """P'(B phi'^2 - R) of [Y 3.40], minus the generalized forces of the force elements on joints."""
    s = system(state)
    p = _plane(state, s)
    B = _A_and_B(s, p)[1]
    return p.P.T @ (B @ (p.P @ state.v) ** 2 - _R(s, p)) - s.elements


class PlanarParameters(NamedTuple):
    """Magnitudes [m] and angles [rad] of the vectors of a planar tree [Y table 3.1]: d, alpha (n, n) of d_ij, and b, beta
    (n,) of b_i0.

    >>> found = mbs.textbook.planar_parameters(mbs.library.triple_pendulum().build())
    >>> found.d.shape, found.beta.shape
    ((3, 3), (3,))
    """

    d: Float[jax.Array, "n n"]
    alpha: Float[jax.Array, "n n"]
    b: Float[jax.Array, " n"]
    beta: Float[jax.Array, " n"]


@compiles_itself()
def planar_parameters(model: Model) -> PlanarParameters:
    """Magnitudes and angles of d_ij and b_i0 of a planar tree, at q = 0; the angle of a zero vector is 0.

    Angles are measured about the axis of the first joint, from a world axis normal to it: from x if the joint axis is
    z, from y if it is x, from z if it is y. Raises ModelError if the joints are not Revolute joints with parallel axes, and
    for flexible bodies.

    >>> found = mbs.textbook.planar_parameters(mbs.library.triple_pendulum().build())
    >>> print(found.b.round(3))
    [1.667 1.    0.333]
    """
    refuse_flexible(model, "planar_parameters", barycentric.RIGID)
    reason = obstacle(model)
    if reason:
        raise ModelError(f"planar_parameters: {reason}")
    dtype = jnp.result_type(float)
    state = State(Tree(model, dtype), jnp.zeros(model.nq, dtype), jnp.zeros(model.nv, dtype))
    p = _plane(state, system(state))

    def polar(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        zero = (x == 0).all(axis=-1)
        safe = jnp.where(zero[..., None], 1.0, x)
        return (
            jnp.where(zero, 0.0, jnp.sqrt((safe * safe).sum(axis=-1))),
            jnp.where(zero, 0.0, jnp.arctan2(safe[..., 1], safe[..., 0])),
        )

    return PlanarParameters(*polar(p.d), *polar(p.b))
