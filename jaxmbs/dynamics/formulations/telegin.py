"""Inertial coefficients of hinged trees: the mass matrix by statements 1 to 4 of [T].

They serve trees of revolute joints (and fixed ones, which have no coefficient of their own) on a fixed base. The pole
O_k of a link is the origin of its frame, on its hinge axis; R_k = L_k e_k runs from the pole of the base to that of the
link; inertias are about the pole. The "base" of a link is its parent, and the `carried` links are its children, S_k of
the source. Vectors are in the axes of the link named first in a pair: axis(j, i) is q_i in the axes of link j, so that
its components are x_ji^q, y_ji^q, z_ji^q.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import world_placements
from jaxmbs.model import Model
from jaxmbs.model.refusals import armature
from jaxmbs.spatial import Matrix3, Symmetric3, Vector3, kernel
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, is_number, total


def obstacle(model: Model) -> str | None:
    """None if the inertial coefficients of [T] exist for the model, else the reason why not."""
    for link in model.structure.links:
        if not (link.joint.revolute or link.joint.rigid):
            return (
                "the inertial coefficients of [T] are defined for trees of revolute joints on a fixed base, but joint "
                f"{link.name!r} is {link.joint.type_name}"
            )
    if geared := armature(model):
        return f"joint {geared!r} has armature, which the inertial coefficients of [T] do not include"
    return None


def mass_matrix(state: State) -> Any:
    """A (nv, nv), symmetric; a list of rows for Python or SymPy scalars. [T (2), (5), (7), (8)]"""
    tree, s = state.tree, state.tree.structure
    if tree.rolled:
        return _in_world_axes(state)
    found = Coefficients(state)
    hinged = [i for i, link in enumerate(s.links) if link.joint.nv]
    rows = [[found.H(max(i, j), min(i, j)) if found.related(i, j) else 0 for j in hinged] for i in hinged]
    if tree.dtype is None:
        return rows
    return jnp.stack([jnp.asarray(x, tree.dtype) for row in rows for x in row]).reshape(s.nv, s.nv)


def _once(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a method whose results are cached."""

    @wraps(method)
    def wrapper(self: Coefficients, *args: int) -> Any:
        key = (method.__name__, *args)
        if key not in self.found:
            self.found[key] = method(self, *args)
        return self.found[key]

    return wrapper


class Coefficients:
    """The quantities of [T] at one state; each is computed when it is first used."""

    def __init__(self, state: State):
        tree, self._links = state.tree, state.tree.structure.links
        self._children = state.tree.structure.children
        self._own, self._motions = tree.per_link(tree.links), tree.per_link(state.motions)
        n = len(self._links)
        self._carriers: list[frozenset[int]] = []
        for j, link in enumerate(self._links):
            self._carriers.append(frozenset({j}) | (self._carriers[link.parent] if link.parent >= 0 else frozenset()))
        self._mass: list[Scalar] = [ZERO] * n  # m_k, of the subsystem
        self._static: list[Vector3] = [link.inertia.moment for link in self._own]  # d_k [T (1)]
        for k in reversed(range(n)):
            self._mass[k] = self._own[k].inertia.mass + self._mass[k]
            if self._links[k].parent >= 0:
                base = self._links[k].parent
                self._mass[base] += self._mass[k]
                self._static[base] = self._static[base] + self._R(k) * self._mass[k]
        self.found: dict[tuple[Any, ...], Any] = {}

    def related(self, i: int, j: int) -> bool:
        """Whether one of the two links carries the other, or both are the same."""
        return min(i, j) in self._carriers[max(i, j)]

    def _R(self, k: int) -> Vector3:
        """L_k e_k, in the axes of the base."""
        return self._own[k].fixed.position

    def _rotation(self, k: int) -> Matrix3:
        """Rotation from the axes of link k to those of its base."""
        return self._motions[k].X.rotation

    @_once
    def axis(self, j: int, i: int) -> Vector3:
        """q_i in link j, i = j or a carrier of j. A fixed link takes the axis of its base."""
        if j == i and self._links[j].joint.nv:
            return self._motions[j].S[0].angular
        base = self._links[j].parent
        return _seen_outward(self._rotation(j), self.axis(base, base if i == j else i))

    @_once
    def span(self, j: int, k: int) -> Vector3:
        """L_k e_k in link j, k = j or a carrier of j."""
        return _seen_outward(self._rotation(j), self._R(j) if j == k else self.span(self._links[j].parent, k))

    @_once
    def first_moment(self, j: int) -> Vector3:
        """First moment of mass of subsystem j about O_j, in link j. [T (4) with the axes of link j for xi]"""
        m = self._static[j]
        for k in self._children[j]:
            m = m + _seen_inward(self._rotation(k), self.first_moment(k))
        return m

    @_once
    def Jo(self, i: int) -> Scalar:
        """J_i^o [T (3)]."""
        return total(*(_ring(self._mass[k], self._R(k), self.first_moment(k), self.span(k, k), self.Jo(k))
                       for k in self._children[i]))  # fmt: skip

    @_once
    def load(self, j: int, i: int) -> Vector3:
        """The vector, in link j, for which q_j . load(j, i) is J_ji^s - sum over n_j of (2).

        The sum over the links carried by j is accumulated link by link, inwards.
        """
        whole = _spin(self._own[j].inertia.inertia, self.axis(j, i))
        for k in self._children[j]:
            whole = whole + _carried_load(
                self._rotation(k), self._R(k), self._mass[k], self.first_moment(k), self.axis(j, i), self.axis(k, i),
                self.load(k, i),
            )  # fmt: skip
        return whole

    @_once
    def H(self, j: int, i: int) -> Scalar:
        """Inertial coefficient H_ji, i = j or a carrier of j."""
        if i != j:
            k = next(k for k in self._children[i] if k in self._carriers[j])
            if self._parallel(k):
                return _parallel_step(
                    self.H(j, k), self.axis(j, i), self.axis(j, j), self.first_moment(j), self.span(j, k)
                )
            path = [k for k in self._carriers[j] if i in self._carriers[k] and k != i]
            spans = tuple(self.span(j, k) for k in sorted(path))
            return _general(self.axis(j, j), self.axis(j, i), self.load(j, i), self.Jo(j), self.first_moment(j), spans)
        carried = self._children[i]
        if carried and all(self._parallel(k) for k in carried):
            H = _axial(self._own[i].inertia.inertia, self.axis(i, i))
            for k in carried:
                axes = self.axis(i, i), self.axis(k, k)
                H += _parallel_link(
                    self.H(k, k), self._mass[k], self._R(k), *axes, self.first_moment(k), self.span(k, k)
                )
            return H
        return _general(self.axis(i, i), self.axis(i, i), self.load(i, i), self.Jo(i), self.first_moment(i), ())

    @_once
    def _parallel(self, k: int) -> bool:
        """Whether q_k is structurally equal to the axis of the base; true of fixed links, which rotate with theirs."""
        if not self._links[k].joint.nv:
            return True
        own = self._own[k].fixed.rotation @ self.axis(k, k)
        base = self.axis(self._links[k].parent, self._links[k].parent)
        return all(is_number(a) and is_number(b) and a == b for a, b in zip(own, base, strict=True))


@kernel
def _seen_outward(R: Matrix3, a: Vector3) -> Vector3:
    return R.T @ a


@kernel
def _seen_inward(R: Matrix3, a: Vector3) -> Vector3:
    return R @ a


@kernel
def _spin(I: Symmetric3, a: Vector3) -> Vector3:
    return I @ a


@kernel
def _ring(mass: Scalar, R: Vector3, m: Vector3, span: Vector3, Jo: Scalar) -> Scalar:
    """m_k L_k² + 2 L_k m_kk^e + J_k^o [T (3)]."""
    return mass * (R @ R) + 2 * (m @ span) + Jo


@kernel
def _carried_load(
    turn: Matrix3, R: Vector3, mass: Scalar, m: Vector3, q_base: Vector3, q: Vector3, load: Vector3
) -> Vector3:
    """Share of a carried link k and its descendants: -L_k [e_k (m_k L_k e_ki^q + m_ki^q) + m_k e_ki^q]."""
    e = R @ q_base
    return turn @ (load - m * e) - R * (mass * e + m @ q)


@kernel
def _general(q_j: Vector3, q_i: Vector3, load: Vector3, Jo: Scalar, m: Vector3, spans: tuple[Vector3, ...]) -> Scalar:
    """[T (2)], or (5) if there are no spans."""
    whole = q_j @ load
    if not spans:
        return whole + Jo * (q_j @ q_i)
    R = spans[0]
    for span in spans[1:]:
        R = R + span
    return whole + q_j @ q_i * (Jo + m @ R) - m @ q_i * (q_j @ R)


@kernel
def _parallel_step(H: Scalar, q_i: Vector3, q_j: Vector3, m: Vector3, span: Vector3) -> Scalar:
    """[T (7)], or (11) if the spans are normal to the axes."""
    return H + q_j @ q_i * (m @ span) - m @ q_i * (q_j @ span)


@kernel
def _axial(I: Symmetric3, q: Vector3) -> Scalar:
    return q @ (I @ q)


@kernel
def _parallel_link(
    H: Scalar, mass: Scalar, R: Vector3, q_base: Vector3, q: Vector3, m: Vector3, span: Vector3
) -> Scalar:
    """A term of the sum of [T (8)], with its part of I_i^d; or of (10) if R is normal to q."""
    e = R @ q_base
    own = mass * (R @ R - e * e)
    return H + (own + 2 * (m @ span - e * (m @ q)))


def _in_world_axes(state: State) -> Any:
    """A of a rolled tree: all vectors are in world axes, and sums are products with the matrices of the tree."""
    tree, s = state.tree, state.tree.structure
    n = len(s.links)
    reach = np.eye(n)  # [j, k] = 1: link j is link k or carries it
    for k, link in reversed(list(enumerate(s.links))):
        if link.parent >= 0:
            reach[link.parent] = np.maximum(reach[link.parent], reach[k])
    parent = np.array([link.parent for link in s.links])
    next_out = np.asarray(parent[None, :] == np.arange(n)[:, None], float)

    def table(parts: list[list[Scalar]]) -> Any:
        return jnp.stack([tree.vector(tree.flat([[p[i]] for p in parts])) for i in range(len(parts[0]))], axis=1)

    placed = list(zip(tree.links, state.motions, world_placements(tree, state.motions), strict=True))
    pole = table([list(W.position) for _, _, W in placed])
    turn = table([list(W.rotation) for _, _, W in placed]).reshape(n, 3, 3)
    axis = table([list(m.S[0].angular) if m.S else [0, 0, 0] for _, m, _ in placed])
    mass = table([[link.inertia.mass] for link, _, _ in placed])
    first = table([list(link.inertia.moment) for link, _, _ in placed])
    second = table([list(link.inertia.inertia.full()) for link, _, _ in placed]).reshape(n, 3, 3)

    C, N = jnp.asarray(reach, tree.dtype), jnp.asarray(reach - np.eye(n), tree.dtype)
    q, first = jnp.einsum("kab,kb->ka", turn, axis), jnp.einsum("kab,kb->ka", turn, first)
    own = jnp.einsum("kab,kbc,kdc->kad", turn, second, turn)
    R = jnp.where(jnp.asarray(parent >= 0)[:, None], pole - pole[np.maximum(parent, 0)], 0.0)
    M = C @ mass
    m = C @ (first + jnp.asarray(next_out, tree.dtype) @ (M * R))
    ring = N @ (M[:, 0] * (R * R).sum(axis=1) + 2 * (R * m).sum(axis=1))
    dyad = M[:, :, None] * R[:, :, None] * R[:, None, :] + R[:, :, None] * m[:, None, :] + m[:, :, None] * R[:, None, :]
    K = jnp.einsum("jk,kab->jab", C, own) - jnp.einsum("jk,kab->jab", N, dyad)
    K = K + ring[:, None, None] * jnp.eye(3, dtype=tree.dtype)
    # (2) with the path's sum of L_k e_k = O_j - O_i, as q_i . (K_j q_j + (O_j - O_i) x (q_j x m_j))
    twist = jnp.cross(q, m)
    H = (jnp.einsum("jab,jb->ja", K, q) + jnp.cross(pole, twist)) @ q.T - twist @ jnp.cross(q, pole).T
    hinged = np.array([i for i, link in enumerate(s.links) if link.joint.nv])
    related = reach[np.ix_(hinged, hinged)].T > 0  # [j, i]: i is j or carries it
    lower = jnp.where(jnp.asarray(related), H[np.ix_(hinged, hinged)], 0.0)
    return lower + jnp.tril(lower, -1).T
