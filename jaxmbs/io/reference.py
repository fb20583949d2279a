"""The key reference: every key of a file with its kind, unit, default and a line of documentation, read from the tables."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.io.generated import Made
from jaxmbs.io.tables import Table
from jaxmbs.model.fields import declared


@dataclass(frozen=True)
class Key:
    """One key. path: includes the `type` of its table, "mechanism.forces.pusher.stroke"; default: None if required.

    header: the header line of its table in a file; of: what the table describes.
    """

    path: str
    kind: str
    unit: str
    default: str | None
    doc: str
    header: str
    of: str

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def keys(table: type[Table], under: str = "") -> list[Key]:
    """All keys of a file's table, or those under a path: a full path, or any part of one such as "pusher".

    Raises InputError with close matches if there are none.
    """
    every = list(_keys(table, "", ""))
    found = [k for k in every if f".{under}." in f".{k.path}."] if under else every
    if not found:
        parts = dict.fromkeys(part for k in every for part in (k.path, *k.path.split(".")))
        raise InputError(Problem(under, f"is not a key of a file; {choices(under, parts, 'keys')}"))
    return found


@dataclass(frozen=True)
class Entry:
    """A line of the table of contents: a table of a file, what it is for, the types that it may have or, without types,
    its keys."""

    table: str
    doc: str
    types: tuple[str, ...]
    keys: tuple[str, ...]


_HEADER = re.compile(r'(?P<table>\[+(?P<path>[^\]]*)\]+)(?: \w+ = "(?P<type>\w+)")?')


def table_of_contents(every: Sequence[Key]) -> list[Entry]:
    """The tables of a file in order, without those that belong to one type only."""
    docs = {k.path: k.doc for k in every}
    tables: dict[str, tuple[str, list[str], list[str]]] = {"": ("", [], [])}
    types: set[str] = set()
    for k in every:
        found = _HEADER.fullmatch(k.header)
        if found is None:
            tables[""][2].append(k.name)
            continue
        path = found["path"].removesuffix(".NAME")
        if any(f"{path}.".startswith(f"{t}.") for t in types):
            continue
        _, own, names = tables.setdefault(found["table"], (docs.get(path) or k.of, [], []))
        if found["type"]:
            types.add(f"{path}.{found['type']}")
            own += [found["type"]] * (found["type"] not in own)
        elif k.name not in names:
            names.append(k.name)
    inside = {path.split(".", 1)[0] for path in (_HEADER.fullmatch(t)["path"] for t in tables if t)}  # pyright: ignore
    tables[""] = ("at the top level, before the first [table]", [], [k for k in tables[""][2] if k not in inside])
    return [Entry(t, doc, tuple(own), () if own else tuple(names)) for t, (doc, own, names) in tables.items()]


def json_schema(table: type[Table]) -> dict[str, Any]:
    """The JSON schema of a file's table, with documentation and units, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_with_units(table.model_json_schema())}


def _with_units(node: Any) -> Any:
    """The schema with kinds and units moved into the descriptions, since JSON Schema has no keyword for them."""
    if isinstance(node, list):
        return [_with_units(x) for x in node]
    if not isinstance(node, dict):
        return node
    unit, kind = node.get("unit"), node.get("kind")
    if isinstance(unit, str) and isinstance(kind, str):
        node = {k: x for k, x in node.items() if k not in ("unit", "kind")}
        said = f"{node.get('description', '')} ({kind}{f', {unit}' if unit else ''})"
        node["description"] = said.strip()
    return {k: _with_units(x) for k, x in node.items()}


def _keys(table: type[Table], path: str, header: str) -> Iterator[Key]:
    inner = []
    for name, info in table.model_fields.items():
        here = f"{path}.{name}" if path else name
        extra: Any = info.json_schema_extra
        kind = f'"{get_args(info.annotation)[0]}"' if extra["kind"] == "word" else extra["kind"]
        default = None if info.is_required() else _shown(info.get_default(call_default_factory=True))
        yield Key(here, kind, extra["unit"], default, info.description or "", header, _of(table))
        inner += [(t, here, shape) for t, shape in _tables(info.annotation)]
    for t, here, shape in inner:
        line = {"list": f"[[{here}]]", "dict": f"[{here}.NAME]", "": f"[{here}]"}[shape]
        tag = next((k for k in ("type", "distribution") if k in t.model_fields), None)
        word = get_args(t.model_fields[tag].annotation)[0] if tag else ""
        yield from _keys(t, f"{here}.{word}" if word else here, f'{line} {tag} = "{word}"' if word else line)


def _tables(annotation: Any) -> Iterator[tuple[type[Table], str]]:
    """The tables that an annotation allows, and whether they are in a list ("list"), under names ("dict") or alone ("")."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Table):
        yield annotation, ""
    elif origin in (list, dict):
        shape = "list" if origin is list else "dict"
        yield from ((t, shape) for t, _ in _tables(arguments[-1]))
    elif origin is Annotated:
        yield from _tables(arguments[0])
    elif origin in (Union, types.UnionType):
        for a in arguments:
            yield from _tables(a)


def _of(table: type[Table]) -> str:
    """First paragraph of the docstring of what a table describes."""
    cls = getattr(table, "makes", table) if issubclass(table, Made) else table
    text = (cls.__doc__ or "").split("\n\n")[0]
    return " ".join(text.split())


def _shown(default: Any) -> str:
    """A default as TOML writes it; "" if it is empty."""
    if default is None or default == [] or default == {} or isinstance(default, Table):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return f"[{', '.join(map(_shown, default))}]"
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, (int, float)):
        return repr(default)
    return "{" + ", ".join(f"{d.name} = {_shown(getattr(default, d.name))}" for d in declared(type(default))) + "}"
