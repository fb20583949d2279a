"""What a simulation returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
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
from jaxmbs.simulate.momenta import momentum_error
from jaxmbs.simulate.run import Events
from jaxmbs.simulate.status import Status, message

if TYPE_CHECKING:
    import xarray

    from jaxmbs.simulate.steppers import Stepper


class Steps(NamedTuple):
    """Numbers of steps of one instance, int32: taken, those cut short by events included, and, with a tolerance, refused.

    >>> model = mbs.library.double_pendulum().build()
    >>> int(mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01).steps.taken)
    20
    """

    taken: Int[jax.Array, ""]
    refused: Int[jax.Array, ""]

    @staticmethod
    def of(taken: int) -> Steps:
        """Of a fixed grid: so many taken."""
        return Steps(jnp.asarray(taken, jnp.int32), jnp.zeros((), jnp.int32))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Solution:
    """Motion of one instance; under vmap every field has the batch axis first.

    t (rows,) [s]; q (rows, nq); v (rows, nv); mode: the mode in force at the end (None: nothing locked or switched off);
    events: `Events`, those of the model in the order in which they happened; status: int32, a `Status`; violated
    (constraints,): which of model.constraint_names the initial state violates (see `message`); energy_error
    (rows,) [J]: energy - initial energy - work of all that is not conservative (tau, thrusters, dampers, drives, impacts
    and switches of events), and energy_exchanged [J], what moved between kinetic and potential energy, with the work, to
    compare it with; constraint_error (rows,): largest residual of the constraints [m, rad,
    m/s]; conditioning (rows,): smallest pivot of the constraints over the largest since the row before, without those that
    depend on others to rounding (near 0 the mechanism passed a configuration where it could branch, such as a
    parallelogram lying flat, at a distance of some square root of it, and kept the branch of its velocity; the status is
    SINGULAR where accelerations had fewer than some six digits); folded: final carry of `fold`; steps: `Steps`, those of the
    grid or, with a tolerance, what it took.

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
        """The states (q, v) at any times t (...) [s], (..., nq) and (..., nv), as exact as the rows.

        From the row before, a shorter step of the same method leads to t, by way of the events in between: order,
        manifold and jumps are those of the run. Give what it was given: model, tau, mode, held, method, baumgarte; one
        instance (map it for a batch). NaN beyond the ends of the run and where it stopped early. At an event: just after
        it, or just `before` it; the jump of an event is the difference. Ends of strokes and the like within the step are
        not located. Raises ModelError for a solution that kept less than a row of every step.

        >>> model = mbs.library.double_pendulum().build()
        >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01)
        >>> print(run.at(model, 0.123)[0].round(3))
        [0.465 0.034]
        """
        return states_at(self, model, t, tau, mode, held, method, baumgarte, before)

    def mode_at(self, model: Model, t: AnyShape, *, mode: Mode | None = None, held: Iterable[str] = ()) -> Mode:
        """What is locked and switched on at any times t (...) [s]: a Mode with the axes of t first; at an event, just after.

        Give what the run was given: model, mode, held; one instance (map it for a batch).

        >>> mech = mbs.library.double_pendulum()
        >>> mech.add_event("latch", when=mbs.Time(0.1), then=mbs.Lock("elbow"))
        >>> model = mech.build()
        >>> run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01)
        >>> run.mode_at(model, [0.05, 0.15]).lock[:, 1].tolist()
        [False, True]
        """
        return modes_at(self, model, t, mode, held)

    def message(self, model: Model) -> str:
        """The status in words, with the names of the constraints that the initial state violates.

        model: the one that was simulated; one instance.

        >>> model = mbs.library.crank_slider().build()
        >>> q, v, *_ = mbs.assemble(model, [0.5, -0.7, 0.0], fixed="bearing")
        >>> print(mbs.simulate(model, q, v, t_end=0.1).message(model))
        completed
        >>> print(mbs.simulate(model, q, [1.0, 0.0, 0.0], t_end=0.1).message(model))
        the initial state violates 'pin': its position, or the velocities that it allows; find one with assemble, or impact
        """
        return message(int(self.status), model, np.asarray(self.violated))

    def momentum_error(self, model: Model) -> tuple[Float[jax.Array, "rows 3"], Float[jax.Array, "rows 3"]]:
        """What changed the momentum of a mechanism that floats: nothing should.

        model: the one that was simulated; one instance (map it for a batch). Returns (angular (rows, 3) about the common
        centre of mass [N m s], linear (rows, 3) [N s]), world axes: the momentum less the initial one and less what uniform
        gravity gives. Torques `tau` on the freedoms of a floating base come from outside and show here. Raises ModelError,
        with their names, where joints, elements or constraints connect the mechanism to the world.

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

        model: the one that was simulated (of a batch, any instance). One variable per component of q and v
        ("hinge.angle", "hinge.angle_rate") over `time`, and the errors; `status`, with its meanings; `event`,
        `event_time`, `event_energy_lost` over `event_number`; `locked`, `acting`, `holding`: the mode at the end, by names.
        A batch has the dimension `sample` first. Raises ModelError where xarray is not installed or nq differs.

        >>> model = mbs.library.double_pendulum().build()
        >>> data = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], t_end=0.2, dt=0.01).to_xarray(model)
        >>> data["elbow.angle_rate"].attrs["units"], data.sizes["time"]
        ('rad/s', 21)
        """
        return dataset(self, model)

    def __repr__(self) -> str:
        """Shape and outcome in a line; the arrays are in the fields."""
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
