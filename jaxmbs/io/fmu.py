"""FMUs (Functional Mock-up Units) of other programs as controllers, run by FMPy: pip install 'jaxmbs[fmu]'."""

from __future__ import annotations

import functools
import importlib
import io
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.io.fmu_host import FLOATS, INTEGERS, WORDS, Host, Variable
from jaxmbs.model.control import Controller
from jaxmbs.model.control.sensors import seconds
from jaxmbs.model.fields import declared
from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.given import Number, Vector

Source = str | float | Callable[..., Any]
ORDER = ("model", "t", "q", "v", "readings")
SAMPLING = ("period", "offset", "delay")  # the fields of a controller that are not those of its FMU
COST = (
    "it runs on the host, one row of a batch after another, and what is simulated with it is not one compiled program; it "
    "has no derivatives"
)


def from_fmu(
    path: str | Path,
    period: float,
    *,
    inputs: Mapping[str, Source] | None = None,
    outputs: Mapping[str, str | Sequence[str]],
    parameters: Mapping[str, Number | Vector] | None = None,
    reads: str | Sequence[str] = (),
    offset: Number = 0.0,
    delay: Number = 0.0,
) -> Controller:
    """Controller that runs the FMU at `path`, which another program has made for co-simulation with FMI 2.0 or 3.0.

    period [s]: of its samples and of its communication steps. inputs: {variable: its source}; a source is the name of a
    sensor whose reading has as many numbers as the variable ("imu"), one number of a reading ("encoder[0]"), a number, or a
    function (model, t, q, v, readings) of the motion and of the sensors in `reads`; values are in the unit of the variable.
    outputs: {variable: the parameters that it sets}: the name of one parameter of a force element ("push.thrust"), or a
    list of names, empty for an output that is only kept in the state.
    parameters: {variable: value at the start}, for parameters of the FMU and variables with start values. In the model
    their names have _ for everything but letters and digits ("box.spring_k" for "spring.k"), and they are set, varied and
    dispersed like all other parameters. offset, delay [s]: as for `Controller`, 0 by default.

    The FMU starts at its first sample, with the inputs of that instant. At each further one it makes a step of one period
    with the inputs of the sample before, and its outputs are the commands; then it gets the inputs of this instant. So an
    input acts on an output one period later. The state "<name>.state" has four numbers that name the state of the FMU on
    the host, zero before the start, and then its outputs in their order. States that the FMU can serialize are kept;
    otherwise an instance is kept for each row, and what is needed again is computed again from its start. A run that goes on
    from such a state must be in the same process. Integers are rounded, and truth values are true unless zero. A step that
    the FMU refuses ends the motion of this row with the status NOT_FINITE, and a ModelWarning says what it reported.

    An FMU is machine code: use only FMUs that you trust. Every sample of every row is a call on the host, and there are no
    derivatives; a ModelWarning says both, and differentiating raises ModelError. Raises InputError for a file that is no
    FMU, has no co-simulation for this system, or lacks a variable of this name, causality and type; ModuleNotFoundError
    without FMPy. In a file, an FMU is a table [[mechanism.fmus]], which needs trust (`jaxmbs keys mechanism.fmus`).

    >>> box = mbs.from_fmu(
    ...     "box.fmu", 0.01, inputs={"angle": lambda model, t, q, v, readings: q[0]}, outputs={"torque": "motor.command"}
    ... )  # doctest: +SKIP
    >>> mech.add_controller("box", box)  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(Problem("", "cannot be read: there is no such file"), path)
    where = f"from_fmu {path.name!r}"
    try:
        made = Fmu.read(path.read_bytes(), path.name).controller(
            where, period, inputs=inputs or {}, outputs=outputs, parameters=parameters or {}, reads=reads,
            offset=offset, delay=delay,
        )  # fmt: skip
    except InputError as error:
        raise InputError(error.problems, path) from None
    warnings.warn(f"{where}: {COST}", ModelWarning, stacklevel=2)
    return made


@dataclass(frozen=True)
class Fmu:
    """An FMU that was read. name, content: of its file; description: that of FMPy; fmpy: the module."""

    name: str
    content: bytes = field(repr=False)
    description: Any = field(repr=False, compare=False)
    fmpy: Any = field(repr=False, compare=False)

    @classmethod
    def read(cls, content: bytes, name: str) -> Fmu:
        """The FMU with the content of a file of this name. Raises InputError if it is none that can be used, and
        ModuleNotFoundError without FMPy."""
        try:
            fmpy = importlib.import_module("fmpy")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("FMUs need FMPy: pip install 'jaxmbs[fmu]'") from error
        try:
            said = fmpy.read_model_description(io.BytesIO(content))
            files = zipfile.ZipFile(io.BytesIO(content)).namelist()
        except (zipfile.BadZipFile, KeyError) as error:
            raise InputError(Problem("", f"is not an FMU: {error}")) from None
        except Exception as error:  # of the XML reader, and of FMPy's own checks
            raise InputError(Problem("modelDescription.xml", str(error))) from None
        there = {x.split("/")[1] for x in files if re.match("binaries/[^/]+/[^/]+$", x)}
        if said.fmiMajorVersion not in (2, 3):
            raise InputError(Problem("", f"is of FMI {said.fmiVersion}, but 2.0 and 3.0 can be used"))
        if said.coSimulation is None:
            raise InputError(Problem("", "has no co-simulation; export it for co-simulation, with its own integrator"))
        if not there & {fmpy.platform, fmpy.platform_tuple}:
            raise InputError(
                Problem("", f"is not for {fmpy.platform_tuple}, but for {', '.join(sorted(there)) or 'none'}")
            )
        return cls(name, content, said, fmpy)

    def controller(
        self, where: str, period: float, *, inputs: Mapping[str, Source], outputs: Mapping[str, str | Sequence[str]],
        parameters: Mapping[str, Number | Vector], reads: str | Sequence[str] = (), offset: Number = 0.0,
        delay: Number = 0.0,
    ) -> Controller:  # fmt: skip
        """The controller that is this FMU, as `from_fmu` says; where: the beginning of messages."""
        period = seconds(period, f"{where}: period")
        faults: list[Problem] = []
        found = {v.name: v for v in self.description.modelVariables}
        variables = [
            [_variable(found, name, what, faults) for name in names]
            for what, names in (("input", inputs), ("output", outputs), ("parameter", parameters))
        ]
        if faults:
            raise InputError(faults)
        known: list[list[Variable]] = [[x for x in part if x is not None] for part in variables]
        writes = {name: (x,) if isinstance(x, str) else tuple(x) for name, x in outputs.items()}
        numbers = {own: parameters[name] for own, name in zip(_names(parameters, where), parameters, strict=True)}
        for name, x in zip(parameters, known[2], strict=True):
            if np.asarray(parameters[name]).size != x.size:
                raise ModelError(f"{where}: the parameter {name!r} is {parameters[name]!r}; pass {_many(x.size)}")
        sources = tuple((name, _source(x, f"{where}: the input {name!r}")) for name, x in inputs.items())
        host = Host(self.fmpy, self.description, self.name, self.content, period, known)
        sensors = [reads] if isinstance(reads, str) else [*reads]
        named = dict.fromkeys(x.sensor for _, x in sources if isinstance(x, Reading))
        sensors += [x for x in named if x not in sensors]
        pairs = tuple(zip(parameters, numbers, strict=True))
        return Controller(
            Law(self, where, period, sources, tuple(writes.items()), pairs, host), period, offset=offset, delay=delay,
            parameters=numbers, state=np.zeros(WORDS + sum(x.size for x in host.outputs)), reads=tuple(sensors),
            writes=tuple(p for own in writes.values() for p in own),
        )  # fmt: skip


class Reading(NamedTuple):
    """The reading of a sensor, or one number of it."""

    sensor: str
    component: int | None = None

    @classmethod
    def of(cls, text: str) -> Reading:
        """The reading that a text names, "encoder" or "encoder[1]"."""
        said = re.fullmatch(r"(.+)\[(\d+)\]", text)
        return cls(said[1], int(said[2])) if said else cls(text)

    def __str__(self) -> str:
        return self.sensor if self.component is None else f"{self.sensor}[{self.component}]"

    def value(self, readings: Mapping[str, Any], size: int, where: str) -> Any:
        """This reading as an array (size,), from the `readings` of all sensors; where: the beginning of messages."""
        whole = jnp.ravel(readings[self.sensor])
        found = whole if self.component is None else whole[self.component : self.component + 1]
        if found.size != size:
            one = f", or one of them, such as '{self.sensor}[0]'" if size == 1 else ""
            raise ModelError(
                f"{where} takes {_many(size)} and is {str(self)!r}, but the reading of {self.sensor!r} has "
                f"{_many(whole.size)}; pass one that fits{one}"
            )
        return found


def _source(given: Any, where: str) -> Reading | float | Callable[..., Any]:
    if isinstance(given, str):
        return Reading.of(given)
    if callable(given):
        check_arguments(given, where, ORDER)
    elif not isinstance(given, (int, float)):
        raise ModelError(f"{where} is {given!r}; pass a function, a number or the name of a sensor")
    return given


def _variable(found: Mapping[str, Any], name: str, causality: str, faults: list[Problem]) -> Variable | None:
    """A variable with this causality; otherwise None, and one more fault."""

    def fault(text: str) -> None:
        faults.append(Problem(dotted((f"{causality}s", name)), text))

    if name not in found:
        return fault(f"there is no such variable; {choices(name, _with(found, causality), f'{causality}s')}")
    v = found[name]
    if name not in _with(found, causality):
        return fault(f"is of causality {v.causality}; {choices(name, _with(found, causality), f'{causality}s')}")
    if v.type not in (*FLOATS, *INTEGERS, "Boolean"):
        return fault(f"is of type {v.type}; numbers and truth values can be used")
    if any(d.start is None for d in v.dimensions):
        return fault("its size is a parameter of the FMU; only fixed sizes can be used")
    return Variable(name, v.valueReference, v.type, math.prod(int(d.start) for d in v.dimensions))


def _with(found: Mapping[str, Any], causality: str) -> list[str]:
    """The names of the variables that can be used in this way."""
    start = ("exact", "approx") if causality == "parameter" else ()
    return [
        name for name, v in found.items() if v.causality == causality or (v.initial in start and v.causality != "input")
    ]


def _names(given: Mapping[str, Any], where: str) -> list[str]:
    """The names of the FMU's parameters in the model."""
    own = {d.name for d in declared(Controller)}
    out: list[str] = []
    for name in given:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "value"
        plain = f"p_{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if plain in own or not plain.isidentifier() else plain
        if plain in out:
            raise ModelError(f"{where}: two parameters would have the name {plain!r} in the model; pass one of them")
        out.append(plain)
    return out


def _many(size: int) -> str:
    return "one number" if size == 1 else f"{size} numbers"


@dataclass(frozen=True)
class Law:
    """The function of a controller that is an FMU. Two are equal if they compute the same.

    where: the beginning of messages; sources: by input; writes: the parameters that each output sets; names: (name in the
    FMU, name in the model) of the parameters.
    """

    fmu: Fmu
    where: str = field(compare=False)
    period: float
    sources: tuple[tuple[str, Reading | float | Callable[..., Any]], ...]
    writes: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[tuple[str, str], ...]
    host: Host = field(compare=False, repr=False)

    def __call__(self, model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Any) -> Any:
        dtype = state.dtype
        given = []
        for x, (name, source) in zip(self.host.inputs, self.sources, strict=True):
            where, shape = f"{self.where}: the input {name!r}", (x.size,) if x.size > 1 else ()
            value = source.value(readings, x.size, where) if isinstance(source, Reading) else source
            exact = value if callable(value) else lambda *_, value=value: value
            seen = evaluated(lambda *a, f=exact, s=shape: _one(f(*a), s), where, shape, dtype, model, t, q, v, readings)
            given.append(jnp.ravel(seen))
        values = [jnp.ravel(jnp.asarray(parameters[own], dtype)) for _, own in self.names]
        name, found = self._called(jnp.asarray(t, dtype), state[:WORDS], _row(given, dtype), _row(values, dtype))
        commands, at = {}, 0
        for x, (_, own) in zip(self.host.outputs, self.writes, strict=True):
            part = found[at : at + x.size]
            at += x.size
            commands.update(dict.fromkeys(own, part if x.size > 1 else part[0]))
        return jnp.concatenate([name, found]), commands

    @functools.cached_property
    def _called(self) -> Callable[..., Any]:
        """The call of the host, which has no derivatives."""
        many = sum(x.size for x in self.host.outputs)

        def plain(t: Any, name: Any, inputs: Any, values: Any) -> Any:
            shapes = jax.ShapeDtypeStruct((WORDS,), t.dtype), jax.ShapeDtypeStruct((many,), t.dtype)
            return jax.pure_callback(self.host, shapes, t, name, inputs, values, vmap_method="broadcast_all")

        def refuse(primals: Any, tangents: Any) -> Any:
            raise ModelError(
                f"{self.where}: an FMU has no derivatives; differentiate a motion without it, or use finite differences"
            )

        called = jax.custom_jvp(plain)
        called.defjvp(refuse)
        return called


def _one(value: Any, shape: tuple[int, ...]) -> Any:
    """The value; a list of one number becomes a number if `shape` asks for a number."""
    return jnp.reshape(value, ()) if shape == () and value is not None and np.size(value) == 1 else value


def _row(parts: Sequence[Any], dtype: Any) -> Any:
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)
