"""Checks of a study's parts against its mechanism: each returns the checked part, if there is one, or raises InputError
with every problem.

`jaxmbs.simulate` and `jaxmbs.dynamics`, which are slow to import, are imported only by the checks that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import names_in, type_name
from jaxmbs.model.flexible_bodies.spinning import spin_warnings
from jaxmbs.simulate.log import checked_events
from jaxmbs.simulate.steppers import stepper, stepper_for
from jaxmbs.study import units
from jaxmbs.study.outputs import MinOver, Output
from jaxmbs.study.outputs.base import INSTANTS
from jaxmbs.study.outputs.folding import TIME
from jaxmbs.study.outputs.of_state import OfState
from jaxmbs.study.problem import criteria, instants, meshes
from jaxmbs.study.problem.criteria import Criterion

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.joints import Coordinate, Joint
    from jaxmbs.study.problem.schema import InitialTable, SimulationTable
    from jaxmbs.study.sampling.dispersions import Dispersions

_NAME = 200  # greatest length of the name of an output or dispersion, which becomes the name of a folder


class Findings:
    """Collects the problems of independent checks, so that one run of the command shows them all."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def __call__(self, check: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return check()
        except InputError as error:
            self.problems += error.problems
            return otherwise

    def stop(self) -> None:
        """Raise InputError if there are problems."""
        if self.problems:
            raise InputError(self.problems)


def method(simulation: SimulationTable | None, model: Model) -> None:
    """Raises InputError if the method is not suitable for the mechanism or the tolerance, or if a limit (`max_steps`,
    `max_events`) does not apply."""
    if simulation is not None and simulation.max_steps is not None and simulation.tolerance is None:
        why = "limits the steps of a run with a tolerance, which is missing; leave max_steps out, or add tolerance"
        raise InputError(Problem("simulation.max_steps", why))
    if simulation is not None and simulation.max_events is not None:
        try:
            checked_events(simulation.max_events, model)
        except ModelError as error:
            raise InputError(Problem("simulation.max_events", str(error).removeprefix("simulate: "))) from None
    if simulation is None or (simulation.method, simulation.tolerance) == ("rk4", None):
        return  # rk4 is suitable for every mechanism
    try:
        stepper_for(simulation.method, model, simulation.tolerance)
    except ModelError as error:
        raise InputError(Problem("simulation.method", str(error).removeprefix("simulate: "))) from None


def doubts(
    model: Model, q0: np.ndarray, v0: np.ndarray, dispersions: Dispersions, simulation: SimulationTable
) -> list[str]:
    """What is probably not intended, or beyond what the mechanism represents."""
    return dispersions.warnings + spin_warnings(model, q0, v0) + _fast_modes(model, q0, simulation)


def _fast_modes(model: Model, q0: np.ndarray, simulation: SimulationTable) -> list[str]:
    """A warning if the steps are too long for the modes of flexible bodies: all samples would fail."""
    if not model.structure.flexible or simulation.tolerance is not None:
        return []
    from jaxmbs.simulate.fast_modes import too_fast

    s = simulation
    said = too_fast(model, q0, stepper(s.method), s.dt, s.t_end, model.structure.held)
    return [f'simulation.dt: {said}; write method = "implicit" in [simulation], or a shorter dt'] if said else []


def short(file: Any) -> None:
    """Raises InputError for names of outputs and dispersions that are too long to be names of folders, as they are in
    the results of a run."""
    named = [(key, name) for key in ("outputs", "dispersions") for name in getattr(file, key) if len(name) > _NAME]
    said = f"the name is longer than {_NAME} characters; shorten it"
    if named:
        raise InputError([Problem(dotted((key, f"{name[:20]}...")), said) for key, name in named])


def initial_state(
    tables: Mapping[str, InitialTable], model: Model, joints: Mapping[str, Joint]
) -> tuple[np.ndarray, np.ndarray]:
    """q0 (nq,) and v0 (nv,) from the tables [initial.JOINT]."""
    q = np.array([c for link in model.structure.links for c in link.joint.neutral()], float)
    v, problems = np.zeros(model.nv), []
    in_world: dict[str, np.ndarray] = {}
    for joint, table in tables.items():
        if joint not in joints:
            message = f'there is no joint "{joint}"; {choices(joint, joints, "joints")}'
            problems.append(Problem(dotted(("initial", joint)), message))
            continue
        own = joints[joint]
        for key, vector, where, components in (
            ("q", q, model.q_slice(joint), own.coordinates()),
            ("v", v, model.v_slice(joint), own.speeds()),
        ):
            values = getattr(table, key)
            if values is None:
                continue
            if len(values) != where.stop - where.start:
                message = f"{list(values)} has {len(values)} numbers; {_layout(own, components)}"
                problems.append(Problem(dotted(("initial", joint, key)), message))
                continue
            vector[where] = values
        first, start = own.quaternion, model.q_slice(joint).start
        if first is not None and not np.any(q[start + first : start + first + 4]):
            message = "the quaternion qw, qx, qy, qz is zero; for no rotation write 1, 0, 0, 0"
            problems.append(Problem(dotted(("initial", joint, "q")), message))
        if table.world_velocity is not None:
            in_world[joint] = np.array([*table.world_velocity.angular, *table.world_velocity.linear])
            if table.v is not None:
                message = "v says the same in the joint's coordinates; leave one of the two out"
                problems.append(Problem(dotted(("initial", joint, "world_velocity")), message))
    if in_world and not problems:
        from jaxmbs.study.problem.world_velocities import rates_for

        v, refused = rates_for(model, q, v, in_world)
        for joint, missed in refused.items():
            said = f"the joint does not allow this motion of its child; the nearest differs by {missed:.3g}; give v: "
            message = said + _layout(joints[joint], joints[joint].speeds())
            problems.append(Problem(dotted(("initial", joint, "world_velocity")), message))
    if problems:
        raise InputError(problems)
    return q, v


def _layout(joint: Joint, components: tuple[Coordinate, ...]) -> str:
    said = (f"{c.name} [{c.unit}]" if c.unit else c.name for c in components)
    return f"{type_name(type(joint))} takes {len(components)}" + (f": {', '.join(said)}" if components else "")


def outputs_of(outputs: Mapping[str, Output], model: Model, joints: Mapping[str, Joint]) -> dict[str, Output]:
    """The outputs, checked: their bodies and joints exist, they fit the model, and their reductions are complete."""
    problems, known = [], ("world", *model.body_names)
    for name, output in outputs.items():
        where = ("outputs", name)
        if output.reduce == "time_out" and output.always_defined:
            such = "such as a clearance with open = true; this one is defined at all times"
            message = f"time_out is for outputs that can be undefined, {such}"
            problems.append(Problem(f"{dotted(where)}.reduce", message))
        unknown = [(*n, known, "body", "bodies") for n in names_in(output, Kind.BODY, Kind.BODY_OR_WORLD)]
        unknown += [(*n, tuple(joints), "joint", "joints") for n in names_in(output, Kind.JOINT)]
        unknown = [u for u in unknown if u[1] not in u[2]]
        for key, element, there, kind, kinds in unknown:
            message = f'there is no {kind} "{element}"; {choices(element, there, kinds)}'
            problems.append(Problem(f"{dotted(where)}.{key}", message))
        if not unknown:
            faults = [*output.faults(joints), *(output.unfit(model) if isinstance(output, OfState) else ())]
            problems += [Problem(f"{dotted(where)}.{key}", said) for key, said in faults]
            if not faults:
                problems += [Problem(f"{dotted(where)}.{key}", said) for key, said in output.incomplete(joints)]
    problems = problems or meshes.of_wrong_size(outputs, model)
    if problems:
        raise InputError(problems)
    return {name: output.fitted(model) if isinstance(output, OfState) else output for name, output in outputs.items()}


def connected(
    outputs: Mapping[str, Output], model: Model, joints: Mapping[str, Joint], simulation: SimulationTable | None
) -> dict[str, Output]:
    """The outputs with what refers to other outputs filled in: the quantity of the outputs that a `MinOver` combines,
    and the instants (`when`, `from`, `until`), parsed from their text."""
    found, problems = dict(outputs), []
    for name, output in outputs.items():
        if not isinstance(output, MinOver):
            continue
        others = {n: o.quantity(joints) for n, o in outputs.items() if not isinstance(o, MinOver)}
        unknown = [of for of in output.of if of not in others]
        problems += [
            Problem(dotted(("outputs", name, "of")), f'there is no output "{of}"; {choices(of, others, "outputs")}')
            for of in unknown
        ]
        kinds = sorted({others[of] for of in output.of if of in others})
        if len(kinds) > 1:
            problems.append(
                Problem(
                    dotted(("outputs", name, "of")),
                    f"measure different quantities, {' and '.join(kinds)}; name outputs of one quantity",
                )
            )
        elif kinds:
            found[name] = replace(output, of_quantity=kinds[0])
    quantities = {TIME: "time", **{name: o.quantity(joints) for name, o in found.items()}}
    for name, output in found.items():
        for key in INSTANTS:
            said = getattr(output, key)
            try:
                at = None if said is None else instants.parse(said, quantities, model.event_names)
                found[name] = replace(found[name], **{key: at})
            except ValueError as error:
                problems.append(Problem(dotted(("outputs", name, key.rstrip("_"))), str(error)))
        if not problems:
            unfit = instants.empty(found[name], simulation)
            problems += [Problem(dotted(("outputs", name, key)), said) for key, said in unfit]
    if problems:
        raise InputError(problems)
    return found


def criteria_of(given: Sequence[str | Criterion], quantities: Mapping[str, str]) -> tuple[Criterion, ...]:
    """The criteria parsed from their sentences; a `Criterion` is returned unchanged if its sentence is valid."""
    found, problems = [], []
    for i, said in enumerate(given):
        try:
            read = criteria.parse(said.text if isinstance(said, Criterion) else said, quantities)
            found.append(said if isinstance(said, Criterion) else read)
        except ValueError as error:
            problems.append(Problem(dotted(("criteria", i)), str(error)))
    if problems:
        raise InputError(problems)
    return tuple(found)


def shown_in(
    outputs: Mapping[str, Output], quantities: Mapping[str, str], sentences: tuple[Criterion, ...]
) -> dict[str, units.Unit]:
    """The unit in which reports show each output: its own, else that of its first criterion, else the SI unit."""
    shown, problems = {}, []
    for name, output in outputs.items():
        spoken = next((c.unit for c in sentences if c.output == name), units.si(quantities[name]))
        try:
            shown[name] = units.unit(output.unit, quantities[name]) if output.unit is not None else spoken
        except ValueError as error:
            problems.append(Problem(dotted(("outputs", name, "unit")), str(error)))
    if problems:
        raise InputError(problems)
    return shown
