"""Builds the model of a mechanism from its parts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxmbs.building.floating import warn_of_floating
from jaxmbs.building.parts import Parts
from jaxmbs.building.redundancy import warn_of_redundancy, without_dependent_rows
from jaxmbs.building.singular_mass import check_moves_mass
from jaxmbs.building.taken import check_taken
from jaxmbs.model.bodies import Body, Hinge, Surroundings
from jaxmbs.model.control.commands import written
from jaxmbs.model.control.controller import WAITING
from jaxmbs.model.control.sensors import HELD
from jaxmbs.model.errors import ModelError
from jaxmbs.model.events.base import Delay
from jaxmbs.model.fields import Declared, numbers_of
from jaxmbs.model.forces import CentralGravity, Planet
from jaxmbs.model.model import Model, read_only
from jaxmbs.model.parameters import Parameter, pattern_of
from jaxmbs.model.structure import ControllerElement, ForceElement, SensorElement, Structure, TreeJoint
from jaxmbs.model.visuals import Visual

Numbers = Mapping[str, tuple[Declared, list[float]]]  # by the names of the parameters


def built(
    name: str, parts: Parts, numbers: Numbers, held: tuple[str, ...], off: tuple[str, ...], visuals: Sequence[Visual]
) -> Model:
    """The model, after all checks of the whole; see `Mechanism.build`."""
    if not parts.bodies:
        raise ModelError(f"mechanism {name!r} has no bodies; add one with add_body")
    links = parts.links()
    states = {name: len(c) for name, (d, c) in numbers.items() if d.is_state}
    parts.check(f"mechanism {name!r}", held, off, visuals, states)
    # the events of delays come last, so that the others keep their indices
    events = sorted(parts.events.values(), key=lambda e: isinstance(e.when, Delay))
    off_at_first = dict.fromkeys([*off, *(e.name for e in events if isinstance(e.when, Delay))])
    forces = tuple(ForceElement(name, f) for name, f in parts.forces.items())
    set_by_controllers = written(parts.controllers, parts.forces, {path: d for path, (d, _) in numbers.items()})
    every = {**_in_order(numbers, links), **_waiting(parts, numbers), **_readings(parts)}
    parameters = tuple(
        Parameter(name, d.kind, d.unit, (None,) * len(c), True)
        if d.is_state or name in set_by_controllers
        else Parameter(name, d.kind, d.unit, pattern_of(d.kind, c, d.neutral))
        for name, (d, c) in every.items()
    )
    free = [v for p in parameters for v, pinned in zip(every[p.name][1], p.pattern, strict=True) if pinned is None]
    gravity = numbers["gravity"][1]
    if any(gravity) and any(f.element.role == "planet" for f in forces):
        raise ModelError(
            f"mechanism {name!r}: gravity is {tuple(gravity)}, and there is a planet, which attracts every body; "
            "leave one of them out"
        )
    planets = [x.name for x in forces if isinstance(x.element, Planet | CentralGravity)]
    for one, other in itertools.combinations(planets, 2):
        if numbers[f"{one}.center"][1] == numbers[f"{other}.center"][1]:
            raise ModelError(
                f"mechanism {name!r}: {one!r} and {other!r} attract towards the same centre, so that gravity would count "
                "twice; leave one of them out"
            )
    structure = Structure(
        name, links, forces, parameters, tuple(parts.loops.values()), tuple(parts.constraints.values()),
        tuple(events), held, tuple(off_at_first), visuals=tuple(visuals),
        sensors=tuple(SensorElement(name, x) for name, x in parts.sensors.items()),
        controllers=tuple(ControllerElement(name, x) for name, x in parts.controllers.items()),
    )  # fmt: skip
    model = Model(read_only(free), {}, structure)
    check_taken(model)
    try:
        check_moves_mass(model)
    except ModelError:
        if not model.constraint_names:
            raise
        model = replace(model, structure=replace(structure, singular=True))
    model = without_dependent_rows(model)
    redundant = warn_of_redundancy(model)
    warn_of_floating(model)
    return replace(model, structure=replace(model.structure, redundant=redundant))


def _in_order(numbers: Numbers, links: Sequence[TreeJoint]) -> Numbers:
    """The numbers in the order that they have in a model. With flexible bodies this is the order of a file, whose tables are
    bodies, then joints, in the order of the tree."""
    rest = dict(numbers)
    if not any(link.joint.elastic for link in links):
        return rest
    names = [*(path for path, _, _ in numbers_of(Surroundings()))]
    names += [f"{link.body}.{path}" for link in links for path in Body().numbers]
    names += [f"{link.name}.{path}" for link in links for path in (*link.joint.numbers, *Hinge("", "").numbers)]
    return {name: rest.pop(name) for name in names} | rest


def _waiting(parts: Parts, numbers: Numbers) -> Numbers:
    """The commands that have been given and wait for their delay (at first none), as a state of each controller that has
    one."""
    found = {}
    for owner, controller in parts.controllers.items():
        if controller.writes and any(numbers[f"{owner}.delay"][1]):
            commands = [x for name in controller.writes for x in numbers[name][1]]
            found[f"{owner}.commands"] = WAITING, [*commands, 0.0]
    return found


def _readings(parts: Parts) -> Numbers:
    """What the sensors with a period have measured, at first zero, as a state of each."""
    every = parts.joints_as_given()
    own = {name: x for name, x in parts.sensors.items() if x.period is not None}
    return {f"{name}.reading": (HELD, [0.0] * x.width(every)) for name, x in own.items()}
