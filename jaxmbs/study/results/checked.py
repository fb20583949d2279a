"""What `check_steps` found, kept in the run's folder for its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxmbs.io.reports import plain
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.layout import STEPS
from jaxmbs.study.folder.seal import fault_of_marked, marked
from jaxmbs.study.folder.storage import write_whole
from jaxmbs.study.results.provenance import salt

if TYPE_CHECKING:
    from jaxmbs.study.results.store import Store

CONCLUSIONS = {  # by the entry "settled"
    True: "no verdict depends on the steps",
    False: "the steps leave a verdict open",
    None: "the study has no criteria",
}
_MOST_BYTES = 1 << 24  # a longer file is not read


def keep(store: Store, found: Mapping[str, Any]) -> None:
    """Write what was found into the folder of its run, marked as belonging to it. Raises InputError if that cannot be
    written."""
    content = json.dumps(plain(dict(found)), indent=1).encode()
    try:
        write_whole(store.folder / STEPS, marked(content, f"{salt(store.provenance):x}", store.key))
    except OSError as error:
        raise storage.unwritten(store.folder, error, store.provenance) from None


def kept(store: Store) -> dict[str, Any] | None:
    """What was found in this run; None if it was not checked, or if the file is not as it was written."""
    try:
        path = store.folder / STEPS
        content = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return None
    if fault_of_marked(content, f"{salt(store.provenance):x}", store.key):
        return None
    found, _ = json.JSONDecoder().raw_decode(content.decode(errors="replace"))
    return found
