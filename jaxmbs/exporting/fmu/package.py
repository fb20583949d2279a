"""The file of an FMU: a zip archive of the description and a shared library."""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import platform
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.machine import compiling
from jaxmbs.exporting import shared
from jaxmbs.exporting.fmu import description
from jaxmbs.exporting.fmu.description import INDICATOR, INPUT, RATE, STATE, TIME, Variable
from jaxmbs.exporting.fmu.motion import IntegratedModel, checked
from jaxmbs.exporting.program import Program, identifier, program
from jaxmbs.model import Model, ModelError, get

RUNTIME = [Path(__file__).with_name(name) for name in ("runtime.c", "absent.c")]


def written(
    model: Model, args: Sequence[Any], path: Path, where: str, dt: float, parameters: Sequence[str]
) -> list[Path]:
    """Write the FMU of a model that starts from args, its q and v."""
    checked(model, where)
    if not isinstance(dt, (int, float)) or not 0 < dt < np.inf:
        raise ModelError(f"{where}: dt is {dt!r}; pass the length of a step in seconds")
    shapes = [np.shape(x) for x in args]
    if shapes != [(model.nq,), (model.nv,)]:
        raise ModelError(
            f"{where}: args have the shapes {shapes}; pass (q, v) at the start, {(model.nq,)}, {(model.nv,)}"
        )
    if not all(np.isfinite(np.asarray(x, float)).all() for x in args):
        raise ModelError(f"{where}: args have numbers that are not finite; pass q and v at the start")
    parameters = [parameters] if isinstance(parameters, str) else list(parameters)
    states = {p.name for p in model.structure.states}
    for k, name in enumerate(parameters):
        if name not in model.parameter_names:
            raise ModelError(f"{where}: the model has no parameter {name!r}")
        if name in parameters[:k] or name in states:
            raise ModelError(f"{where}: {name!r} is a variable of the FMU already; leave it out of the parameters")
    name = identifier(path.stem)
    motion = IntegratedModel(model, "rk4")
    variables = variables_of(model, np.concatenate([*(np.asarray(x, float) for x in args), motion.start]), parameters)
    with jax.enable_x64(True):
        watched = motion.watched({name: jnp.asarray(get(model, name), float) for name in parameters})
        variables += indicators_of(watched, {v.name for v in variables})
        programs = _programs(motion, parameters, where)
        sources = source_of(name, variables, programs, dt)
        objects = {k: compiling.object_file(shared.block(p)) for k, p in programs.items() if p.code}
    version = importlib.metadata.version("jaxmbs")
    xml = description.written(model.name, name, "@TOKEN@", version, variables, dt)
    token = hashlib.sha256("\n".join([xml, sources, *(x.hex() for x in objects.values())]).encode()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        source, files = here / "fmu.c", []
        source.write_text(sources.replace("@TOKEN@", token), encoding="utf-8")
        for k, code in objects.items():
            files.append(here / f"{k}.o")
            files[-1].write_bytes(code)
        library = here / f"{name}{shared.SUFFIX}"
        shared.linked([source, *files], library, where, "-fvisibility=hidden")
        whole = here / "whole.fmu"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", xml.replace("@TOKEN@", token))
            archive.write(library, f"binaries/{_platform()}/{library.name}")
        return shared.placed({path: whole.read_bytes()})


def variables_of(model: Model, x: np.ndarray, parameters: Sequence[str]) -> list[Variable]:
    """The variables: time, generalized forces, parameters, coordinates, rates and states of elements, their derivatives."""
    out = [Variable("time", TIME, 0, 1, "independent", "s", "time")]
    for k, speed in enumerate(model.speeds):
        unit = {"rad/s": "N m", "m/s": "N"}.get(speed.unit, "")
        text = f"generalized force along {speed.name}"
        out.append(Variable(f"tau.{_name(speed.name)}", INPUT, k, 1, "input", unit, text, 0.0))
    offset = model.nv
    for name in parameters:
        value, (p, _) = np.asarray(get(model, name), float), model.structure.table[name]
        out.append(Variable(name, INPUT, offset, value.size, "parameter", _one_unit(p.unit), "", value))
        offset += value.size
    first = len(out)
    of_joints = [(c, "coordinate") for c in model.coordinates] + [(c, "rate") for c in model.speeds]
    states = [(_name(c.name), c.unit, text, 1) for c, text in of_joints]
    states += [(p.name, _one_unit(p.unit), "", math.prod(p.shape)) for p in model.structure.states]
    offset = 0
    for name, unit, text, size in states:
        start = x[offset] if size == 1 else x[offset : offset + size]
        out.append(Variable(name, STATE, offset, size, "output", unit, text, start))
        offset += size
    for k, v in enumerate(out[first:]):
        out.append(
            Variable(f"der({v.name})", RATE, v.offset, v.size, "local", _per_second(v.unit), "", None, first + k)
        )
    return out


def indicators_of(watched: Sequence[str], taken: set[str]) -> list[Variable]:
    """The event indicators. watched: the name of the event or element of each; taken: names of other variables."""
    out = []
    for k, owner in enumerate(watched):
        index = f"[{watched[:k].count(owner)}]" if watched.count(owner) > 1 else ""
        name = f"{owner}.indicator"
        while f"{name}{index}" in taken:
            name += "_"
        out.append(Variable(f"{name}{index}", INDICATOR, k, 1, "local", "", "event indicator"))
    return out


def _name(name: str) -> str:
    """The name with its index at the end, as in FMI: mode_rate[0] for mode[0]_rate."""
    return re.sub(r"(\[\d+\])(\w+)$", r"\2\1", name)


def _per_second(unit: str) -> str:
    """The unit of the rate of a number with a unit."""
    power = re.search(r"/s(\d*)$", unit)
    return f"{unit[: power.start()]}/s{int(power[1] or 1) + 1}" if power else unit and f"{unit}/s"


def _one_unit(unit: str) -> str:
    return "" if " or " in unit else unit


def _programs(motion: IntegratedModel, parameters: Sequence[str], where: str) -> dict[str, Program]:
    """The functions as programs, by name."""
    model, f = motion.model, jnp.zeros(())
    x = jnp.concatenate([jnp.zeros(model.nq + model.nv), jnp.asarray(motion.start)])
    tau = jnp.zeros(model.nv)
    values = [jnp.asarray(get(model, name), float) for name in parameters]

    def known(given: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(parameters, given, strict=True))

    def leaves(state: Any) -> list[Any]:
        return jax.tree_util.tree_leaves(state)

    state, _ = jax.eval_shape(lambda *z: motion.begin(z[0], z[1], z[2], known(z[3])), f, x, tau, values)
    own, tree = jax.tree_util.tree_flatten(state)

    def begin(t: Any, x: Any, tau: Any, values: Any) -> Any:
        state, x = motion.begin(t, x, tau, known(values))
        return [*leaves(state), x]

    def again(*own: Any) -> Any:
        return leaves(motion.step(tree.unflatten(own)))

    def place(t: Any, x: Any, tau: Any, values: Any, *own: Any) -> Any:
        return leaves(motion.placed(t, x, tau, known(values), tree.unflatten(own)))

    def iterate(t: Any, h: Any, tau: Any, values: Any, *own: Any) -> Any:
        new, x, ended, reached, wrong = motion.iterate(t, h, tree.unflatten(own), tau, known(values))
        return [*leaves(new), x, new.cell, ended, reached, wrong]

    def rates(t: Any, x: Any, tau: Any, values: Any, *own: Any) -> Any:
        return motion.rates(t, x, tau, known(values), tree.unflatten(own))

    def indicators(t: Any, x: Any, tau: Any, values: Any, *own: Any) -> Any:
        return motion.indicators(t, x, tau, known(values), tree.unflatten(own))

    def instant(t: Any, x: Any, tau: Any, values: Any, *own: Any) -> Any:
        return motion.next(t, x, tau, known(values), tree.unflatten(own))

    def slopes(t: Any, x: Any, tau: Any, values: Any, dt: Any, dx: Any, dtau: Any, along: Any, *own: Any) -> Any:
        return motion.slopes(t, x, tau, known(values), tree.unflatten(own), dt, dx, dtau, known(along))

    now = (f, x, tau, values)
    return {
        "begin": program(begin, now, "fmu_begin", where),
        "again": program(again, tuple(own), "fmu_again", where),
        "iterate": program(iterate, (f, f, tau, values, *own), "fmu_iterate", where),
        "place": program(place, (*now, *own), "fmu_place", where),
        "rates": program(rates, (*now, *own), "fmu_rates", where),
        "indicators": program(indicators, (*now, *own), "fmu_indicators", where),
        "instant": program(instant, (*now, *own), "fmu_instant", where),
        "slopes": program(slopes, (*now, *now, *own), "fmu_slopes", where),
    }


def source_of(name: str, variables: list[Variable], programs: dict[str, Program], dt: float) -> str:
    """The C source of the FMU: the programs, tables of the variables, and the functions of FMI."""
    inputs = sum(v.size for v in variables if v.kind == INPUT)
    states = sum(v.size for v in variables if v.kind == STATE)
    indicators = sum(v.size for v in variables if v.kind == INDICATOR)
    parts = ["#include <stdint.h>", "#include <stdlib.h>", "#include <string.h>"]
    for p in programs.values():
        parts.append(shared.definition(p, "static "))
    own = programs["again"].arguments
    parts.append("typedef struct {")
    parts += [f"    {shared.c_type(x)} s{k}[{max(x.size, 1)}];" for k, x in enumerate(own)]
    parts.append("} Loop;")
    table = ", ".join(f"{{{v.kind}, {v.offset}, {v.size}}}" for v in variables)
    starts = {INPUT: np.zeros(inputs), STATE: np.zeros(states)}
    for v in variables:
        if v.start is not None:
            starts[v.kind][v.offset : v.offset + v.size] = np.ravel(v.start)
    parts += [
        f"enum {{ INPUTS = {inputs}, STATES = {states}, INDICATORS = {indicators}, VARIABLES = {len(variables)} }};",
        "static const struct { int kind, offset, size; } variables[] = {" + table + "};",
        f"static const double start_u[] = {{{', '.join(map(repr, starts[INPUT].tolist())) or '0'}}};",
        f"static const double start_x[] = {{{', '.join(map(repr, starts[STATE].tolist()))}}};",
        f"static const double longest_step = {float(dt)!r};",
        'static const char token[] = "@TOKEN@";',
        *_calls(programs, own),
        *(file.read_text(encoding="utf-8") for file in RUNTIME),
    ]
    return "\n".join(parts)


def _calls(programs: dict[str, Program], own: Sequence[Any]) -> list[str]:
    """Functions with few arguments that call the programs; they return 0, or 1 if there is no memory left."""
    values = []
    _, _, tau, *more = programs["begin"].arguments
    at = tau.size
    for x in more:
        values.append(f"u + {at}")
        at += x.size
    given = ["u", *values]

    def to(loop: str) -> list[str]:
        return [f"{loop}->s{k}" for k in range(len(own))]

    def call(name: str, *arguments: str) -> str:
        return f"    return {programs[name].name}({', '.join(['1', *arguments])});"

    lines = [
        "static int loop_begin(double t, const double *from, const double *u, Loop *to, double *x)", "{", "    (void)u;",
        call("begin", "&t", "from", *given, *to("to"), "x"), "}",
        "static int loop_again(const Loop *from, Loop *to)", "{", call("again", *to("from"), *to("to")), "}",
        "static int loop_iterate(double t, double h, const double *u, const Loop *from, Loop *to, double *x,",
        "    int32_t *cell, uint8_t *ended, double *reached, int32_t *wrong)", "{", "    (void)u;",
        call("iterate", "&t", "&h", *given, *to("from"), *to("to"), "x", "cell", "ended", "reached", "wrong"), "}",
        "static int loop_place(double t, const double *x, const double *u, const Loop *from, Loop *to)", "{",
        "    (void)u;", call("place", "&t", "x", *given, *to("from"), *to("to")), "}",
    ]  # fmt: skip
    for name, out in (("rates", "dx"), ("indicators", "z"), ("instant", "next")):
        lines += [f"static int {name}_of(double t, const double *x, const double *u, const Loop *loop, double *{out})"]
        lines += ["{", "    (void)u;", call(name, "&t", "x", *given, *to("loop"), out), "}"]
    also = [x.replace("u", "du", 1) for x in given]
    lines += ["static int slopes_of(double t, const double *x, const double *u, const Loop *loop, double dt,"]
    lines += ["    const double *dx, const double *du, double *out)", "{"]
    lines += [call("slopes", "&t", "x", *given, "&dt", "dx", *also, *to("loop"), "out"), "}"]
    return lines


def _platform() -> str:
    machine = {"AMD64": "x86_64", "arm64": "aarch64", "i686": "x86"}.get(platform.machine(), platform.machine())
    return f"{machine}-{'darwin' if sys.platform == 'darwin' else 'linux'}"
