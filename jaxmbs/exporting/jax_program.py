"""Programs of JAX: the bytes of `jax.export`, which another version of JAX or another machine reads."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export

from jaxmbs.errors import ModelError
from jaxmbs.exporting.shared import placed

PLATFORMS = ("cpu", "cuda")


def written(fn: Callable[..., Any], args: Sequence[Any], path: Path, where: str) -> list[Path]:
    """Write the program of fn(*args), to be read by `jax.export.deserialize`."""
    if importlib.util.find_spec("flatbuffers") is None:
        raise ModelError(f"{where}: programs of JAX need flatbuffers: pip install 'jaxmbs[export]'")
    try:
        found = jax.export.export(jax.jit(fn), platforms=PLATFORMS)(*args)
        content = bytes(found.serialize())
    except (ValueError, NotImplementedError, TypeError) as error:
        raise ModelError(f"{where}: JAX cannot export the function: {str(error).partition(chr(10))[0]}") from error
    return placed({path: content})
