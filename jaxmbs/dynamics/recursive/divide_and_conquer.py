"""Forward dynamics of long chains in logarithmic depth, for devices with thousands of cores [Featherstone 1999,
A divide-and-conquer articulated-body algorithm for parallel O(log n) calculation of rigid-body dynamics].

An assembly is a part of the chain that interacts with the rest at its first and its last link only. The accelerations
of these two links depend linearly on the forces on them, and two neighbouring assemblies join into one of the same
kind. Prefix and suffix sums along the chain (of placements, assemblies and maps of acceleration) take log2(n)
iterations of one loop, so that compile time does not depend on the length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.forest import rows_of
from jaxmbs.dynamics.state.kinematics import LinkMotion, moved, remaining
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.spatial import Force, Motion, RigidInertia, Transform, Vector3, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.factorization import Matrix, Vector, expand, factorize, inverse, product, reduce
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, total, vanishes

LONG = 100  # number of degrees of freedom from which a GPU uses this method; not measured yet

T = TypeVar("T")


@components
class Placed:
    """Placement of a link's frame in another link's frame, and its velocity relative to that frame, in its own axes."""

    X: Transform
    V: Motion


@components
class Assembly:
    """Accelerations at the first and the last link: P f1 + Q f2 + b1 and Qᵀ f1 + R f2 + b2.

    X (6, 6) takes motions of the link before the first one into the axes of the first one; S, c, tau, free (1, or 0
    where it is locked) belong to the joint between these two links.
    """

    P: Matrix
    Q: Matrix
    R: Matrix
    b1: Vector
    b2: Vector
    X: Matrix
    S: Vector
    c: Vector
    tau: Scalar
    free: Scalar


@components
class Passed:
    """Acceleration L a + l of a link, where a is the acceleration of the link before it."""

    L: Matrix
    l: Vector


def obstacle(model: Model) -> str | None:
    """Why this method cannot serve a model, or None."""
    values = model.values()
    for i, link in enumerate(model.structure.links):
        if link.parent != i - 1:
            return f"joint {link.name!r} begins a branch, but the method is for chains only"
        if link.joint.nv != 1 or link.joint.nq != 1:
            return f"joint {link.name!r} does not have exactly one degree of freedom"
        if not vanishes(values[f"{link.name}.armature"]):
            return f"joint {link.name!r} has armature, which the method does not support"
        mass, (xx, yy, zz, *_) = values[f"{link.body}.mass"], values[f"{link.body}.inertia"]
        if any(not isinstance(x, jax.Array) and x <= 0 for x in (mass, xx, yy, zz)):
            return f"body {link.body!r} has no mass or no inertia"
    return None


def preferred(model: Model) -> bool:
    """Whether this method is the better one: on a GPU, where a loop over the links leaves most of the device idle."""
    return jax.default_backend() == "gpu" and model.nv >= LONG and obstacle(model) is None


def forward_dynamics(state: State, tau: Any, prescribed: Any = None) -> Any:
    """Accelerations (nv,) of a chain of bodies with mass and inertia, from generalized forces tau (nv,) or None.

    The degrees of freedom that the state's mode locks accelerate as `prescribed` (None: zero).
    """
    tree, state = state.tree, state.moving(_motions(state))
    drives = state.with_elements(tree.split(tau, tree.structure.v_slices), 1)
    inertias = _chained(tree, [link.inertia for link in tree.links])
    motions = _chained(tree, [LinkMotion(m.X, m.S, m.V, m.c, ()) for m in state.motions])
    wrenches, taus = _chained(tree, state.wrenches), _chained(tree, [d[0] for d in drives])
    free, given = jnp.ones_like(taus), jnp.zeros_like(taus)
    if state.lock is not None:
        free = jnp.where(state.lock, 0.0, free)
        given = given if prescribed is None else jnp.where(state.lock, prescribed, given)
    whole = _sums(_joined, _single(inertias, motions, wrenches, taus, free, given), backwards=True)
    response = _response(whole)
    passed = _sums(_followed, _passed(whole, response), backwards=False)
    base = state.base_acceleration.scalars()
    a = _rates(response, _before(_accelerations(passed, base), base, tree.dtype)) + given
    return a if tree.rolled else list(a)


def _chained(tree: Tree, parts: Sequence[Any]) -> Any:
    """The results of all blocks as one pytree of arrays over all links."""
    n = len(tree.structure.links)
    return _spread(tree.gather(parts, range(n)), n, tree.dtype)


def _spread(part: Any, length: int, dtype: Any) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x, dtype), (length,)), part)


def _sums(joined: Callable[[T, T], T], items: T, backwards: bool) -> T:
    """For each position, all items up to it (backwards: from it on), combined by `joined` [Hillis, Steele].

    items: a pytree of arrays (n,).
    """
    n = jax.tree.leaves(items)[0].shape[0]
    place = jnp.arange(n)

    def iteration(k: Any, here: T) -> T:
        step = 1 << k
        other = place + step if backwards else place - step
        far = jax.tree.map(lambda x: x[jnp.clip(other, 0, n - 1)], here)
        both = joined(here, far) if backwards else joined(far, here)
        inside = (other < n) & (other >= 0)
        return jax.tree.map(lambda x, y: jnp.where(inside, x, y), both, here)

    return jax.lax.fori_loop(0, max(n - 1, 0).bit_length(), iteration, items)


# kinematics


def _motions(state: State) -> list[LinkMotion]:
    """Per block, the result of `kinematics.link_motions`, by prefix sums instead of a loop over the links."""
    tree = state.tree
    s = tree.structure
    rows = zip(tree.blocks, tree.links, tree.split(state.q, s.q_slices), tree.split(state.v, s.v_slices), strict=True)
    own = [moved(b.joint, link, q, v, state.t) for b, link, q, v in rows]
    chained = _chained(tree, [Placed(X, m.velocity) for X, m, _ in own])
    V = _sums(_placed, chained, backwards=False).V
    out = []
    for b, (X, m, rates) in zip(tree.blocks, own, strict=True):
        here = jax.tree.map(lambda x, b=b: rows_of(x, b.nodes) if b.rolled else x[b.nodes[0]], V)
        out.append(LinkMotion(X, m.S, here, remaining(here, m), rates))
    return out


@kernel
def _placed(a: Placed, b: Placed) -> Placed:
    return Placed(a.X @ b.X, b.X.motion_to_child(a.V) + b.V)


# matrices of scalars


@kernel
def _times(A: Matrix, B: Matrix) -> Matrix:
    columns = tuple(zip(*B, strict=True))
    return tuple(tuple(total(*(x * y for x, y in zip(row, c, strict=True))) for c in columns) for row in A)


@kernel
def _times_transposed(A: Matrix, B: Matrix) -> Matrix:
    """A Bᵀ."""
    return tuple(tuple(total(*(x * y for x, y in zip(row, c, strict=True))) for c in B) for row in A)


@kernel
def _plus(A: Matrix, B: Matrix) -> Matrix:
    return tuple(tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in zip(A, B, strict=True))


@kernel
def _minus(A: Matrix, B: Matrix) -> Matrix:
    return tuple(tuple(x - y for x, y in zip(a, b, strict=True)) for a, b in zip(A, B, strict=True))


def _transposed(A: Matrix) -> Matrix:
    return tuple(zip(*A, strict=True))


_UNITS = tuple(tuple(ONE if i == k else ZERO for i in range(6)) for k in range(6))


def _motion(x: Vector) -> Motion:
    return Motion(Vector3.of(list(x[:3])), Vector3.of(list(x[3:])))


@kernel
def _matrix(inertia: RigidInertia) -> Matrix:
    return tuple((inertia @ _motion(e)).scalars() for e in _UNITS)


@kernel
def _to_child(X: Transform) -> Matrix:
    return _transposed(tuple(X.motion_to_child(_motion(e)).scalars() for e in _UNITS))


# assemblies


def _single(inertia: RigidInertia, m: LinkMotion, applied: Force, tau: Scalar, free: Scalar, given: Scalar) -> Assembly:
    """The assembly of a single link; a locked degree of freedom accelerates as given."""
    P = inverse(_matrix(inertia))
    b = product(P, _net_force(inertia, m, applied))
    X = _to_child(m.X)
    S, c = m.S[0].scalars(), (m.c + m.S[0] * given).scalars()
    item = Assembly(P, P, P, b, b, X, S, c, tau, free)
    like = jnp.asarray(tau)
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x, like.dtype), like.shape), item)


@kernel
def _net_force(inertia: RigidInertia, m: LinkMotion, applied: Force) -> Vector:
    return (applied - m.V.cross_force(inertia @ m.V)).scalars()


@kernel
def _joint_response(inverse: Matrix, S: Vector, free: Scalar) -> tuple[Vector, Matrix]:
    """(w, W): the joint's force is W g + w tau, where g is the difference of accelerations without that force."""
    z = tuple(total(*(a * b for a, b in zip(row, S, strict=True))) for row in inverse)
    d = free / total(*(a * b for a, b in zip(z, S, strict=True)))
    w = tuple(x * d for x in z)
    W = tuple(tuple(x - z[i] * w[j] for j, x in enumerate(row)) for i, row in enumerate(inverse))
    return w, W


@kernel
def _joint_force(w: Vector, W: Matrix, tau: Scalar, before: Vector, c: Vector, after: Vector) -> Vector:
    g = tuple(x + y - z for x, y, z in zip(before, c, after, strict=True))
    return tuple(total(*(a * b for a, b in zip(row, g, strict=True))) + x * tau for x, row in zip(w, W, strict=True))


def _joined(a: Assembly, b: Assembly) -> Assembly:
    """The assembly of a followed by b, joined by the joint before b."""
    X = b.X
    K = _plus(b.P, _times_transposed(_times(X, a.R), X))
    w, W = _joint_response(inverse(K), b.S, b.free)
    force = _joint_force(w, W, b.tau, product(X, a.b2), b.c, b.b1)
    Y = _times_transposed(a.Q, X)
    P, R = _times(Y, W), _times(_transposed(b.Q), W)
    return Assembly(
        _minus(a.P, _times_transposed(P, Y)),
        _times(P, b.Q),
        _minus(b.R, _times(R, b.Q)),
        tuple(x - y for x, y in zip(a.b1, product(Y, force), strict=True)),
        tuple(x + y for x, y in zip(b.b2, product(_transposed(b.Q), force), strict=True)),
        a.X, a.S, a.c, a.tau, a.free,
    )  # fmt: skip


# accelerations outwards


@kernel
def _step(
    z: Vector, inverse: Scalar, b1: Vector, X: Matrix, S: Vector, c: Vector, tau: Scalar
) -> tuple[Vector, Scalar]:
    """(k, r): the joint accelerates with r - k . a when the link before it accelerates with a.

    z = P⁻¹ S and inverse = 1 / (S . z), with P and b1 of the joint's link and all later ones.
    """
    k = tuple(inverse * total(*(z[i] * X[i][j] for i in range(6))) for j in range(6))
    lacking = total(*(z[i] * (c[i] - b1[i]) for i in range(6)))
    return k, inverse * (tau - lacking)


def _response(a: Assembly) -> tuple[Vector, Scalar]:
    U, d = factorize(a.P)
    z = expand(U, d, reduce(U, a.S))
    return _step(z, a.free / total(*(x * y for x, y in zip(z, a.S, strict=True))), a.b1, a.X, a.S, a.c, a.tau)


def _passed(whole: Assembly, response: tuple[Vector, Scalar]) -> Passed:
    """Per link, the map from the acceleration of the link before to its own, with all later links attached.

    whole: per link, the assembly of it and all later links; response: the result (k, r) of `_step` for each.
    """
    k, r = response
    L = tuple(tuple(x - s * k[j] for j, x in enumerate(row)) for s, row in zip(whole.S, whole.X, strict=True))
    return Passed(L, tuple(c + s * r for c, s in zip(whole.c, whole.S, strict=True)))


def _followed(a: Passed, b: Passed) -> Passed:
    return Passed(_times(b.L, a.L), tuple(x + y for x, y in zip(product(b.L, a.l), b.l, strict=True)))


def _accelerations(passed: Passed, base: Vector) -> Vector:
    return tuple(x + y for x, y in zip(product(passed.L, base), passed.l, strict=True))


def _before(accelerations: Vector, base: Vector, dtype: Any) -> Vector:
    """The acceleration of the link before each link; that of the base for the first."""
    return tuple(
        jnp.concatenate([jnp.asarray(b, dtype)[None], a[:-1]]) for a, b in zip(accelerations, base, strict=True)
    )


def _rates(response: tuple[Vector, Scalar], before: Vector) -> jax.Array:
    k, r = response
    return r - total(*(x * y for x, y in zip(k, before, strict=True)))
