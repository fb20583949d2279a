"""Output on terminals that lack some characters: similar ones are written instead, so that no command fails there."""

from __future__ import annotations

import codecs
import sys
import unicodedata
from typing import Any

_NEAR = {
    "·": " ",
    "–": "-",
    "—": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "µ": "u",
    "−": "-",
    "ß": "ss",
    "°": " deg",
}
_HANDLER = "jaxmbs.nearest"


def replace_unencodable(*streams: Any) -> None:
    """Make streams replace characters that their encoding lacks by similar ASCII ones: "²" by "2", "ü" by "u"."""
    codecs.register_error(_HANDLER, _nearest)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)


def has_every_letter() -> bool:
    """Whether standard output can encode all of Unicode."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(letter: str) -> str:
    near = _NEAR.get(letter) or unicodedata.normalize("NFKD", letter)
    return "".join(x for x in near if x.isascii()) or "?"
