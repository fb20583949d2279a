"""Force along the line between two points, given by user-defined functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.linear_spring import Line
from jaxmbs.model.functions import WithParameters, check_arguments
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

LENGTH, RATE = "length", "rate"


@element
class LineForce(Line, WithParameters):
    """A user-defined force along the line between two points: of a nonlinear spring or damper, for instance.

    The pull on both ends is the derivative of energy(length), plus pull(length, rate); a positive pull draws them together.
    The first counts as stored energy, the second as power; either may be left out. A function with an argument
    `parameters` gets the numbers of that field by name. The pull must not jump. If it has corners, pass its switching
    surfaces: functions (length, rate) -> one number, which change sign there. At zero length the line has no direction:
    the force is zero there.

    >>> def stored(length, parameters):  # a spring that hardens
    ...     stretch = length - 0.5
    ...     return 0.5 * parameters["k"] * stretch**2 + 0.25 * parameters["k3"] * stretch**4
    >>> mech = mbs.library.double_pendulum()
    >>> strut = mbs.LineForce("lower", "world", (0, 0, -1), (0, 0, 1), energy=stored, parameters={"k": 100.0, "k3": 5.0})
    >>> mech.add_force("strut", strut)
    >>> print(f"{mbs.energy(mbs.set(mech.build(), {'strut.k3': 0.0}), [0.0, 0.0], [0.0, 0.0])[1]:.1f}")
    283.1
    """

    trials: ClassVar[int] = 24
    pull: Callable[..., Any] | None = field(
        Kind.FUNCTION, "", "pull(length [m], rate [m/s]) in N, written with jax.numpy", default=None, kw_only=True
    )
    energy: Callable[..., Any] | None = field(
        Kind.FUNCTION, "", "energy(length [m]) in J, written with jax.numpy", default=None, kw_only=True
    )
    surfaces: Sequence[Callable[..., Any]] = field(
        Kind.FUNCTIONS,
        "",
        "as pull, one number each: the force has a corner where it changes its sign",
        default=(),
        kw_only=True,
    )

    def __post_init__(self) -> None:
        if self.pull is None and self.energy is None:
            raise ModelError("LineForce: both functions are missing; pass pull(length, rate), energy(length), or both")
        if callable(self.surfaces):
            raise ModelError("LineForce: surfaces is a single function; pass a list of functions")
        object.__setattr__(self, "surfaces", tuple(self.surfaces))
        given = {"pull": self.pull, "energy": self.energy}
        given |= {f"surfaces[{k}]": g for k, g in enumerate(self.surfaces)}
        given = {name: fn for name, fn in given.items() if fn is not None}
        for name, fn in given.items():
            check_arguments(fn, f"LineForce: {name}", (LENGTH,) if fn is self.energy else (LENGTH, RATE))
        self.check_functions(f"LineForce: {' and '.join(given)}", *given.values())

    @property
    def cornered(self) -> bool:
        return bool(self.surfaces)

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        _, length, _, rate = self._line(p, scene)
        return tuple(
            (self.number(g, f"LineForce: surfaces[{k}]", p, length, rate), None) for k, g in enumerate(self.surfaces)
        )

    def _stored_pull(self, p: Numbers, length: Scalar) -> Scalar:
        """The derivative of the energy."""
        if self.energy is None:
            return ZERO
        return self.number(self.energy, "LineForce: energy", p, length, transform=jax.grad)

    def _further_pull(self, p: Numbers, length: Scalar, rate: Scalar) -> Scalar:
        return ZERO if self.pull is None else self.number(self.pull, "LineForce: pull", p, length, rate)

    def _apply(self, p: Numbers, scene: Scene, loads: Loads, further: bool) -> None:
        _, length, unit, rate = self._line(p, scene)
        pull = self._stored_pull(p, length) + (self._further_pull(p, length, rate) if further else ZERO)
        self._pull_along(loads, p, Vector3(*(pull * x for x in unit)))

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        self._apply(p, scene, loads, further=True)

    def apply_stored(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        self._apply(p, scene, loads, further=False)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        if self.energy is None:
            return ZERO
        return self.number(self.energy, "LineForce: energy", p, self._line(p, scene)[1])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        _, length, _, rate = self._line(p, scene)
        return -self._further_pull(p, length, rate) * rate
