"""Inertia of a rigid body and of an articulated one."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmbs.spatial.boundary import kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.motions import Force, Motion, Transform
from jaxmbs.spatial.scalar import Scalar, is_number
from jaxmbs.spatial.vectors import Matrix3, Symmetric3, Vector3, skew


def _minus_skew_squared(v: Vector3, s: Scalar) -> Symmetric3:
    """-s skew(v) skew(v) = s (|v|² 1 - v vᵀ)."""
    u = v * s
    xx, yy, zz = u.x * v.x, u.y * v.y, u.z * v.z
    return Symmetric3(
        yy + zz, xx + zz, xx + yy,
        -(u.x * v.y), -(u.x * v.z), -(u.y * v.z),
    )  # fmt: skip


@components
class RigidInertia:
    """Mass, first moment of mass (mass times centre of mass) and inertia about the frame's origin."""

    mass: Scalar
    moment: Vector3
    inertia: Symmetric3

    @staticmethod
    def at_com(mass: Scalar, com: Vector3, inertia: Symmetric3) -> RigidInertia:
        """The inertia of a body that is given by its inertia about the centre of mass, along the frame's axes."""
        return RigidInertia(mass, com * mass, inertia + _minus_skew_squared(com, mass))

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.mass + other.mass, self.moment + other.moment, self.inertia + other.inertia)

    @kernel
    def __matmul__(self, m: Motion) -> Force:
        h = self.moment
        return Force(self.inertia @ m.angular + h.cross(m.linear), m.linear * self.mass - h.cross(m.angular))

    @kernel
    def turning(self, V: Motion) -> Force:
        """V ×* I V, the rate of change of the momentum of a body whose twist V is constant in its own axes.

        Without v × m v, which is zero but would leave the rounding error of a large number: bodies in orbit would begin to
        spin.
        """
        w, h = V.angular, self.moment
        u = w.cross(V.linear)
        return Force(w.cross(self.inertia @ w) + h.cross(u), u * self.mass + w.cross(w.cross(h)))

    @kernel
    def to_parent(self, X: Transform) -> RigidInertia:
        """The inertia of the same body in the parent frame."""
        h = X.rotation @ self.moment
        p = X.position
        # about the shifted origin: I + skew-symmetric cross terms of h and p, then the mass at p
        cross = Symmetric3(
            2 * (h.y * p.y + h.z * p.z),
            2 * (h.x * p.x + h.z * p.z),
            2 * (h.x * p.x + h.y * p.y),
            -(h.x * p.y + h.y * p.x),
            -(h.x * p.z + h.z * p.x),
            -(h.y * p.z + h.z * p.y),
        )
        inertia = self.inertia.rotated(X.rotation) + cross + _minus_skew_squared(p, self.mass)
        return RigidInertia(self.mass, h + p * self.mass, inertia)

    def articulated(self) -> ArticulatedInertia:
        m = self.mass
        return ArticulatedInertia(self.inertia, skew(self.moment), Symmetric3.diagonal(m, m, m))


ZERO_INERTIA = RigidInertia(0, Vector3(0, 0, 0), Symmetric3(0, 0, 0, 0, 0, 0))


@components
class ArticulatedInertia:
    """Symmetric 6x6 matrix [[A, B], [Bᵀ, C]] that maps a motion to a force."""

    A: Symmetric3
    B: Matrix3
    C: Symmetric3

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A + other.A, self.B + other.B, self.C + other.C)

    @kernel
    def __matmul__(self, m: Motion) -> Force:
        return Force(self.A @ m.angular + self.B @ m.linear, self.B.T @ m.angular + self.C @ m.linear)

    def to_parent(self, X: Transform) -> ArticulatedInertia:
        """The same inertia in the parent frame."""
        R, p = X.rotation, X.position
        A, C = self.A.rotated(R), self.C.rotated(R)
        B = R @ (self.B @ R.T)
        return _shifted(A, B, C, p)

    @kernel
    def minus_outer(self, U: Force, scaled: Force, S: Motion | None = None) -> ArticulatedInertia:
        """This inertia minus U scaledᵀ.

        With S, U = I S and scaled = U / (S . U), the result is the inertia that remains when the body can move along S
        without force [Y 3.176]; it maps S to zero. If S is a coordinate axis, its row and column are therefore
        structural zeros and are not computed.
        """
        u, w = list(U.scalars()), list(scaled.scalars())
        axis = None if S is None else _unit_index(S.scalars())
        a = _entries(self)
        out = {}
        for (i, j), value in a.items():
            out[i, j] = 0 if axis in (i, j) else value - u[i] * w[j]
        return _from_entries(out)

    def of_columns(self, columns: Sequence[Motion]) -> ArticulatedInertia:
        """Yᵀ I Y, with the matrix Y of these columns: the inertia against a motion (x_1 .. x_6) of something else, which
        moves this body by the sum of columns[k] x_k."""
        forces = [self @ y for y in columns]
        return _from_entries({(i, j): columns[i] @ forces[j] for i in range(6) for j in range(i, 6)})

    @kernel
    def softened(self, bias: Force, e: Motion, d: Scalar) -> tuple[ArticulatedInertia, Force]:
        """((I⁻¹ + d e eᵀ)⁻¹ with a coordinate axis e, the bias force): those that a carrier of this body feels if the body
        also accelerates relative to it, by d times the force along the axis."""
        axis = _unit_index(e.scalars())
        assert axis is not None
        a, p = _entries(self), list(bias.scalars())
        own = [a[min(i, axis), max(i, axis)] for i in range(6)]
        less = 1.0 / (1 + d * own[axis])
        share = d * less
        out = {(i, j): x * less if axis in (i, j) else x - own[i] * (own[j] * share) for (i, j), x in a.items()}
        forces = [x * less if i == axis else x - own[i] * (p[axis] * share) for i, x in enumerate(p)]
        return _from_entries(out), Force(Vector3(*forces[:3]), Vector3(*forces[3:]))


@kernel
def _shifted(A: Symmetric3, B: Matrix3, C: Symmetric3, p: Vector3) -> ArticulatedInertia:
    """The inertia about a new origin, from which the present origin lies at p."""
    rows = tuple(b + p.cross(c) for b, c in zip(B.T.rows(), C.full().rows(), strict=True))  # (B + [p] C)ᵀ, row by row
    moved = Matrix3.from_columns(*rows)
    # A - B [p] + [p] (B + [p] C)ᵀ is symmetric: only its six distinct entries are computed
    a, b, c = (row.cross(p) for row in B.rows())  # rows of B [p]
    d, e, f = (p.cross(row) for row in moved.rows())  # columns of [p] (B + [p] C)ᵀ
    change = Symmetric3(d.x - a.x, e.y - b.y, f.z - c.z, e.x - a.y, f.x - a.z, f.y - b.z)
    return ArticulatedInertia(A + change, moved, C)


def _unit_index(s: tuple[Scalar, ...]) -> int | None:
    """Index of the component that is 1 or -1 if all others are structural zeros, else None."""
    if not all(is_number(v) for v in s):
        return None
    ones = [i for i, v in enumerate(s) if v != 0]
    return ones[0] if len(ones) == 1 and abs(s[ones[0]]) == 1 else None


def _entries(I: ArticulatedInertia) -> dict[tuple[int, int], Scalar]:
    """Distinct entries by (row, column), row <= column."""
    A, B, C = I.A, tuple(I.B), I.C
    upper = ((0, 0, "xx"), (1, 1, "yy"), (2, 2, "zz"), (0, 1, "xy"), (0, 2, "xz"), (1, 2, "yz"))
    out = {(i, j): getattr(A, n) for i, j, n in upper}
    out |= {(i, 3 + j): B[3 * i + j] for i in range(3) for j in range(3)}
    return out | {(3 + i, 3 + j): getattr(C, n) for i, j, n in upper}


def _from_entries(e: dict[tuple[int, int], Scalar]) -> ArticulatedInertia:
    def symmetric(k: int) -> Symmetric3:
        return Symmetric3(e[k, k], e[k + 1, k + 1], e[k + 2, k + 2], e[k, k + 1], e[k, k + 2], e[k + 1, k + 2])

    return ArticulatedInertia(symmetric(0), Matrix3(*(e[i, 3 + j] for i in range(3) for j in range(3))), symmetric(3))
