"""Mechanisms to TOML files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.io.catalogue import GROUP, builtin, installed
from jaxmbs.model import Model
from jaxmbs.model.constraints import FunctionConstraint
from jaxmbs.model.events.base import Arming
from jaxmbs.model.fields import Declared, declared, type_name
from jaxmbs.model.kinds import Kind
from jaxmbs.model.parameters import Values, concrete_components
from jaxmbs.model.places import Body, Closure, Hinge, Surroundings
from jaxmbs.model.structure import WORLD

Table = dict[str, Any]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")


def save(model: Model, path: str | Path) -> None:
    """Write a model as a TOML file at `path` that `mbs.load` reads back to the same numbers, bit for bit.

    Numbers that equal their defaults are left out. An existing file is replaced. What `mbs.free` turned into numbers is
    pinned again where it is 0 or +-1. Raises ModelError, before anything is written, with the name of everything that no
    file can hold: functions (General, Holonomic, External, ...), classes that are neither the library's nor those of an
    installed package (entry points of the group "jaxmbs.elements"), and batches.

    >>> model = mbs.library.double_pendulum(mass_2=0.1 + 0.2).build()
    >>> mbs.save(model, "pendulum.toml")
    >>> mbs.get(mbs.load("pendulum.toml"), "lower.mass")
    0.30000000000000004
    """
    text = toml_text({"mechanism": _Writer(model).mechanism()})
    Path(path).write_text(text, encoding="utf-8")


class _Writer:
    def __init__(self, model: Model):
        self.model, self.faults = model, []
        for name, x in model.overrides.items():
            if np.shape(x) not in model.structure.table[name][0].forms:
                self.faults.append(f"parameter {name!r} is a batch; save one instance")
        self.known = set((*builtin(), *installed()))

    def mechanism(self) -> Table:
        """The [mechanism] table; ModelError if anything cannot stand in a file."""
        s, names = self.model.structure, self._names
        if self.faults:
            raise ModelError(_joined(self.model, self.faults))
        self.values = Values(s.table, self.model.numbers, self.model.overrides, None)
        out: Table = {"name": s.name, **self._of(Surroundings(), "")}
        if s.held:
            out["held"] = list(s.held)
        if s.off:
            out["off"] = list(s.off)
        out["bodies"] = [{"name": names(b), **self._of(Body(), f"{b}.")} for b in self.model.body_names]
        out["joints"] = [self._joint(link) for link in s.links]
        out["loops"] = [
            {"name": names(x.name), **self._typed(x.joint, f"{x.name}.", f"loop {x.name!r}"),
             **self._of(Closure(x.body_a, x.body_b), f"{x.name}.")}
            for x in s.loops
        ]  # fmt: skip
        for key, elements in (("forces", s.forces), ("constraints", s.constraints)):
            out[key] = [
                {"name": names(x.name), **self._typed(x.element, f"{x.name}.", f"{key[:-1]} {x.name!r}")}
                for x in elements
            ]
        out["events"] = [self._event(e) for e in s.events]
        out["visuals"] = [self._plain(x) for x in s.visuals]
        if self.faults:
            raise ModelError(_joined(self.model, self.faults))
        return {k: v for k, v in out.items() if v != []}

    def _names(self, name: str) -> str:
        if not NAME.fullmatch(name):
            self.faults.append(f"the name {name!r} cannot stand in a file; names have letters, digits, _ and - only")
        return name

    def _joint(self, link: Any) -> Table:
        place = Hinge(self._body(link.parent), link.body, releasable=link.hinge is not None)
        own = self._typed(link.joint, f"{link.name}.", f"joint {link.name!r}")
        if link.hinge is not None:  # its numbers are structure: a unit axis along z
            own = {"type": type_name(type(link.hinge)), **self._plain(link.hinge)}
        return {"name": self._names(link.name), **own, **self._of(place, f"{link.name}.")}

    def _body(self, index: int) -> str:
        return self.model.body_names[index] if index >= 0 else WORLD

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
        if isinstance(x, FunctionConstraint):
            self.faults.append(f"{where} is {cls.__name__}, whose function cannot stand in a file")
            return {}
        functions = [d.name for d in declared(cls) if d.kind is Kind.FUNCTION and getattr(x, d.name) is not None]
        if functions:
            self.faults.append(
                f"{where} is {cls.__name__}, whose functions ({', '.join(functions)}) cannot stand in a file"
            )
        elif cls not in self.known:
            self.faults.append(
                f"{where} is {cls.__name__}, which no installed package has as an entry point of {GROUP!r}"
            )
        return {"type": type_name(cls), **self._of(x, prefix)}

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
            elif d.kind.is_number:
                c = [float(v) for v in self.values.components(prefix + d.name)]
                if d.required or c != _default(d):
                    out[d.name] = shaped(d.kind, c)
            elif d.kind is not Kind.FUNCTION and (d.required or value != d.default) and value is not None:
                out[d.name] = list(value) if isinstance(value, tuple) else value
        return out

    def _plain(self, x: Any) -> Table:
        """Fields of an element that holds its own numbers."""
        out: Table = {}
        for d in declared(type(x)):
            value = getattr(x, d.name)
            if d.kind is Kind.PART:
                value = self._plain(value)
            elif d.kind.is_number:
                value = np.asarray(value, float).tolist()
            if d.required or value not in (d.default, "", {}):
                out[d.name] = value
        return out


def shaped(kind: Kind, c: list[float]) -> Any:
    """Components as a file has them."""
    if kind is Kind.ROTATION:
        return [c[0:3], c[3:6], c[6:9]]
    if kind is Kind.INERTIA:
        xx, yy, zz, xy, xz, yz = c
        return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]] if any(c[3:]) else [xx, yy, zz]
    return c[0] if kind in (Kind.NUMBER, Kind.NOT_NEGATIVE, Kind.POSITIVE) else c


def _default(d: Declared) -> list[float]:
    return [float(x) for x in concrete_components(d.kind, d.default, d.name)]


def _joined(model: Model, faults: Iterable[str]) -> str:
    return f"save: model {model.name!r} cannot be written: " + "; ".join(faults)


# --- TOML, with a list or a part on one line, which the writers of this format break up ----------------------------------


def toml_text(tables: Mapping[str, Any], above: str = "") -> str:
    """A document of tables, lists of tables and values."""
    plain = [f"{k} = {_value(v)}" for k, v in tables.items() if not _is_section(v)]
    parts = ["\n".join(plain)] if plain else []
    for key, value in tables.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, Mapping) and _is_section(value):
            parts.append(f"[{path}]\n{toml_text(value, path)}")
        elif _is_section(value):
            parts += ["\n".join([f"[[{path}]]", *(f"{k} = {_value(v)}" for k, v in row.items())]) for row in value]
    return "\n\n".join(parts) + ("" if above else "\n")


def _is_section(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_is_section(v) for v in value.values())
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _value(x: Any) -> str:
    if isinstance(x, Mapping):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in x.items()) + " }"
    if isinstance(x, list):
        return "[" + ", ".join(map(_value, x)) + "]"
    if isinstance(x, str):
        return json.dumps(x, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(x).lower() if isinstance(x, bool) else repr(x)
