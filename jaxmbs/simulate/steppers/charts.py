"""Coordinates in which a step is computed: those of the configuration, or local ones of the group of motions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import displaced
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode
from jaxmbs.model.joints import Joint
from jaxmbs.model.structure import Structure
from jaxmbs.simulate.manifold import normalised
from jaxmbs.simulate.steppers.base import Flow, Phase, arrays
from jaxmbs.spatial import kernel
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar

# coefficients of the series of x / (exp(x) - 1): Bernoulli numbers divided by factorials
INVERSE_DERIVATIVE = (1.0, -1 / 2, 1 / 12, 0.0, -1 / 720, 0.0, 1 / 30240, 0.0, -1 / 1209600, 0.0, 1 / 47900160)
MUNTHE_KAAS = INVERSE_DERIVATIVE[:7]  # the next nonzero term is of order nine in the step

Map = Callable[[Sequence[Scalar]], tuple[Scalar, ...]]


@dataclass(frozen=True)
class Ambient:
    """The coordinates q themselves. A quaternion of any length stands for q/|q|, and its rate does not change |q|, so
    that methods have their full order on the manifold; quaternions are normalised at the end of a step."""

    flow: Flow
    first: Phase
    mode: Mode | None

    @property
    def start(self) -> Phase:
        return self.first

    def field(self, phase: Phase, t: Scalar) -> tuple[Phase, State]:
        return self.flow.derivative(phase, t, self.mode)

    def end(self, phase: Phase) -> Phase:
        return phase._replace(q=normalised(self.flow.tree, phase.q))

    def error(self, phase: Phase, error: Phase) -> tuple[Any, Any, Any]:
        return error.q, error.v, error.states


@dataclass(frozen=True)
class Local:
    """Exponential coordinates theta (nv,) of the displacement from the first q [Munthe-Kaas 1998], components as in v.

    d theta/dt = v + [theta, v] / 2 + [theta, [theta, v]] / 12 - ...
    """

    flow: Flow
    first: Phase
    mode: Mode | None

    @property
    def start(self) -> Phase:
        none = jax.tree_util.tree_map(jnp.zeros_like, arrays(self.first.v, self.flow.tree.dtype))
        return self.first._replace(q=none)

    def field(self, phase: Phase, t: Scalar) -> tuple[Phase, State]:
        theta, tree = phase.q, self.flow.tree
        slope, state = self.flow.derivative(phase._replace(q=self.moved(theta)), t, self.mode)
        opposite = [tuple(-x for x in part) for part in tree.split(theta, tree.structure.v_slices)]
        return slope._replace(q=per_joint(tree, _rates, opposite, state.v)), state

    def moved(self, theta: Any) -> Any:
        return displaced(self.flow.tree, self.first[0], theta)

    def end(self, phase: Phase) -> Phase:
        return phase._replace(q=normalised(self.flow.tree, self.moved(phase.q)))

    def error(self, phase: Phase, error: Phase) -> tuple[Any, Any, Any]:
        without = jax.tree_util.tree_map(lambda x, e: x - e, phase.q, error.q)
        q, other = self.moved(phase.q), self.moved(without)
        return jax.tree_util.tree_map(lambda x, y: x - y, q, other), error.v, error.states


def no_group(structure: Structure) -> str | None:
    """Why displacements cannot be computed on the group of motions, in words: a joint's coordinates cannot simply be
    added, and it defines no `bracket` of their group. None if there is no such joint."""
    for link in structure.links:
        joint = link.joint
        if joint.nv and (joint.gives("moved") or joint.gives("rates")) and not joint.gives("bracket"):
            return (
                f"joint {link.name!r} ({joint.type_name}) does not define `bracket`, which this method needs; use "
                "another method"
            )
    return None


def per_joint(tree: Tree, fn: Any, by: Sequence[Sequence[Scalar]], v: Any) -> Any:
    """fn(joint, by, v) for every joint with a `bracket`, v for the others, in the layout of `Tree.flat`."""
    rows = zip(tree.blocks, by, tree.split(v, tree.structure.v_slices), strict=True)
    return tree.flat([fn(b.joint, tuple(x), tuple(y)) if b.joint.gives("bracket") else y for b, x, y in rows])


def series(coefficients: Sequence[float], by: Map, v: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The sum over k of coefficients[k] byᵏ(v): `by` is applied k times to v."""
    out = tuple(known(coefficients[-1]) * x for x in v)
    for c in reversed(coefficients[:-1]):
        out = tuple(known(c) * x + y for x, y in zip(v, by(out), strict=True))
    return out


@kernel
def _rates(joint: Joint, opposite: tuple[Scalar, ...], v: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return series(MUNTHE_KAAS, lambda y: joint.bracket(opposite, y), v)
