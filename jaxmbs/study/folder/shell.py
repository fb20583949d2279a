"""Shell commands in reports, terminals and errors, ready to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def command(name: str, *words: object, record: Any = None, trust: bool = False) -> str:
    """`jaxmbs name word ...`, quoted for a shell; with --trust if the run of this record needs it, or if `trust` is
    set.

    >>> command("resume", "runs/my first")
    "jaxmbs resume 'runs/my first'"
    >>> command("report", "run", record={"modules": {"drag.py": "5f1c", "tests.csv": "09ab"}})
    'jaxmbs report run --trust'
    """
    return shlex.join(["jaxmbs", name, *map(str, words), *(["--trust"] if trust or needs_trust(record) else [])])


def needs_trust(record: Any) -> bool:
    """Whether a run has Python modules or FMUs according to its provenance, as far as that can be read."""
    modules = record.get("modules") if isinstance(record, Mapping) else None
    return isinstance(modules, Mapping) and any(str(name).endswith((".py", ".fmu")) for name in modules)
