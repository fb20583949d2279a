"""Compile options for programs that run for a few seconds only: less optimisation, faster compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxmbs.batching.cached_jit import CachedJit

# Without LLVM's optimisation and its newer emitters, XLA compiles in a fifth of the time (1.1 s against 5.7 s for the seven
# joints of [T 5], 64 starts), and a step takes half as long again (0.15 s against 0.10 s; a search takes about ten steps).
_QUICK: dict[str, str | bool | int] = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
if jax.__version_info__ < (0, 11):  # later versions have only the newer emitters
    _QUICK["xla_cpu_use_fusion_emitters"] = False


def compiled(fn: Callable[..., Any], quick: bool = True) -> CachedJit:
    """jax.jit(fn), with its programs cached by `CachedJit`; quick: on a CPU, compile with little optimisation."""
    options = _QUICK if quick and jax.default_backend() == "cpu" else None
    return CachedJit(jax.jit(fn, compiler_options=options), fn, options)
