"""Force given by a user-defined function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.functions import ORDER, WithParameters, check_arguments, evaluated, names_of
from jaxmbs.model.given import Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, total


@element
class External(Force, WithParameters):
    """A user-defined force. fn(model, t, q, v) returns generalized forces (nv,), or, if a body is named,
    (torque, force) (6,) in world axes, acting at `point` in body axes. A function with an argument `parameters` gets the
    numbers of that field by name, with the values that they have in the model.

    If it is not smooth, pass its switching surfaces: functions (model, t, q, v) -> one number, which change sign where the
    force has a corner. Runs end a step there, so that the motion and its derivatives remain accurate. A force that jumps
    there takes one more argument, fn(model, t, q, v, beyond): a tuple with one boolean for each surface, true where its
    function is not negative; it does not change during a step.

    >>> mech = mbs.library.double_pendulum()
    >>> air = lambda model, t, q, v, parameters: -parameters["drag"] * v * jnp.abs(v)
    >>> mech.add_force("air", mbs.External(air, parameters={"drag": 0.1}))
    >>> print(mbs.bias_forces(mbs.set(mech.build(), {"air.drag": 0.2}), [0.0, 0.0], [0.0, 2.0]).round(3))
    [0.  0.8]
    >>> mech = mbs.library.double_pendulum()
    >>> def push(model, t, q, v, beyond):  # until the shoulder is beyond 0.2 rad
    ...     return jnp.where(beyond[0], 0.0, jnp.array([3.0, 0.0]))
    >>> mech.add_force("push", mbs.External(push, surfaces=(lambda model, t, q, v: q[0] - 0.2,)))
    >>> print(mbs.bias_forces(mech.build(), [0.0, 0.0], [0.0, 2.0])[0].round(3))
    -3.0
    """

    on_whole_state: ClassVar[bool] = True
    source: ClassVar[bool] = True
    trials: ClassVar[int] = 24  # enough for a few changes of sign
    fn: Callable[..., Any] = field(Kind.FUNCTION, "", "fn(model, t, q, v), written with jax.numpy")
    body: str | None = field(Kind.BODY, "", "body that it acts on, if any", default=None)
    point: Vector = field(Kind.VECTOR, "m", "where it acts, in body axes", default=(0.0, 0.0, 0.0))
    surfaces: Sequence[Callable[..., Any]] = field(
        Kind.FUNCTIONS, "", "as fn, one number each: the force has a corner where it changes its sign", default=()
    )

    def __post_init__(self) -> None:
        if callable(self.surfaces):
            raise ModelError("External: surfaces is a single function; pass a list of functions")
        object.__setattr__(self, "surfaces", tuple(self.surfaces))
        check_arguments(self.fn, "External: fn", (*ORDER, "beyond") if self._takes_sides else ORDER)
        self.check_functions("External: fn", self.fn, *self.surfaces)
        for k, surface in enumerate(self.surfaces):
            check_arguments(surface, f"External: surfaces[{k}]")

    @property
    def _takes_sides(self) -> bool:
        """Whether fn takes the sides of its surfaces as an argument."""
        return bool(self.surfaces) and "beyond" in names_of(self.fn)

    @property
    def cornered(self) -> bool:
        return bool(self.surfaces)

    def external_values(
        self, where: str, sides: Sequence[Scalar], numbers: Numbers, dtype: Any, *state: Any
    ) -> tuple[Scalar, ...]:
        """The values of fn and of the surfaces."""
        count = state[0].nv if self.body is None else 6
        fn, *given = (self.with_parameters(x, numbers, dtype) for x in (self.fn, *self.surfaces))
        surfaces = [evaluated(g, f"{where}: surfaces[{k}]", (), dtype, *state) for k, g in enumerate(given)]
        if self._takes_sides:
            state = (*state, tuple(sides) or tuple(g >= 0 for g in surfaces))
        return *evaluated(fn, f"{where}: fn", (count,), dtype, *state), *surfaces

    def _force(self, scene: Scene) -> Sequence[Scalar]:
        return scene.external[: len(scene.all_rates) if self.body is None else 6]

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        return tuple((g, None) for g in scene.external[len(self._force(scene)) :])

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        values = self._force(scene)
        if self.body is None:
            loads.generalized(values)
            return
        loads.moment(self.body, Vector3.of(values[:3]))
        loads.force(self.body, Vector3.of(values[3:]), p["point"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        values = self._force(scene)
        if self.body is None:
            return total(*(f * v for f, v in zip(values, scene.all_rates, strict=True)))
        moment, force = Vector3.of(values[:3]), Vector3.of(values[3:])
        return moment @ scene.angular(self.body) + force @ scene.velocity(self.body, p["point"])
