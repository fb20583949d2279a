"""Errors in a file, reported to the person who wrote it: the place, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.model.errors import ModelError

if TYPE_CHECKING:
    from pydantic import ValidationError


@dataclass(frozen=True)
class Problem:
    """One error in a file.

    path: the key's dotted path, "mechanism.forces[2].stiffness"; message: what is wrong and what to do.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InputError(ModelError):
    """A file that cannot be used. `problems` lists everything found, each with the path of its key."""

    def __init__(self, problems: Problem | Sequence[Problem], file: str | Path | None = None) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.file = file
        super().__init__("\n".join(map(str, self.problems)))


def dotted(parts: Iterable[str | int]) -> str:
    """Path of a key as in TOML: numbers in brackets, names with special characters in quotes."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            bare = part.replace("_", "").replace("-", "").isalnum()
            path += ("." if path else "") + (part if bare else f'"{part}"')
    return path


def close(name: str, known: Iterable[str]) -> list[str]:
    """The known names that resemble a name."""
    return difflib.get_close_matches(name, [str(k) for k in known], n=3, cutoff=0.6)


def choices(name: str, known: Iterable[str], what: str = "known names") -> str:
    """The remedy for a name that does not exist: close matches, or the names that exist."""
    names = [str(k) for k in known]
    if near := close(name, names):
        return "did you mean " + " or ".join(f'"{n}"' for n in near) + "?"
    if not names:
        return f"there are no {what} here"
    return f"{what}: " + ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def problems_of(error: ValidationError, data: Mapping[str, Any]) -> list[Problem]:
    """The faults that pydantic found in `data`, with the paths as in the file."""
    return [_problem(e, data) for e in error.errors(include_url=False)]  # pyright: ignore[reportArgumentType]


def _problem(error: Mapping[str, Any], data: Mapping[str, Any]) -> Problem:
    parts = _path_in(data, error["loc"])
    kind, value = error["type"], error.get("input")
    context: Mapping[str, Any] = error.get("ctx", {})
    if kind == "unknown_key":
        key = str(parts[-1])
        message = f"unknown key (value {_shown(value)}); {_remedy(key, parts[:-1], context)}"
        return Problem(dotted(parts), message)
    if kind == "missing":
        return Problem(dotted(parts), "this key is missing; it has no default")
    if kind == "union_tag_not_found":
        return Problem(dotted((*parts, context["discriminator"].strip("'"))), "this key is missing; it names the type")
    if kind == "union_tag_invalid":
        allowed = context["expected_tags"].replace("'", "").split(", ")
        path = dotted((*parts, context["discriminator"].strip("'")))
        return Problem(path, f'"{context["tag"]}" does not exist; {choices(context["tag"], allowed, "types")}')
    if kind == "literal_error":
        allowed = [w.strip("'") for w in context["expected"].replace(" or ", ", ").split(", ")]
        return Problem(dotted(parts), f"{_shown(value)} is not allowed; {choices(str(value), allowed, 'allowed')}")
    if kind == "string_pattern_mismatch":
        message = f"{_shown(value)} is not a name; it must match {context['pattern']}"
        return Problem(dotted(p for p in parts if p != "[key]"), message)
    if kind == "float_type":
        return Problem(dotted(parts), f"needs one number, got {_shown(value)}")
    if kind == "model_type":
        return Problem(dotted(parts), f"needs a table, got {_shown(value)}")
    if kind == "value_error":
        return Problem(dotted(parts), str(context.get("error", error["msg"])))
    return Problem(dotted(parts), f"{error['msg']}; got {_shown(value)}")


def _remedy(key: str, parts: Sequence[str | int], context: Mapping[str, Any]) -> str:
    if context.get("instead"):
        return str(context["instead"])
    if parts and key in context["top"]:
        return f'"{key}" is a key of the file\'s top level: write it before the first [table]'
    return choices(key, context["known"], "allowed keys")


def _path_in(data: Any, loc: Sequence[str | int]) -> tuple[str | int, ...]:
    """pydantic's location without the tags of its unions, which are not keys of the file."""
    parts: list[str | int] = []
    node: Any = data
    for part in loc:
        if isinstance(node, Mapping):
            if part not in node and part in (node.get("type"), node.get("distribution")):
                continue
            node = node.get(part)
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            node = None
        parts.append(part)
    return tuple(parts)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
