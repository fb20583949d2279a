"""The older name of the clearance of a disc in a tube with open ends."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Described, Output
from jaxmbs.study.outputs.clearance import Clearance
from jaxmbs.study.outputs.shapes import Disc, Tube


@element
class Rim(Described):
    """A circle fixed to a body."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")
    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes")
    axis: Vector = field(Kind.AXIS, "", "axis, in body axes")
    radius: float = field(Kind.POSITIVE, "m", "radius")


@element
class Shell(Described):
    """The inner side of a cylinder fixed to a body."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")
    base: Vector = field(Kind.VECTOR, "m", "centre of its base, in body axes")
    axis: Vector = field(Kind.AXIS, "", "axis towards the open end, in body axes")
    radius: float = field(Kind.POSITIVE, "m", "inner radius")
    length: float = field(Kind.POSITIVE, "m", "from the base to the open end")


@element
class RimClearance(Output):
    """Deprecated: gives `Clearance(Disc(...), Tube(...), inside=True, open=True)`, the gap [m] between a rim and the inner
    side of a cylindrical shell with open ends. Files should name that too: type = "clearance", with a disc and a tube. The
    center of a tube is its middle, not its base."""

    rim: Rim = field(Kind.PART, "", "the rim", of=Rim)
    shell: Shell = field(Kind.PART, "", "the shell around it", of=Shell)
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def __new__(cls, rim: Rim, shell: Shell, **options: Any) -> Clearance:  # pyright: ignore[reportInconsistentConstructor]
        said = "RimClearance is deprecated; use Clearance(Disc(...), Tube(...), inside=True, open=True)"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        middle = np.asarray(shell.base) + np.asarray(shell.axis) * (shell.length / 2)
        tube = Tube(shell.body, tuple(middle.tolist()), axis=shell.axis, radius=shell.radius, length=shell.length)
        disc = Disc(rim.body, rim.center, axis=rim.axis, radius=rim.radius)
        return Clearance(disc, tube, inside=True, open=True, **options)
