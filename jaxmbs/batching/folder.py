"""The folder in which compiled programs are kept for later processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import jax


def is_off() -> bool:
    """Whether the user wants no program to be kept (JAXMBS_CACHE=off)."""
    return os.environ.get("JAXMBS_CACHE", "").lower() in ("off", "0", "no")


def folder() -> Path | None:
    """The folder of JAX's own cache, if that is set; else "compiled" in the folder JAXMBS_CACHE or the user's cache folder.

    None if JAXMBS_CACHE is off, or if the folder of JAX's cache is not on this machine. Without platformdirs, only a
    folder that is set is used.
    """
    own = jax.config.values.get("jax_compilation_cache_dir")
    if own:
        return None if "://" in str(own) else Path(own)
    if is_off():
        return None
    if wanted := os.environ.get("JAXMBS_CACHE", ""):
        return Path(wanted) / "compiled"
    with contextlib.suppress(ImportError):
        from platformdirs import user_cache_dir

        return Path(user_cache_dir("jaxmbs", appauthor=False)) / "compiled"
    return None
