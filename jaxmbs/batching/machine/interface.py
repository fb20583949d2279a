"""How handlers, the functions that XLA calls, are written in LLVM's language.

XLA's C interface for custom calls (`c_api.h` in `jax.ffi.include_dir()`) passes structures, whose fields are given here by
their offsets in bytes. In a text, `read` and `write` access a field; words in capitals are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAJOR, MINOR = 0, 1  # of the interface: everything used here exists since this version

_ASKED = f"""  %extension = read ptr %call 8
  %asked = icmp ne ptr %extension, null
  br i1 %asked, label %asking, label %start
asking:
  %kind = read i32 %extension 8
  %version = icmp eq i32 %kind, 1
  br i1 %version, label %answer, label %start
answer:
  %metadata = read ptr %extension 24
  write i32 {MAJOR} %metadata 24
  write i32 {MINOR} %metadata 28
  write i32 TRAITS %metadata 32
  ret ptr null
start:"""
_FIELD = re.compile(r"^  (?:(%\S+) = read (\S+)|write (\S+) (\S+)) (%\S+) (\d+)$", re.MULTILINE)


def asked(traits: int = 0) -> str:
    """The beginning of a handler of %call. Some calls only ask for the interface's version and the handler's traits."""
    return _ASKED.replace("TRAITS", str(traits))


def written(text: str, known: Mapping[str, object]) -> str:
    """A text with the values of its words in capitals, and its fields as instructions."""
    for name, value in known.items():
        text = text.replace(name, str(value))
    return _FIELD.sub(_field, text)


def _field(found: re.Match[str]) -> str:
    """Instructions for "NAME = read TYPE BASE OFFSET" and "write TYPE VALUE BASE OFFSET", with the offset in bytes."""
    name, read, written, value, base, offset = found.groups()
    at = f"%at.{found.start()}"
    address = f"  {at} = getelementptr i8, ptr {base}, i64 {offset}\n"
    return address + (f"  {name} = load {read}, ptr {at}" if name else f"  store {written} {value}, ptr {at}")
