"""Evaluates the constraint rows of cut joints and constraint elements, in scalars of any kind: plain floats when a
mechanism is built, components and arrays at the states of a motion."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxmbs.model.constraints.functions import FunctionConstraint
from jaxmbs.model.frames import Frame, relative
from jaxmbs.model.joints.base import Joint, Numbers
from jaxmbs.model.rows import CoordinateRow, Row
from jaxmbs.model.structure import WORLD, ConstraintElement, LoopJoint, Structure
from jaxmbs.spatial import ZERO_MOTION, Force, Motion, Transform, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ZERO, known
from jaxmbs.spatial.scalar import Scalar, total


class Site(NamedTuple):
    """One constraint and what it acts on.

    formulas: the joint or the element, without the names of what it acts on; kept: indices of its rows; bodies: those of
    frames a and b, or () for an element between joints; poses: names of the poses of these frames in the bodies, or () if
    they are the frames of the bodies; links: the link at each end (-1: the world). A user-defined function has neither rows
    nor ends.
    """

    name: str
    formulas: Any
    kept: tuple[int, ...]
    bodies: tuple[str, ...]
    poses: tuple[str, ...]
    links: tuple[int, ...]

    @property
    def rows(self) -> int:
        return len(self.kept)

    @property
    def on_joints(self) -> bool:
        """Whether it acts on the coordinates of the joints of its links."""
        return not self.bodies

    @property
    def is_function(self) -> bool:
        return isinstance(self.formulas, FunctionConstraint)


@functools.lru_cache(maxsize=256)
def sites(s: Structure) -> tuple[Site, ...]:
    """All constraints, in the order of model.constraint_names."""
    return (*(_of_loop(s, x) for x in s.loops), *(_of_element(s, x) for x in s.constraints))


def _of_loop(s: Structure, x: LoopJoint) -> Site:
    bodies = (x.body_a, x.body_b)
    poses = (f"{x.name}.pose_a", f"{x.name}.pose_b")
    return Site(x.name, x.joint, x.kept, bodies, poses, tuple(s.find_body(b) for b in bodies))


def _of_element(s: Structure, x: ConstraintElement) -> Site:
    e = x.element
    if isinstance(e, FunctionConstraint):
        return Site(x.name, e, (), (), (), ())
    own, *carrier = (getattr(e, f) for f in e.bodies) if e.bodies else ("",)
    bodies = (*(carrier or (WORLD,)), own) if e.bodies else ()
    blank: dict[str, Any] = dict.fromkeys((*e.bodies, *e.named_joints), "")
    links = tuple(s.find_body(b) for b in bodies) or tuple(s.find_joint(j) for j in e.named_joints.values())
    return Site(x.name, dataclasses.replace(e, **blank), tuple(range(e.count)), bodies, (), links)


@components
class Rows:
    """The rows of one constraint, or of several with the same formulas.

    ends: their action per end and row, a Force on the link in link axes, or the coefficient of the joint's rate; drift:
    acceleration along the row at dv/dt = 0; rate: velocity along the row; residual: None for a nonholonomic row. wrenches,
    own: `Row.wrench` and `Row.rate` of rows between frames.
    """

    ends: tuple[tuple[Any, ...], ...]
    drift: tuple[Scalar, ...]
    rate: tuple[Scalar, ...]
    residual: tuple[Scalar | None, ...]
    wrenches: tuple[Force, ...] = ()
    own: tuple[Scalar, ...] = ()


@components
class Drifting:
    """A frame on a body, and its acceleration at dv/dt = 0, in its own axes."""

    frame: Frame
    drift: Motion


def fixed(in_link: Transform, placement: Transform) -> Drifting:
    """A frame at rest."""
    return Drifting(Frame(in_link, placement, ZERO_MOTION), ZERO_MOTION)


def between_frames(site: Site, p: Numbers, a: Drifting, b: Drifting, t: Scalar) -> Rows:
    """The rows of a cut joint, or of an element between bodies. p: its numbers by field."""
    X, V, drift = _relative(a, b)
    every = _every_row(site.formulas, p, X, V, t if isinstance(site.formulas, Joint) else ZERO)
    rows = [every[k] for k in site.kept]
    found = [_seen(row, X, V, drift, a.frame.in_link, b.frame.in_link) for row in rows]
    on_a, on_b, left, rate = (tuple(x[k] for x in found) for k in range(4))
    wrenches, own = tuple(row.wrench for row in rows), tuple(row.rate for row in rows)
    return Rows((on_a, on_b), left, rate, tuple(row.residual for row in rows), wrenches, own)


def every_row(formulas: Any, p: Numbers, X: Transform, V: Motion, t: Scalar) -> tuple[Row, ...]:
    """All rows of a joint, or of an element between bodies, for frame b placed at X in a, moving with V."""
    return formulas.rows(p, X, V, t) if isinstance(formulas, Joint) else formulas.rows(p, X, V)


_every_row = kernel(every_row)


def between_joints(site: Site, p: Numbers, q: Sequence[Scalar], v: Sequence[Scalar]) -> Rows:
    """The rows of an element between joints. q, v: coordinate and rate of each of them."""
    e = site.formulas
    fields = list(e.named_joints)
    rows = _coordinate_rows(e, p, dict(zip(fields, q, strict=True)), dict(zip(fields, v, strict=True)))
    ends = tuple(tuple(known(row.coefficients.get(f, ZERO)) for row in rows) for f in fields)
    rates = tuple(total(*(end[r] * x for end, x in zip(ends, v, strict=True))) for r in range(len(rows)))
    return Rows(ends, tuple(row.drift for row in rows), rates, tuple(row.residual for row in rows))


@kernel
def _relative(a: Drifting, b: Drifting) -> tuple[Transform, Motion, Motion]:
    """Placement, velocity and acceleration at dv/dt = 0 of b relative to a, in axes of b."""
    X, V, carried = relative(a.frame, b.frame)
    return X, V, b.drift + X.motion_to_child(a.drift) * -1 + V.cross(carried)


@kernel
def _coordinate_rows(element: Any, p: Numbers, q: dict[str, Scalar], v: dict[str, Scalar]) -> tuple[CoordinateRow, ...]:
    return element.coordinate_rows(p, q, v)


@kernel
def _seen(
    row: Row, X: Transform, V: Motion, drift: Motion, a: Transform, b: Transform
) -> tuple[Force, Force, Scalar, Scalar]:
    """(wrench on the link of a, on that of b, acceleration at dv/dt = 0, velocity along the row)."""
    on_a = a.force_to_parent(X.force_to_parent(-row.wrench))
    left = drift @ row.wrench + V @ row.turning + row.rate_change
    return on_a, b.force_to_parent(row.wrench), left, V @ row.wrench + row.rate
