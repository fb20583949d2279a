"""Seals a run with a user's key, so that a sound run is not only undamaged but also known to come from the key's owner.

A seal is an HMAC-SHA256 with the key. There is one in the record; one in the note that the run is finished, which
covers the bytes of all numbers of the results; and one at the end of every file that a report writes. Nobody without
the key can change any of these unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from pathlib import Path

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import remedy

SEAL = "seal"  # in a record, and in the note that a run is finished
LEAST = 16  # fewest bytes of a key
_UNDER = re.compile(rb"\n<!-- jaxmbs ([0-9a-f]{64}) ([0-9a-f]{64}|-) -->\n\Z")


def key_of(file: str | Path | None) -> bytes | None:
    """The key in a file. Raises InputError if the file cannot be read, or if the key is so short that it could be
    guessed."""
    if file is None:
        return None
    try:
        found = Path(file).read_bytes()
    except OSError as error:
        raise InputError(Problem("--seal", f"{file} cannot be read: {remedy(error, 'is its name right?')}")) from None
    if len(found.strip()) < LEAST:
        message = (
            f"{file} has fewer than {LEAST} bytes, which could be guessed; make a key: openssl rand -hex 32 > {file}"
        )
        raise InputError(Problem("--seal", message))
    return found.strip()


def sealed_with(key: bytes, content: bytes) -> str:
    """The seal of this content with this key."""
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def same(seal: object, key: bytes, content: bytes) -> bool:
    """Whether `seal` is the seal of the content with this key."""
    return isinstance(seal, str) and hmac.compare_digest(seal.encode(), sealed_with(key, content).encode())


def marked(content: bytes, digest: str, key: bytes | None) -> bytes:
    """The content of a file that was generated from a run's results, with a line appended that holds a digest of the
    run's record (`digest`) and the content, and the seal. The formats of pages and archives allow such a line."""
    now = _digest(content, digest)
    return content + f"\n<!-- jaxmbs {now} {'-' if key is None else sealed_with(key, now.encode())} -->\n".encode()


def fault_of_marked(content: bytes, digest: str, key: bytes | None = None) -> str:
    """Why a file is not as it was generated from this run; "" if it is."""
    found = _UNDER.search(content[-200:])
    if found is None:
        return "does not state which run it belongs to"
    now = _digest(content[: len(content) - len(found[0])], digest)
    if now.encode() != found[1]:
        return "was changed, or was not made from these results"
    if key is not None and not same(found[2].decode(), key, now.encode()):
        return "was not made with this key"
    return ""


def contents(parts: Iterable[bytes]) -> str:
    """SHA-256 of bytes that are given part by part."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def _digest(content: bytes, digest: str) -> str:
    return hashlib.sha256(digest.encode() + content).hexdigest()
