"""FMUs (Functional Mock-up Units) of other programs as controllers, run by FMPy: pip install 'jaxmbs[fmu]'."""

from __future__ import annotations

import importlib
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.io.fmu_host import FLOATS, INTEGERS, WORDS, Host, Variable
from jaxmbs.model.control import Controller
from jaxmbs.model.control.sensors import seconds
from jaxmbs.model.fields import declared
from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.given import Number, Vector

Source = str | float | Callable[..., Any]
ORDER = ("model", "t", "q", "v", "readings")
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

    period [s]: of its samples and of its communication steps. inputs: {variable: what it is set to}, the name of a sensor,
    whose reading has as many numbers as the variable, a number, or a function (model, t, q, v, readings) of the motion
    and of the sensors in `reads`; values are in the unit of the variable. outputs: {variable: parameters that it sets}, the
    name of a parameter of a force element ("push.thrust"), or a list of names, empty for an output that is only kept.
    parameters: {variable: value at the start}, for parameters of the FMU and variables with start values; in the model they
    have the names of the FMU with _ for everything but letters and digits, "box.spring_k" for "spring.k", and are set,
    varied and dispersed like all others. offset, delay [s]: of the Controller; both can be left out.

    The FMU starts at its first sample, with the inputs of that instant. At each further one it makes a step of one period
    with the inputs of the sample before, and its outputs are the commands; then it gets the inputs of this instant. So an
    input acts on an output one period later. The state "<name>.state" has four numbers that name the state of the FMU on
    the host, zero before the start, and then its outputs in their order. States that the FMU can serialize are kept;
    otherwise an instance is kept for each row, and what is needed again is computed again from its start. A run that goes on
    from such a state must be in the same process. Integers are rounded, and truth values are true unless zero. A step that
    the FMU refuses ends the motion of this row with the status NOT_FINITE, and a ModelWarning says what it reported.

    An FMU runs machine code: use only those that you trust. It costs a call of the host for every sample and row, and has no
    derivatives, which a ModelWarning says; taking them raises ModelError. Raises InputError for a file that is no FMU, has
    no co-simulation for this system, or lacks a variable of this name, causality and type; ModuleNotFoundError without FMPy.

    >>> box = mbs.from_fmu(
    ...     "box.fmu", 0.01, inputs={"angle": lambda model, t, q, v, readings: q[0]}, outputs={"torque": "motor.command"}
    ... )  # doctest: +SKIP
    >>> mech.add_controller("box", box)  # doctest: +SKIP
    """
    path = Path(path)
    where = f"from_fmu {path.name!r}"
    fmpy, said = _described(path)
    period = seconds(period, f"{where}: period")
    given, sources = dict(parameters or {}), dict(inputs or {})
    faults: list[Problem] = []
    found = {v.name: v for v in said.modelVariables}
    variables = [
        [_variable(found, name, what, faults) for name in names]
        for what, names in (("input", sources), ("output", outputs), ("parameter", given))
    ]
    if faults:
        raise InputError(faults, path)
    known: list[list[Variable]] = [[x for x in part if x is not None] for part in variables]
    writes = {name: [x] if isinstance(x, str) else list(x) for name, x in outputs.items()}
    numbers = {own: given[name] for own, name in zip(_names(given, where), given, strict=True)}
    for name, x in zip(given, known[2], strict=True):
        if np.asarray(given[name]).size != x.size:
            raise ModelError(f"{where}: the parameter {name!r} is {given[name]!r}; pass {_many(x.size)}")
    host = Host(fmpy, said, path.resolve(), period, known)
    fn = _sampled(host, where, sources, writes, list(numbers))
    sensors = [reads] if isinstance(reads, str) else [*reads]
    sensors += [x for x in dict.fromkeys(sources.values()) if isinstance(x, str) and x not in sensors]
    warnings.warn(f"{where}: {COST}", ModelWarning, stacklevel=2)
    return Controller(
        fn, period, offset=offset, delay=delay, parameters=numbers, reads=tuple(sensors),
        state=np.zeros(WORDS + sum(x.size for x in host.outputs)), writes=tuple(p for own in writes.values() for p in own),
    )  # fmt: skip


def _described(path: Path) -> tuple[Any, Any]:
    """(FMPy, the description of an FMU)."""
    try:
        fmpy = importlib.import_module("fmpy")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("FMUs need FMPy: pip install 'jaxmbs[fmu]'") from error
    if not path.is_file():
        raise InputError(Problem("", "cannot be read: there is no such file"), path)
    try:
        with path.open("rb") as file:
            said = fmpy.read_model_description(file)
            there = {x.split("/")[1] for x in zipfile.ZipFile(file).namelist() if re.match("binaries/[^/]+/[^/]+$", x)}
    except (zipfile.BadZipFile, KeyError) as error:
        raise InputError(Problem("", f"is not an FMU: {error}"), path) from None
    except Exception as error:  # of the XML reader, and of FMPy's own checks
        raise InputError(Problem("modelDescription.xml", str(error)), path) from None
    if said.fmiMajorVersion not in (2, 3):
        raise InputError(Problem("", f"is of FMI {said.fmiVersion}, but 2.0 and 3.0 can be used"), path)
    if said.coSimulation is None:
        raise InputError(
            Problem("", "has no co-simulation; export it for co-simulation, with its own integrator"), path
        )
    if not there & {fmpy.platform, fmpy.platform_tuple}:
        raise InputError(
            Problem("", f"is not for {fmpy.platform_tuple}, but for {', '.join(sorted(there)) or 'none'}"), path
        )
    return fmpy, said


def _variable(found: Mapping[str, Any], name: str, causality: str, faults: list[Problem]) -> Variable | None:
    """A variable with this causality; otherwise None, and one more fault."""

    def fault(text: str) -> None:
        faults.append(Problem(f"{causality}s.{name}", text))

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


def _sampled(
    host: Host, where: str, sources: Mapping[str, Source], writes: Mapping[str, list[str]], numbers: list[str]
) -> Callable[..., Any]:
    """The function of the controller."""
    for name, source in sources.items():
        if callable(source):
            check_arguments(source, f"{where}: the input {name!r}", ORDER)
        elif not isinstance(source, (str, int, float)):
            raise ModelError(
                f"{where}: the input {name!r} is {source!r}; pass a function, a number or the name of a sensor"
            )
    many = sum(x.size for x in host.outputs)

    def plain(t: Any, name: Any, inputs: Any, values: Any) -> Any:
        shapes = jax.ShapeDtypeStruct((WORDS,), t.dtype), jax.ShapeDtypeStruct((many,), t.dtype)
        return jax.pure_callback(host, shapes, t, name, inputs, values, vmap_method="broadcast_all")

    def refuse(primals: Any, tangents: Any) -> Any:
        raise ModelError(
            f"{where}: an FMU has no derivatives; differentiate a motion without it, or use finite differences"
        )

    called = jax.custom_jvp(plain)
    called.defjvp(refuse)

    def fn(model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Any) -> Any:
        dtype = state.dtype
        given = []
        for x in host.inputs:
            source = sources[x.name]
            value = readings[source] if isinstance(source, str) else source
            exact = value if callable(value) else lambda *_, value=value: value
            shape = (x.size,) if x.size > 1 else ()
            seen = evaluated(lambda *a, f=exact, s=shape: _one(f(*a), s), f"{where}: the input {x.name!r}", shape, dtype,
                             model, t, q, v, readings)  # fmt: skip
            given.append(jnp.ravel(seen))
        values = [jnp.ravel(jnp.asarray(parameters[name], dtype)) for name in numbers]
        name, found = called(jnp.asarray(t, dtype), state[:WORDS], _row(given, dtype), _row(values, dtype))
        commands, at = {}, 0
        for x in host.outputs:
            own = found[at : at + x.size]
            at += x.size
            commands.update(dict.fromkeys(writes[x.name], own if x.size > 1 else own[0]))
        return jnp.concatenate([name, found]), commands

    return fn


def _one(value: Any, shape: tuple[int, ...]) -> Any:
    """A list with one number as a number where one is wanted."""
    return jnp.reshape(value, ()) if shape == () and value is not None and np.size(value) == 1 else value


def _row(parts: Sequence[Any], dtype: Any) -> Any:
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)
