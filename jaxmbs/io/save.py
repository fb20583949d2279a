"""Writing mechanisms to TOML files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.io.catalogue import GROUP, Classes, Place, places
from jaxmbs.io.fmu import SAMPLING, Fmu, Law, Reading
from jaxmbs.model import Model
from jaxmbs.model.bodies import Body, Closure, Hinge, Surroundings
from jaxmbs.model.compounds import Compound, Placing
from jaxmbs.model.control import Controller
from jaxmbs.model.control.controller import Layout
from jaxmbs.model.events.base import Arming
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Declared, declared, parts_in, type_name
from jaxmbs.model.parameters import Values, concrete_components
from jaxmbs.model.structure import WORLD

Table = dict[str, Any]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
NAMES = (
    "a file can name a class or function that a package provides as such an entry point (or the module that defines it), or "
    'that is defined at the top level of a Python file; pass that file: modules=["my_functions.py"]'
)


def save(model: Model, path: str | Path, modules: Iterable[str | Path | ModuleType] = ()) -> None:
    """Write a model as a TOML file at `path` that `mbs.load` reads back to the same numbers, bit for bit.

    Numbers that equal their defaults are left out. An existing file is replaced. Components that `mbs.free` has
    unpinned are pinned again if they are 0 or +-1. Functions (General, Holonomic, External, ...) and user-defined
    classes are written by name if an installed package provides them as entry points of the group "jaxmbs.elements" (a
    function, or a module that defines it), if they come from a file that named their module, or if `modules` names the
    Python files that define them. These Python files, and FMUs, are written next to the TOML file, and are run only for
    readers who trust it (`mbs.load(path, trust=True)`). Raises ModelError, before anything is written, with a list of
    everything that a file cannot contain: other functions and classes, and batches.

    >>> model = mbs.library.double_pendulum(mass_2=0.1 + 0.2).build()
    >>> mbs.save(model, "pendulum.toml")
    >>> mbs.get(mbs.load("pendulum.toml"), "lower.mass")
    0.30000000000000004
    """
    writer = Writer(model, modules)
    mechanism = writer.mechanism()
    above = {"modules": list(writer.modules)} if writer.modules else {}
    write(Path(path), toml_text({**above, "mechanism": mechanism}).encode(), writer.files)


def write(path: Path, content: bytes, files: Mapping[str, bytes]) -> None:
    """Write a file, and next to it the `files` that it names. Raises ModelError, before anything is written, if a file
    of one of these names, but with other content, exists there."""
    for name, source in files.items():
        there = path.parent / name
        if there.exists() and there.read_bytes() != source:
            raise ModelError(f"save: a different file {name} already exists beside {path.name}; choose another folder")
    for name, source in files.items():
        (path.parent / name).write_bytes(source)
    path.write_bytes(content)


def batches(model: Model) -> list[str]:
    """The parameters of a model that have several values."""
    return [k for k, x in model.overrides.items() if np.shape(x) not in model.structure.table[k][0].forms]


class Writer:
    """Builds the tables and collects what must be next to their file, by name: `modules` (the content of these files), and
    `fmus`."""

    def __init__(self, model: Model, modules: Iterable[str | Path | ModuleType] = (), more: Classes = ()):
        self.model, self.faults, self.nameless = model, [], False
        self.modules: dict[str, bytes] = {}
        self.fmus: dict[str, Fmu] = {}
        self.faults += [f"parameter {name!r} is a batch; save one instance" for name in batches(model)]
        self.places = places(modules) | {id(c): Place(type_name(c)) for c in more}

    @property
    def files(self) -> dict[str, bytes]:
        """The content of all files that must be there."""
        return {**self.modules, **{name: x.content for name, x in self.fmus.items()}}

    def mechanism(self) -> Table:
        """The [mechanism] table; raises ModelError if anything cannot be written in a file."""
        s, names = self.model.structure, self._names
        self.check()
        self.values = Values(s.table, self.model.numbers, self.model.overrides, None)
        out: Table = {"name": s.name, **self._of(Surroundings(), "")}
        if s.held:
            out["held"] = list(s.held)
        if off := [name for name in s.off if name not in s.delayed]:
            out["off"] = off
        out["bodies"] = [{"name": names(b), **self._of(Body(), f"{b}.")} for b in self.model.body_names]
        out["joints"] = [self._joint(link) for link in s.links]
        out["loops"] = [
            {"name": names(x.name), **self._typed(x.joint, f"{x.name}.", f"loop {x.name!r}"),
             **self._of(Closure(x.body_a, x.body_b), f"{x.name}.")}
            for x in s.loops
        ]  # fmt: skip
        for key, elements in (("forces", s.forces), ("constraints", s.constraints), ("sensors", s.sensors)):
            out[key] = [
                {"name": names(x.name), **self._typed(x.element, f"{x.name}.", f"{key[:-1]} {x.name!r}")}
                for x in elements
            ]
        for held in (f"{x.name}.reading" for x in s.sensors if x.element.period is not None):
            if any(self.values.components(held)):
                self.faults.append(f"the last reading of a sensor has no key in a file: {held!r}")
        own = [x for x in s.controllers if not isinstance(x.fixed.fn, Law)]
        out["controllers"] = [self._controller(x.name, x.fixed) for x in own]
        out["fmus"] = [self._fmu(x.name, x.fixed) for x in s.controllers if isinstance(x.fixed.fn, Law)]
        for table in out["forces"]:
            if table["name"] in s.delayed:
                table["delay"] = float(self.values[f"{table['name']}.delay"])
        out["events"] = [self._event(e) for e in s.events if e.name not in s.delayed]
        out["visuals"] = [plain(x) for x in s.visuals]
        self.check()
        return {k: v for k, v in out.items() if v != []}

    def check(self) -> None:
        """Raise ModelError for everything that cannot be written in a file."""
        if self.faults:
            faults = [*self.faults, *([NAMES] if self.nameless else [])]
            raise ModelError(f"save: model {self.model.name!r} cannot be written: " + "; ".join(faults))

    def _names(self, name: str) -> str:
        if not NAME.fullmatch(name):
            self.faults.append(
                f"the name {name!r} cannot be written in a file, where names consist of letters, digits, _ and -; "
                "rename the element"
            )
        return name

    def _joint(self, link: Any) -> Table:
        place = Hinge(self._body(link.parent), link.body, releasable=link.hinge is not None)
        own = self._typed(link.joint, f"{link.name}.", f"joint {link.name!r}")
        if link.hinge is not None:  # its numbers belong to the structure: a unit axis along z
            own = {"type": type_name(type(link.hinge)), **plain(link.hinge)}
        return {"name": self._names(link.name), **own, **self._of(place, f"{link.name}.")}

    def _body(self, index: int) -> str:
        return self.model.body_names[index] if index >= 0 else WORLD

    def _controller(self, name: str, x: Controller) -> Table:
        where = f"controller {name!r}"
        own = {"name": self._names(name), **self._of(x, f"{name}.")}
        self._functions(x, where)
        self._waiting(name, where)
        if isinstance(x.state, Layout) and x.state.size:
            own["state"] = [float(v) for v in self.values.components(f"{name}.state")]
            if x.state != Layout.of(np.zeros(len(own["state"]))):
                self.faults.append(
                    f"{where} has a state with the shapes {x.state}; in a file it is one list of numbers, as state=[1.0] is"
                )
        return own

    def _waiting(self, name: str, where: str) -> None:
        """Note commands of a controller that wait for its delay."""
        waiting = f"{name}.commands"
        if waiting in self.model.structure.table and self.values.components(waiting)[-1] != 0:
            self.faults.append(
                f"{where} has commands that wait for its delay, for which a file has no key: {waiting!r}"
            )

    def _fmu(self, name: str, x: Controller) -> Table:
        """The table of a controller that is an FMU."""
        law, where, given = x.fn, f"controller {name!r}", self._of(x, f"{name}.")
        assert isinstance(law, Law)
        own = {"name": self._names(name), "file": law.fmu.name, **{k: y for k, y in given.items() if k in SAMPLING}}
        self._waiting(name, where)
        if any(self.values.components(f"{name}.state")):
            self.faults.append(f"{where} has a state of an FMU that has begun, for which a file has no key")
        if not law.fmu.name.endswith(".fmu"):
            self.faults.append(f"{where} is the FMU {law.fmu.name}, whose name must end with .fmu; rename its file")
        if self.fmus.setdefault(law.fmu.name, law.fmu) != law.fmu:
            self.faults.append(f"{where} is a different {law.fmu.name} than another one; rename one of the two files")
        for variable, source in law.sources:
            if callable(source):
                self.faults.append(
                    f"{where} is an FMU whose input {variable!r} is a function; a file can name a sensor instead"
                )
        inputs = {k: str(y) if isinstance(y, Reading) else y for k, y in law.sources if not callable(y)}
        numbers = given.get("parameters", {})
        rest = {
            "inputs": inputs, "outputs": {k: y[0] if len(y) == 1 else list(y) for k, y in law.writes},
            "parameters": {k: numbers[y] for k, y in law.names},
        }  # fmt: skip
        return own | {key: y for key, y in rest.items() if y or key == "outputs"}

    def _event(self, e: Any) -> Table:
        prefix, where = f"{e.name}.", f"event {e.name!r}"
        out: Table = {"name": self._names(e.name)}
        out |= {"after": e.after} if e.after is not None else {}
        out |= {"repeat": True} if e.repeat else {}
        out |= self._of(Arming(0.0), prefix) if e.waits else {}
        out["when"] = self._typed(e.when, prefix, where)
        return out | {"then": [self._typed(a, f"{e.prefix(a)}.", where) for a in e.then]}

    def _typed(self, x: Any, prefix: str, where: str) -> Table:
        """Table of an element with its type, as `mbs.load` looks it up."""
        cls = type(x)
        self._functions(x, where)
        return {"type": self.name(cls, f"{where} is {cls.__name__}, which"), **self._of(x, prefix)}

    def name(self, x: Any, said: str) -> str:
        """The name by which a file finds a class or a function; its module is added to `modules`."""
        place = self.places.get(id(x))
        if place is None:
            self.faults.append(
                f"{said} is neither provided by an installed package, as an entry point of {GROUP!r}, nor by a Python file"
            )
            self.nameless = True
            return ""
        if place.module is not None:
            name, content = place.module
            if self.modules.setdefault(name, content) != content:
                self.faults.append(f"{said} comes from a different {name} than the others; rename one of the two files")
        return place.name

    def _of(self, x: Any, prefix: str) -> Table:
        """Fields of an element whose numbers are parameters of the model; defaults are left out."""
        out: Table = {}
        for d in declared(type(x)):
            value = getattr(x, d.name)
            if d.kind is Kind.PART:
                part = self._of(value, f"{prefix}{d.name}.")
                if type(value) is not d.of:
                    part = {"type": type_name(type(value)), **part}
                if part:
                    out[d.name] = part
            elif d.kind is Kind.FIXED_PART:
                out[d.name] = {"type": type_name(type(value)), **plain(value)}
            elif d.kind.is_number:
                c = [float(v) for v in self.values.components(prefix + d.name)]
                if d.required or c != _default(d):
                    out[d.name] = shaped(d.kind, c)
            elif d.kind is Kind.NUMBERS:
                own = {n: shaped(k, [float(v) for v in self.values.components(prefix + n)]) for n, k in value}
                out |= {d.name: own} if own else {}
            elif d.kind in (Kind.FUNCTION, Kind.FUNCTIONS):
                names = [self.places[id(fn)].name for fn in functions_of(d, x) if id(fn) in self.places]
                if names:
                    out[d.name] = names if d.kind is Kind.FUNCTIONS else names[0]
            elif d.kind is not Kind.ARRAYS and (d.required or value != d.default) and value is not None:
                out[d.name] = list(value) if isinstance(value, tuple) else value
        return out

    def own(self, x: Any, where: str) -> Table:
        """Table of an element that holds its own numbers, with its type."""
        return {
            "type": self.name(type(x), f"{where} is {type(x).__name__}, which"),
            **plain(x), **self._functions(x, where),
        }  # fmt: skip

    def _functions(self, x: Any, where: str) -> Table:
        """The names of the functions in the fields of an element."""
        out: Table = {}
        for d in declared(type(x)):
            said = f"{where} is {type(x).__name__}, whose function {d.key}"
            names = [self.name(fn, f"{said} ({getattr(fn, '__name__', 'a callable')})") for fn in functions_of(d, x)]
            if names:
                out[d.key] = names if d.kind is Kind.FUNCTIONS else names[0]
        return out


def plain(x: Any) -> Table:
    """Fields of an element that holds its own numbers, which are not parameters of the model, without defaults."""
    out: Table = {}
    for d in declared(type(x)):
        value = getattr(x, d.name)
        if parts := parts_in(d, value):
            tables = [({} if type(x) is d.of else {"type": type_name(type(x))}) | plain(x) for _, x in parts]
            if isinstance(x, Compound):  # its parts have poses
                tables = [table | plain(Placing(pose)) for table, (_, pose) in zip(tables, value, strict=True)]
            value = tables if d.kind is Kind.PARTS else tables[0]
        elif d.kind.is_number and value is not None:
            value = np.asarray(value, float).tolist()
        usual = list(d.default) if isinstance(d.default, tuple) and isinstance(value, list) else d.default
        if d.required or (value is not None and value not in (usual, "", {})):
            out[d.key] = value
    return out


def functions_of(d: Declared, x: Any) -> tuple[Any, ...]:
    """The functions in a field of an element; none if it holds something else."""
    value = getattr(x, d.name)
    if d.kind is Kind.FUNCTIONS:
        return tuple(value)
    return (value,) if d.kind is Kind.FUNCTION and value is not None else ()


def shaped(kind: Kind, c: list[float]) -> Any:
    """Components of a parameter in the form that a file contains."""
    if kind is Kind.ROTATION:
        return [c[0:3], c[3:6], c[6:9]]
    if kind is Kind.INERTIA:
        xx, yy, zz, xy, xz, yz = c
        return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]] if any(c[3:]) else [xx, yy, zz]
    return c[0] if kind in (Kind.NUMBER, Kind.NOT_NEGATIVE, Kind.POSITIVE) else c


def _default(d: Declared) -> list[float]:
    return [float(x) for x in concrete_components(d.kind, d.default, d.name)]


# --- TOML with each list or part on one line, which the usual writers of this format would break up ------------------


def toml_text(tables: Mapping[str, Any], above: str = "") -> str:
    """A TOML document of tables, lists of tables and values."""
    plain = [f"{_key(k)} = {_value(v)}" for k, v in tables.items() if not _is_section(v)]
    parts = ["\n".join(plain)] if plain else []
    for key, value in tables.items():
        path = f"{above}.{_key(key)}" if above else _key(key)
        if isinstance(value, Mapping):
            head = [] if value and all(map(_is_section, value.values())) else [f"[{path}]"]
            parts.append("\n".join([*head, toml_text(value, path)]))
        elif _is_section(value):
            parts += [
                "\n".join([f"[[{path}]]", *(f"{_key(k)} = {_value(v)}" for k, v in row.items())]) for row in value
            ]
    return "\n\n".join(parts) + ("" if above else "\n")


def _key(name: str) -> str:
    return name if NAME.fullmatch(name) else _value(name)


def _is_section(value: Any) -> bool:
    """Whether a value has its own header: a table, or a list of tables."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)
    )


def _value(x: Any) -> str:
    if isinstance(x, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in x.items()) + " }"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(_value, x)) + "]"
    if isinstance(x, str):
        return json.dumps(x, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(x).lower() if isinstance(x, bool) else repr(x)
