"""One degree of freedom in the articulated-body algorithm: eliminated on the way inwards, released on the way outwards."""

from __future__ import annotations

from jaxmbs.spatial import ArticulatedInertia, Force, Motion, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar, vanishes, where


@components
class Freedom:
    """An eliminated degree of freedom: I S / D and (tau - S p) / D with D = S I S + armature [Y 3.174]."""

    scaled: Force
    rate: Scalar


@kernel
def _free(S: Motion, U: Force, p: Force, tau: Scalar, armature: Scalar) -> Freedom:
    inverse = 1.0 / (S @ U + armature)
    return Freedom(U * inverse, (tau - S @ p) * inverse)


@kernel
def _free_or_locked(
    S: Motion, U: Force, p: Force, tau: Scalar, armature: Scalar, lock: Scalar, prescribed: Scalar
) -> Freedom:
    """`_free` where `lock` is False; a locked one leaves I unreduced and accelerates as prescribed."""
    inverse = 1.0 / where(lock, 1.0, S @ U + armature)
    return Freedom(U * where(lock, 0.0, inverse), where(lock, prescribed, (tau - S @ p) * inverse))


def eliminated(
    I: ArticulatedInertia,
    p: Force,
    S: Motion,
    tau: Scalar,
    armature: Scalar,
    lock: Scalar | None = None,
    prescribed: Scalar = 0.0,
) -> tuple[ArticulatedInertia, Force, Freedom]:
    """(inertia, bias force, freedom along S) after the elimination of the motion along S: the first two are those of what
    moves along S as its carrier feels them. lock: None if the freedom is never locked."""
    U = I @ S
    if lock is not None:
        f = _free_or_locked(S, U, p, tau, armature, lock, prescribed)
        return I.minus_outer(U, f.scaled), p + U * f.rate, f
    f = _free(S, U, p, tau, armature)
    return I.minus_outer(U, f.scaled, S if vanishes(armature) else None), p + U * f.rate, f


@kernel
def released(S: Motion, A: Motion, f: Freedom) -> tuple[Motion, Scalar]:
    """(acceleration of the link, the motion along S included; acceleration along S) [Y 3.174, 3.172]. A: without it."""
    rate = f.rate - A @ f.scaled
    return A + S * rate, rate
