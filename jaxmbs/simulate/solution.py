"""The results of a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model import Mode, Model
from jaxmbs.model.given import AnyShape, GeneralizedForces, Law, Number
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.shapes import Bool, Float, Int
from jaxmbs.simulate.between import modes_at, states_at
from jaxmbs.simulate.dataset import dataset
from jaxmbs.simulate.log import Events
from jaxmbs.simulate.momenta import momentum_error
from jaxmbs.simulate.status import Status, message

if TYPE_CHECKING:
    import xarray

    from jaxmbs.simulate.steppers import Stepper


class Steps(NamedTuple):
    """Numbers of steps of one instance, int32: taken (including those that events end) and, with a tolerance, refused.

    >>> model = mbs.library.double_pendulum().build()
    >>> int(mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01).steps.taken)
    20
    """

    taken: Int[jax.Array, ""]
    refused: Int[jax.Array, ""]

    @staticmethod
    def of(taken: Any) -> Steps:
        """The counts of a fixed grid: all steps taken, none refused."""
        return Steps(jnp.asarray(taken, jnp.int32), jnp.zeros((), jnp.int32))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Solution:
    """Motion of one instance; under vmap every field has the batch axis first.

    t (rows,) [s]; q (rows, nq); v (rows, nv); mode: the mode in force at the end (None: nothing locked or switched off);
    events: `Events`, those of the model in the order in which they happened; status: int32, a `Status`; violated
    (constraints,): which of model.constraint_names are violated by the initial state, or by the state at an event that
    switches them on (see `message`); energy_error (rows,) [J]: energy - initial energy - work of all non-conservative
    effects (tau, thrusters, dampers, drives, impacts and switches of events); energy_exchanged [J]: the energy that
    changed between kinetic and potential, plus the work, for comparison with the error; constraint_error (rows,):
    largest residual of the constraints [m, rad, m/s, rad/s]; conditioning (rows,): how far the constraint rows were from
    depending on one another, the least value since the previous row: the smallest pivot of J A⁻¹ Jᵀ divided by its
    largest diagonal entry, without the rows that depend on others to within rounding; folded: final carry of `fold`;
    steps: `Steps`, those of the grid or, with a tolerance, those that the run took; states: {name: (rows, ...)} of the
    elements that have memory ("motor.propellant").

    A conditioning near 0 means that the mechanism passed a configuration where its motion could branch, such as a
    parallelogram lying flat, at a distance of the order of the square root of this value, and went on in the direction of
    its velocity. The status is SINGULAR if accelerations lost more than about two thirds of the digits of their dtype.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01)
    <Solution: 21 rows, nq = 2, nv = 2, t = 0 to 0.2 s, OK>
    """

    t: Float[jax.Array, " rows"]
    q: Float[jax.Array, "rows nq"]
    v: Float[jax.Array, "rows nv"]
    mode: Mode | None
    events: Events
    status: Int[jax.Array, ""]
    energy_error: Float[jax.Array, " rows"]
    energy_exchanged: Float[jax.Array, ""]
    constraint_error: Float[jax.Array, " rows"]
    conditioning: Float[jax.Array, " rows"]
    folded: Any
    steps: Steps
    violated: Bool[jax.Array, " constraints"] | tuple[()] = ()
    states: dict[str, Any] = field(default_factory=dict)

    def at(
        self,
        model: Model,
        t: AnyShape,
        tau: GeneralizedForces | Law | None = None,
        *,
        mode: Mode | None = None,
        held: Iterable[str] = (),
        method: str | Stepper = "rk4",
        baumgarte: Number | None = None,
        before: bool = False,
    ) -> tuple[Float[jax.Array, "... nq"], Float[jax.Array, "... nv"]]:
        """The states (q, v) at any times t (...) [s], with shapes (..., nq) and (..., nv), as accurate as the rows.

        A shorter step of the same method leads from the preceding row to t, through the events in between, so that the
        order of accuracy, the manifold and the jumps are those of the run. Pass the same arguments as to the run:
        model, tau, mode, held, method, baumgarte; one instance (map it for a batch). The result is NaN beyond the ends
        of the run, and at all times if it has the status NOT_FINITE, UNFINISHED or STEP_UNDERFLOW. At an event it
        is the state just after it or, with `before`, just before it; the difference is the jump. After an event that
        finishes the run it is the final state. Switching surfaces within the step, such as the end of a stroke, are not
        located. Raises ModelError for a solution without a row for every step.

        >>> model = mbs.library.double_pendulum().build()
        >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01)
        >>> print(run.at(model, 0.123)[0].round(3))
        [0.465 0.034]
        """
        return states_at(self, model, t, tau, mode, held, method, baumgarte, before)

    def mode_at(self, model: Model, t: AnyShape, *, mode: Mode | None = None, held: Iterable[str] = ()) -> Mode:
        """What is locked and switched on at any times t (...) [s]: a Mode, axes of t first; at an event, just after it.

        Pass the same arguments as to the run: model, mode, held; one instance (map it for a batch).

        >>> mech = mbs.library.double_pendulum()
        >>> mech.add_event("latch", when=mbs.Time(0.1), then=mbs.Lock("elbow"))
        >>> model = mech.build()
        >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01)
        >>> run.mode_at(model, [0.05, 0.15]).lock[:, 1].tolist()
        [False, True]
        """
        return modes_at(self, model, t, mode, held)

    def message(self, model: Model) -> str:
        """The status in words, with the names of the constraints that are violated at the start or when switched on.

        model: the simulated model; one instance.

        >>> model = mbs.library.crank_slider().build()
        >>> q, v, *_ = mbs.assemble(model, [0.5, -0.7, 0.0], fixed="bearing")
        >>> print(mbs.simulate(model, q, v, t_end=0.1).message(model))
        completed
        >>> print(mbs.simulate(model, q, [1.0, 0.0, 0.0], t_end=0.1).message(model))
        the initial state violates 'pin' in position or in velocity; find a state with assemble or impact
        """
        return message(int(self.status), model, np.asarray(self.violated))

    def momentum_error(self, model: Model) -> tuple[Float[jax.Array, "rows 3"], Float[jax.Array, "rows 3"]]:
        """The change of the momentum of a free-floating mechanism, which should be zero.

        model: the simulated model; one instance (map it for a batch). Returns (angular (rows, 3) about the common
        centre of mass [N m s], linear (rows, 3) [N s]), in world axes: the momentum minus its initial value and minus
        the impulse of uniform gravity. Generalized forces `tau` on the degrees of freedom of a floating base are
        external and appear here. Raises ModelError with their names if joints, events, elements or constraints connect
        the mechanism to the world, and if mass leaves with elements such as a Slosh (traced: NaN from then on).

        >>> two = mbs.Mechanism("two masses", gravity=(0, 0, -9.81))
        >>> for name in ("a", "b"):
        ...     two.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        ...     two.add_joint(f"flight_{name}", mbs.Free(), "world", name)
        >>> two.add_force("coil", mbs.LinearSpring("a", "b", stiffness=100.0, rest_length=0.5))
        >>> model = two.build()
        >>> q = model.neutral().at[0].set(0.4)
        >>> run = mbs.simulate(model, q, [0.0] * 12, t_end=0.2, dt=0.01)
        >>> bool(abs(run.momentum_error(model)[1]).max() < 1e-5)  # float32
        True
        """
        return momentum_error(self, model)

    def to_xarray(self, model: Model) -> xarray.Dataset:
        """The solution as an `xarray.Dataset` with names and SI units.

        model: the simulated model (of a batch, any instance). There is one variable per component of q and v
        ("hinge.angle", "hinge.angle_rate") over `time`, and the errors; `status`, with its meanings; `event`,
        `event_time`, `event_energy_lost` over `event_number`; `locked`, `acting`, `holding`: the mode at the end, by names.
        A batch has `sample` as its first dimension. Raises ModelError if xarray is not installed or nq differs.

        >>> model = mbs.library.double_pendulum().build()
        >>> data = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01).to_xarray(model)
        >>> data["elbow.angle_rate"].attrs["units"], data.sizes["time"]
        ('rad/s', 21)
        """
        return dataset(self, model)

    def __repr__(self) -> str:
        """Shape and outcome on one line, without the arrays."""
        *batch, rows, nq = getattr(self.q, "shape", (0, 0))
        said = f"{'x'.join(map(str, batch))} instances of " if batch else ""
        said += f"{rows} rows, nq = {nq}, nv = {getattr(self.v, 'shape', (0,))[-1]}"
        if is_traced(self.status) or not hasattr(self.status, "shape"):
            return f"<Solution: {said}>"
        found = Counter(np.ravel(self.status).tolist())
        outcome = ", ".join(f"{n} {Status(s).name}" if batch else Status(s).name for s, n in sorted(found.items()))
        return f"<Solution: {said}, t = {np.ravel(self.t)[0]:g} to {np.ravel(self.t)[-1]:g} s, {outcome}>"

    def _repr_html_(self) -> str:
        from jaxmbs.view.html import solution_html

        return solution_html(self)
