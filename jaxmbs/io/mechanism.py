"""The [mechanism] of a file: one table per body, joint, loop, force element, constraint, sensor, controller, FMU, event
and visual; their model."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, PlainValidator, create_model

from jaxmbs.building import Mechanism
from jaxmbs.errors import ModelWarning
from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.io.fmu import COST, SAMPLING, Fmu
from jaxmbs.io.generated import Classes, Made, any_of, either, in_files, table_of
from jaxmbs.io.tables import (
    Count,
    Matrix,
    Name,
    Names,
    NotNegative,
    Number,
    NumberOrList,
    Numbers,
    Positive,
    Table,
    is_number,
    stated,
)  # fmt: skip
from jaxmbs.model import ModelError, Part
from jaxmbs.model.bodies import Body, Closure, Hinge, Surroundings
from jaxmbs.model.constraints import Constraint, FunctionConstraint
from jaxmbs.model.control import Controller, Sensor
from jaxmbs.model.control.sensors import instead_of_rate
from jaxmbs.model.events import Action, Condition
from jaxmbs.model.fields import declared
from jaxmbs.model.forces import Force
from jaxmbs.model.joints import Joint
from jaxmbs.model.visuals import Visual

if TYPE_CHECKING:
    from jaxmbs.model import Model


def _part(x: Any) -> Part:
    if not isinstance(x, Part):
        raise ValueError(f"needs the name of a file, got {x!r}")
    return x


def _fmu(x: Any) -> Fmu:
    if not isinstance(x, Fmu):
        raise ValueError(f"needs the name of a file, got {x!r}")
    return x


def _fmu_input(x: Any) -> float | str:
    if isinstance(x, str) and x:
        return x
    if not is_number(x):
        raise ValueError(f'needs a number or a sensor, such as "imu" or "encoder[0]", got {x!r}')
    return float(x)


def _fmu_output(x: Any) -> tuple[str, ...]:
    names = [x] if isinstance(x, str) else x
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f'needs the parameters that it sets, such as "push.thrust", or a list of them, got {x!r}')
    return tuple(names)


FmuInput = Annotated[float | str, BeforeValidator(_fmu_input)]
FmuOutput = Annotated[tuple[str, ...], BeforeValidator(_fmu_output, json_schema_input_type=str | list[str])]


class Named(Made):
    name: Name = stated("name", "name of the element; its numbers are called NAME.FIELD")


class BodyTable(Named):
    def add(self, mech: Mechanism) -> None:
        mech.add_body(self.name, **_fields(self.build()))


class BeamTable(Table):
    """A straight slender beam along x, whose floating frame moves with its root."""

    length: Positive = stated("number > 0", "length", unit="m")
    mass: Positive = stated("number > 0", "mass", unit="kg")
    bending: tuple[Positive, Positive] = stated(
        "2 numbers > 0", "EI_y, EI_z: stiffness against bending in the planes xz and xy", unit="N m2"
    )
    torsion: Positive = stated("number > 0", "GJ: stiffness against torsion", unit="N m2")
    tension: Positive | None = stated(
        "number > 0", "EA: stiffness against tension, which is high if it is left out", unit="N", default=None
    )
    gyration: tuple[Positive, Positive] | None = stated(
        "2 numbers > 0",
        "r_y, r_z: radii of gyration of the cross-section; a hundredth of the length if left out",
        unit="m",
        default=None,
    )
    modes: Count = stated("integer >= 0", "number of modes, those of lowest frequency", default=6)
    elements: Count = stated("integer >= 0", "number of finite elements", default=20)
    attach: Names = stated("list of names", "the nodes to attach to, of root and tip", default=("tip",))
    free: bool = stated(
        "true or false", "the modes are those of the free beam, with the frame in its middle", default=False
    )
    foreshortening: bool = stated(
        "true or false", "bending shortens it, so that tension stiffens it; needs order = 2", default=False
    )
    stations: dict[str, Number] | None = stated(
        "table of numbers", "names of further nodes, and their places: 0 at the root, 1 at the tip", default=None
    )
    sections: dict[Name, Number] | None = stated(
        "table of numbers",
        "names of sections, whose torque and bending moments are recovered, and their places",
        default=None,
    )

    def build(self) -> Part:
        return Part.beam(**{name: getattr(self, name) for name in type(self).model_fields})


Place = tuple[Number, Number]


class PlateTable(Table):
    """A thin rectangular plate in the plane xy, whose floating frame moves with its root."""

    length: Positive = stated("number > 0", "length, along x", unit="m")
    width: Positive = stated("number > 0", "width, along y", unit="m")
    mass: Positive = stated("number > 0", "mass", unit="kg")
    stiffness: Positive = stated("number > 0", "D: stiffness of the plate against bending", unit="N m")
    poisson: Number = stated("number", "Poisson's ratio", default=0.3)
    root: str = stated("edge, point or free", "what is fixed in the floating frame at x = 0", default="edge")
    modes: Count = stated("integer >= 0", "number of modes, those of lowest frequency", default=6)
    elements: tuple[Count, Count] = stated(
        "2 integers", "number of finite elements along its length and across", default=(12, 8)
    )
    attach: dict[str, Place] | None = stated(
        "table of 2 numbers each",
        "names of the nodes to attach to, and their places: 0 to 1 along the length, -0.5 to 0.5 across; tip if left out",
        default=None,
    )
    stations: dict[str, Place] | None = stated(
        "table of 2 numbers each", "names of further nodes, and their places", default=None
    )

    def build(self) -> Part:
        return Part.plate(**{name: getattr(self, name) for name in type(self).model_fields})


class FlexibleTable(Table):
    """A body that deforms by small amounts about its floating frame: a beam, a plate, or the part in a file."""

    name: Name = stated("name", "name of the body, of its modal coordinates, and of its stiffness")
    part: Annotated[Any, PlainValidator(_part)] = stated(
        "file name", "its part, a file of Part.save beside this one", default=None
    )
    beam: BeamTable | None = stated("table", "its part if it is a beam, with the node tip", default=None)
    plate: PlateTable | None = stated("table", "its part if it is a plate", default=None)
    damping: Number | Numbers = stated(
        "number or list of numbers", "damping of each mode, as a fraction of critical damping", default=0.01
    )
    damping_matrix: Matrix | None = stated(
        "matrix", "further damping between modes, a row for each mode", unit="1/s", default=None
    )
    order: int = stated("1 or 2", "order of the inertia of the deformed body in the modal coordinates", default=1)

    def add(self, mech: Mechanism) -> None:
        given = [x for x in (self.part, self.beam, self.plate) if x is not None]
        if len(given) != 1:
            raise ModelError(f"flexible body {self.name!r}: give one of part, beam and plate")
        part = given[0] if isinstance(given[0], Part) else given[0].build()
        mech.add_flexible_body(self.name, part, self.damping, self.damping_matrix, self.order)


class JointTable(Named):
    def add(self, mech: Mechanism) -> None:
        mech.add_joint(self.name, self.build(), **_fields(self.made(Hinge)))


class LoopTable(Named):
    def add(self, mech: Mechanism) -> None:
        mech.close_loop(self.name, self.build(), **_fields(self.made(Closure)))


class ForceTable(Named):
    def add(self, mech: Mechanism) -> None:
        mech.add_force(self.name, self.build())


class DelayedTable(Named):
    delay: NotNegative | None = stated(
        "number >= 0", "time before which it does not act; none: it always acts", unit="s", default=None
    )

    def add(self, mech: Mechanism) -> None:
        mech.add_force(self.name, self.build(), self.delay)


def _force_table(cls: Any, known: Classes) -> Any:
    """Table of a force element; those of the environment always act, and some have a delay of their own."""
    always = cls.role or any(d.name == "delay" for d in declared(cls))
    return table_of(cls, known, base=ForceTable if always else DelayedTable)


class ConstraintTable(Named):
    def add(self, mech: Mechanism) -> None:
        mech.add_constraint(self.name, self.build())


class Sampled(Named):
    """A table with a period."""

    @classmethod
    def instead(cls, key: str, value: Any) -> str | None:
        return instead_of_rate(key, value)


class SensorTable(Sampled):
    def add(self, mech: Mechanism) -> None:
        mech.add_sensor(self.name, self.build())


class ControllerTable(Sampled):
    state: Numbers | None = stated("list of numbers", "its state at the start, an array of one axis", default=None)

    def add(self, mech: Mechanism) -> None:
        mech.add_controller(self.name, replace(self.build(), state=self.state and list(self.state)))


class FmuTable(Sampled):
    """An FMU of another program as a controller that samples: the file is run, with --trust only."""

    file: Annotated[Fmu, PlainValidator(_fmu, json_schema_input_type=str)] = stated(
        "file name", "the FMU, beside this file; for co-simulation, of FMI 2.0 or 3.0"
    )
    inputs: dict[str, FmuInput] = stated(
        "table", 'by variable of the FMU: a number, a sensor, or one number of its reading, "encoder[0]"', default=dict
    )
    outputs: dict[str, FmuOutput] = stated(
        "table",
        "by variable of the FMU: the parameters of force elements that it sets, a name or a list, possibly empty",
    )
    parameters: dict[str, NumberOrList] = stated(
        "table",
        "by variable of the FMU: its value at the start; its parameter NAME.VARIABLE has _ for dots",
        default=dict,
    )

    def add(self, mech: Mechanism) -> None:
        given = {key: getattr(self, key) for key in ("inputs", "outputs", "parameters", *SAMPLING)}
        where = f"the FMU {self.file.name!r}"
        mech.add_controller(self.name, self.file.controller(where, **given))
        warnings.warn(f"{where}: {COST}", ModelWarning, stacklevel=2)


def _fields(x: Any) -> dict[str, Any]:
    return {d.name: getattr(x, d.name) for d in declared(type(x))}


class VisualTable(Made):
    def add(self, mech: Mechanism) -> None:
        mech.add_visual(**_fields(self.build()))


class EventBase(Table):
    """An event: the actions `then` happen at the instant at which the condition `when` becomes true in a run."""

    name: Name = stated("name", "name of the event; its numbers are called NAME.FIELD")
    after: Name | None = stated("name", "event that arms it", default=None)
    repeat: bool = stated("true or false", "every time, not only the first", default=False)
    armed_from: Number | None = stated("number", "time before which it does not happen", unit="s", default=None)
    when: Any
    then: Any

    def add(self, mech: Mechanism) -> None:
        actions = [a.build() for a in self.then]
        guards = {"after": self.after, "repeat": self.repeat, "armed_from": self.armed_from}
        mech.add_event(self.name, self.when.build(), actions, **guards)


class MechanismBase(Made):
    """A mechanism: bodies, joints, and everything else that acts."""

    held: tuple[Name, ...] = stated("list of names", "joints that are locked until an event releases them", default=())

    off: tuple[Name, ...] = stated(
        "list of names", "force elements and constraints that do not act until an event enables them", default=()
    )

    name: str = stated("text", "name of the mechanism", default="mechanism")

    def build(self) -> Model:
        """The model. Raises InputError with the paths of all tables that the model refuses, and why."""
        mech = Mechanism(self.name, held=self.held, off=self.off, **_fields(self.made(Surroundings)))
        faults: list[Problem] = []
        for kind in ELEMENTS:
            for i, table in enumerate(getattr(self, kind)):
                try:
                    table.add(mech)
                except InputError as error:
                    own = dotted(("mechanism", kind, i))
                    faults += [Problem(f"{own}.{x.path}" if x.path else own, x.message) for x in error.problems]
                except ModelError as error:
                    faults.append(Problem(dotted(("mechanism", kind, i)), str(error)))
        if faults:
            raise InputError(faults)
        try:
            return mech.build()
        except ModelError as error:
            raise InputError(Problem("mechanism", str(error))) from error


ELEMENTS = (
    "bodies", "flexible_bodies", "joints", "loops", "forces", "constraints", "sensors", "controllers", "fmus",
    "events", "visuals",
)  # fmt: skip


@functools.cache
def mechanism_table(known: Classes) -> Any:
    """The [mechanism] table of a file that may use the known classes."""

    def some(table: Any, doc: str, fewest: int = 0) -> tuple[Any, Any]:
        return list[table], stated("list of tables", doc, default=... if fewest else list, min_length=fewest)

    any_joint: Callable[..., Any] = functools.partial(any_of, Joint, known)
    event = create_model(
        "EventTable",
        __base__=EventBase,
        __doc__=EventBase.__doc__,
        when=(any_of(Condition, known), stated("table", "condition")),
        then=some(any_of(Action, known), "actions, in this order"),
    )
    return create_model(
        "MechanismTable",
        __base__=table_of(Surroundings, known, base=MechanismBase, typed=False),
        __doc__=MechanismBase.__doc__,
        bodies=some(table_of(Body, known, base=BodyTable, typed=False), "rigid bodies"),
        flexible_bodies=some(FlexibleTable, "flexible bodies"),
        joints=some(any_joint(further=(Hinge,), base=JointTable), "joints of the tree", 1),
        loops=some(any_joint(further=(Closure,), base=LoopTable), "cut joints, which close loops"),
        forces=some(either([_force_table(c, known) for c in in_files(Force, known)]), "force elements"),
        constraints=some(any_of((Constraint, FunctionConstraint), known, base=ConstraintTable), "constraint elements"),
        sensors=some(any_of(Sensor, known, base=SensorTable), "what controllers read"),
        controllers=some(table_of(Controller, known, base=ControllerTable, typed=False), "controllers that sample"),
        fmus=some(
            table_of(Controller, known, base=FmuTable, typed=False, only=SAMPLING),
            "FMUs of other programs, as controllers",
        ),
        events=some(event, "what happens in a run"),
        visuals=some(table_of(Visual, known, base=VisualTable, typed=False), "shapes of bodies, for pictures only"),
    )
