"""What the multipliers of every constraint act on: bodies, or the rates of joints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constraints import Constraints, row_counts
from jaxmbs.dynamics.kinematics import world_placements
from jaxmbs.dynamics.state import State
from jaxmbs.model.constraints import Constraint, Row, cuts
from jaxmbs.model.structure import WORLD
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Force, Transform, kernel


class Acting(NamedTuple):
    """matrices: per node "body:<name>" (rows, 6) or "rate:<joint>" (rows, nv of the joint), the velocities that the
    rows of a constraint hold per flow of the node; on_bodies: which of the two."""

    matrices: dict[str, jax.Array]
    on_bodies: bool


def acting(state: State, found: Constraints) -> Iterator[Acting]:
    """Per constraint, in the order of model.constraint_names; zero where it is switched off."""
    s, start = state.tree.structure, 0
    wrenches = _Wrenches(state)
    elements: list[Any] = [*s.loops, *s.constraints]
    for k, (x, count) in enumerate(zip(elements, row_counts(state), strict=True)):
        if k < len(s.loops):
            out = Acting(wrenches.of_cut(x), True)
        elif isinstance(x.element, Constraint):
            out = Acting(wrenches.of_element(x.name, x.element), True)
        else:
            rows = [state.tree.vector(list(row)) for row in found.J[start : start + count]]
            J = jnp.stack(rows) if rows else jnp.zeros((0, s.nv), state.tree.dtype)
            parts = zip(s.links, s.v_slices, strict=True)
            out = Acting({f"rate:{link.name}": J[:, p] for link, p in parts if link.joint.nv}, False)
        start += count
        if state.mode is not None:
            on = state.mode.constraint[k]
            out = Acting({n: jnp.where(on, x, 0.0) for n, x in out.matrices.items()}, out.on_bodies)
        yield out


@kernel
def _of_rows(rows: tuple[Row, ...], b_in_link: Transform) -> tuple[Force, ...]:
    return tuple(b_in_link.force_to_parent(row.wrench) for row in rows)


@kernel
def _relative(a: Transform, b: Transform) -> Transform:
    return a.inverse() @ b


@kernel
def _joint_rows(joint: Any, numbers: Any, X: Transform) -> tuple[Row, ...]:
    return cuts.rows(joint, numbers, X, ZERO_MOTION)


@kernel
def _element_rows(element: Constraint, numbers: Any, X: Transform) -> tuple[Row, ...]:
    return element.rows(numbers, X, ZERO_MOTION)


class _Wrenches:
    """Wrenches per unit multiplier, in the axes of the links."""

    def __init__(self, state: State):
        self.tree = state.tree
        self.placements = self.tree.per_link(world_placements(self.tree, state.motions))

    def of_cut(self, loop: Any) -> dict[str, jax.Array]:
        values = self.tree.values
        poses = [
            Transform(values[f"{loop.name}.{p}.rotation"], values[f"{loop.name}.{p}.position"])
            for p in ("pose_a", "pose_b")
        ]
        (a, W_a), (b, W_b) = (
            self._frame(body, pose) for body, pose in zip((loop.body_a, loop.body_b), poses, strict=True)
        )
        X = _relative(W_a, W_b)
        rows = _joint_rows(loop.joint, values.of(loop.name, loop.joint.numbers), X)
        kept = tuple(rows[k] for k in loop.kept)
        out = {}
        if loop.body_b != WORLD:
            out[f"body:{loop.body_b}"] = self._matrix(_of_rows(kept, b))
        if loop.body_a != WORLD:  # the opposite wrench, at the place of frame b
            out[f"body:{loop.body_a}"] = -self._matrix(_of_rows(kept, _placed(a, X)))
        return out

    def of_element(self, name: str, element: Constraint) -> dict[str, jax.Array]:
        body = getattr(element, element.bodies[0])
        in_link, W = self._frame(body, IDENTITY)
        rows = _element_rows(element, self.tree.values.of(name, element.numbers), W)
        return {f"body:{body}": self._matrix(_of_rows(rows, in_link))}

    def _frame(self, body: str, pose: Transform) -> tuple[Transform, Transform]:
        """The pose in the body's link and in the world."""
        i = self.tree.structure.find_body(body)
        if i < 0:
            return pose, pose
        in_link = self.tree.body_in_link[i] @ pose
        return in_link, _placed(self.placements[i], in_link)

    def _matrix(self, wrenches: tuple[Force, ...]) -> jax.Array:
        rows = [self.tree.vector(list(w.scalars())) for w in wrenches]
        return jnp.stack(rows) if rows else jnp.zeros((0, 6), self.tree.dtype)


@kernel
def _placed(W: Transform, X: Transform) -> Transform:
    return W @ X
