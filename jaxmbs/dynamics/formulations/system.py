"""A tree as columns and matrices of vectors, from which the dense formulations start.

All vectors are in inertial axes. Indices: i, j bodies (n); a arcs (n); k degrees of freedom (nv); arrays of n + 1 rows
begin with body 0. Names are those of [Y 3.2-3.4].
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.formulations.moving_base import BaseMotion, MovingBase, at_rest
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import world_placements
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model, ModelError
from jaxmbs.model.graph import Graph, graph_of_structure, reversed_arcs
from jaxmbs.model.joints import Joint
from jaxmbs.spatial.scalar import Scalar, is_number


@dataclass(frozen=True)
class Hinges:
    """Per arc: motion of the body i-(a) relative to i+(a) [Y 3.4.2].

    c_plus, c_minus: hinge vectors from the centres of mass of i+ (from the origin of body 0) and i-; z: hinge vector
    from one hinge point to the other; dz, Omega: relative linear and angular velocity; s, w: relative linear and
    angular acceleration at q" = 0 [Y 3.101, 3.105]; k, p (nv, 3): columns of dz and Omega, one per degree of freedom.
    """

    c_plus: jax.Array
    c_minus: jax.Array
    z: jax.Array
    dz: jax.Array
    Omega: jax.Array
    s: jax.Array
    w: jax.Array
    k: jax.Array
    p: jax.Array


@dataclass(frozen=True)
class System:
    """Bodies and hinges of a tree at one state.

    graph, joints: structure; arc (nv,): the arc of each degree of freedom, from 0; base: motion of body 0; m (n,):
    masses; J (n, 3, 3): central inertias; r (n, 3): centres of mass; A (n, 3, 3): link axes (child joint frames) to
    inertial axes; F, M (n, 3): applied forces, gravity included, and torques about the centres of mass; elements (nv,):
    generalized forces of the force elements on joints.
    """

    graph: Graph
    joints: tuple[Joint, ...]
    arc: np.ndarray
    base: BaseMotion
    m: jax.Array
    J: jax.Array
    r: jax.Array
    A: jax.Array
    hinges: Hinges
    F: jax.Array
    M: jax.Array
    elements: jax.Array

    @functools.cached_property
    def S_plus(self) -> jax.Array:
        """S0+ above S+ (n + 1, n) [Y 3.132]."""
        return self.integers(self.graph.S_plus[:, : self.graph.n])

    @functools.cached_property
    def S(self) -> jax.Array:
        """S0 above S (n + 1, n)."""
        return self.integers(self.graph.incidence[:, : self.graph.n])

    @functools.cached_property
    def T(self) -> jax.Array:
        return self.integers(self.graph.T)

    def integers(self, x: np.ndarray) -> jax.Array:
        """A matrix of the graph in the dtype of the system."""
        return jnp.asarray(x, self.m.dtype)

    @functools.cached_property
    def C(self) -> jax.Array:
        """C0 above C (n + 1, n, 3): S_ia c_ia [Y 3.3]."""
        h, minus = self.hinges, self.S_plus - self.S
        return self.S_plus[:, :, None] * h.c_plus[None] - minus[:, :, None] * h.c_minus[None]

    @functools.cached_property
    def pT(self) -> jax.Array:
        """(nv, n, 3): p T."""
        return self.hinges.p[:, None, :] * self.T[self.arc][:, :, None]

    @functools.cached_property
    def kT(self) -> jax.Array:
        """(nv, n, 3): k T."""
        return self.hinges.k[:, None, :] * self.T[self.arc][:, :, None]

    @functools.cached_property
    def omega(self) -> jax.Array:
        """Angular velocities (n + 1, 3): omega = -T'Omega + omega0 1 [Y 3.111]."""
        of_bodies = self.base.omega[None] - self.T.T @ self.hinges.Omega
        return jnp.concatenate([self.base.omega[None], of_bodies])

    @functools.cached_property
    def omega_plus(self) -> jax.Array:
        """(n, 3): angular velocity of the body i+(a)."""
        return self.omega[jnp.asarray(self.graph.i_plus[: self.graph.n])]

    @functools.cached_property
    def Ttf(self) -> jax.Array:
        """T'f - omega0' 1 (n, 3), with f_a = w_a + omega_{i+} x Omega_a [Y 3.118]: omega' = -T'p'q" - Ttf."""
        f = self.hinges.w + jnp.cross(self.omega_plus, self.hinges.Omega)
        return self.T.T @ f - self.base.alpha[None]

    @functools.cached_property
    def V(self) -> jax.Array:
        """Gyroscopic torques omega x J omega (n, 3) [Y 3.95]."""
        omega = self.omega[1:]
        return jnp.cross(omega, apply(self.J, omega))


def apply(matrices: jax.Array, vectors: jax.Array) -> jax.Array:
    """Each of the matrices (n, 3, 3) times its vector in (n, 3)."""
    return jnp.einsum("ixy,iy->ix", matrices, vectors)


def cross_sum(a: jax.Array, b: jax.Array) -> jax.Array:
    """(k, i, 3): sum over j of a_kj x b_ji."""

    def product(x: int, y: int) -> jax.Array:
        return a[:, :, x] @ b[:, :, y]

    return jnp.stack([product(y, z) - product(z, y) for y, z in ((1, 2), (2, 0), (0, 1))], axis=2)


def _table(tree: Tree, columns: Sequence[Sequence[Sequence[Scalar]]]) -> jax.Array:
    """Array (rows, columns); columns: each column in the form that `Tree.flat` takes."""
    return jnp.stack([_vector(tree, tree.flat(parts)) for parts in columns], axis=1)


def _vector(tree: Tree, flat: Any) -> jax.Array:
    """As `Tree.vector`, but a list of plain numbers becomes one constant, so that fewer operations are compiled."""
    if isinstance(flat, list) and all(map(is_number, flat)):
        return jnp.asarray(np.asarray(flat, float), tree.dtype)
    return tree.vector(flat)


def _per_link(tree: Tree, values: Sequence[Any], scalars: Callable[[Any], Sequence[Scalar]]) -> jax.Array:
    """(n, m): the m scalars of every link."""
    rows = [tuple(scalars(x)) for x in values]
    return _table(tree, [[(row[c],) for row in rows] for c in range(len(rows[0]))])


def placements(state: State) -> tuple[jax.Array, jax.Array]:
    """Rotations (n, 3, 3) and origins (n, 3) of the link frames in the world."""
    placed = world_placements(state.tree, state.motions)
    x = _per_link(state.tree, placed, lambda W: (*W.position, *W.rotation))
    return x[:, 3:].reshape(-1, 3, 3), x[:, :3]


def body_numbers(tree: Tree) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Masses (n,), centres of mass (n, 3) and central inertias (n, 3, 3) of the bodies, in the axes of their links."""
    v, rows = tree.values, []
    for link, B in zip(tree.structure.links, tree.body_in_link, strict=True):
        J = v[f"{link.body}.inertia"].rotated(B.rotation).full()
        rows.append((v[f"{link.body}.mass"], *B.point(v[f"{link.body}.com"]), *J))
    x = jnp.stack([_vector(tree, list(row)) for row in rows])
    return x[:, 0], x[:, 1:4], x[:, 4:].reshape(-1, 3, 3)


def refuse_constraints(model: Model, where: str, remedy: str) -> None:
    """Raise ModelError if a model is not a tree, for formulations that would ignore its constraints."""
    if model.structure.constrained:
        raise ModelError(
            f"{where}: model {model.name!r} has constraints, but these formulas are for trees only; {remedy}"
        )


def system(state: State, base: MovingBase | None = None) -> System:
    """The matrices of a tree at a state, all arcs pointing outwards (from the parent to the child)."""
    tree, s, dtype = state.tree, state.tree.structure, state.tree.dtype
    motion = at_rest(dtype) if base is None else base.at(state.t, dtype)
    q, v = tree.split(state.q, s.q_slices), tree.split(state.v, s.v_slices)
    relative = [
        b.joint.motion(link.numbers, qb, vb, state.t)
        for b, link, qb, vb in zip(tree.blocks, tree.links, q, v, strict=True)
    ]
    arc, parent = np.repeat(np.arange(len(s.links)), [x.joint.nv for x in s.links]), [x.parent + 1 for x in s.links]

    A, origins = placements(state)
    A, origins = jnp.einsum("xy,iyz->ixz", motion.A, A), motion.r[None] + origins @ motion.A.T
    A_parent = jnp.concatenate([motion.A[None], A])[jnp.asarray(parent)]
    m, com, J = body_numbers(tree)
    to_com = apply(A, com)
    fixed = _per_link(tree, tree.links, lambda link: link.fixed.position)
    pairs = list(zip(tree.links, relative, strict=True))
    z = _per_link(tree, pairs, lambda x: x[0].fixed.rotation @ x[1].placement.position)
    rates = _per_link(tree, relative, lambda m: (*m.velocity.scalars(), *m.bias.scalars())).reshape(-1, 4, 3)
    Omega, dz, w, bias = (apply(A, rates[:, c]) for c in range(4))
    S = _table(tree, [[[x.scalars()[c] for x in m.S] for m in relative] for c in range(6)]).reshape(-1, 2, 3)
    p, k = (apply(A[arc], S[:, c]) for c in range(2))

    # hinge vectors on i+ begin at its centre of mass, those on body 0 at its origin
    start = jnp.concatenate([jnp.zeros((1, 3), dtype), to_com])[jnp.asarray(parent)]
    c_plus = apply(A_parent, fixed) - start
    hinges = Hinges(c_plus, -to_com, apply(A_parent, z), dz, Omega, bias + jnp.cross(Omega, dz), w, k, p)

    loads = _per_link(tree, state.wrenches, lambda f: f.scalars()).reshape(-1, 2, 3)
    moment, force = apply(A, loads[:, 0]), apply(A, loads[:, 1])
    gravity = jnp.stack([jnp.asarray(x, dtype) for x in tree.values["gravity"]])
    elements = tree.vector(tree.flat(state.with_elements(tree.split(None, s.v_slices), 1)))
    J = A @ J @ jnp.swapaxes(A, 1, 2)
    return System(
        graph_of_structure(s), tuple(x.joint for x in s.links), arc, motion, m, J, origins + to_com, A, hinges,
        force + m[:, None] * gravity[None], moment - jnp.cross(to_com, force), elements,
    )  # fmt: skip


def turned(system: System, arcs: Sequence[int]) -> System:
    """The same system with some arcs (numbered from 1) reversed.

    The coordinates stay the same. A hinge then describes the motion of the old i+ relative to the old i-: z and Omega
    change sign, and rates of z are measured in the other body. Every formulation must give the same A and B as before.
    """
    h, n = system.hinges, system.graph.n
    on = np.isin(np.arange(1, n + 1), list(arcs))
    row, freedom = on[:, None], on[system.arc][:, None]
    z_k = jnp.cross(h.p, h.z[system.arc])
    seen = h.dz - jnp.cross(h.Omega, h.z)  # rate of z in the old i-
    s = h.s - jnp.cross(h.w, h.z) - 2 * jnp.cross(h.Omega, seen) - jnp.cross(h.Omega, jnp.cross(h.Omega, h.z))
    hinges = Hinges(
        jnp.where(row, h.c_minus, h.c_plus), jnp.where(row, h.c_plus, h.c_minus), jnp.where(row, -h.z, h.z),
        jnp.where(row, -seen, h.dz), jnp.where(row, -h.Omega, h.Omega), jnp.where(row, -s, h.s),
        jnp.where(row, -h.w, h.w), jnp.where(freedom, z_k - h.k, h.k), jnp.where(freedom, -h.p, h.p),
    )  # fmt: skip
    return replace(system, graph=reversed_arcs(system.graph, arcs), hinges=hinges)
