"""Compiles the LLVM text of a kernel to PTX, the language that the drivers of NVIDIA GPUs compile in turn.

LLVM does all optimisation that concerns the program; the driver chooses registers and instructions. The library of
mathematical functions (libdevice) comes with CUDA, in a wheel beside JAX's.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from jaxmbs.errors import ModelError

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURE = "sm_80"  # the oldest that is served: its PTX runs on all that came after
_FEATURES = "+ptx70"
_LEVEL = 3  # of LLVM's optimisation
_LIBRARY = "libdevice.10.bc"


def ptx(text: str, linked: bool = True) -> str:
    """The PTX of a kernel's text; linked: with the functions of the library that it calls, else it only names them."""
    import llvmlite.binding as llvm

    _prepared()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=ARCHITECTURE, features=_FEATURES, opt=_LEVEL)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    if linked and "@__nv_" in text:
        _link(module)
    options = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
    # threads are the vectors; unrolled loops take registers
    options.slp_vectorization = options.loop_vectorization = options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    first = llvm.create_new_module_pass_manager()
    first.add_always_inliner_pass()
    first.add_simplify_cfg_pass()
    first.add_sroa_pass()
    first.run(module, passes)
    passes.getModulePassManager().run(module, passes)
    return _without_names(machine.emit_assembly(module))


def _without_names(text: str) -> str:
    """The PTX without comments."""
    return re.sub(r"[ \t]*//[^\n]*", "", text)


def _link(module: Any) -> None:
    """Add the library's functions that a module calls."""
    import llvmlite.binding as llvm

    library = llvm.parse_bitcode(_library().read_bytes())
    library.triple, library.data_layout = TRIPLE, module.data_layout
    module.link_in(library)
    for x in (*module.functions, *module.global_variables):
        if x.name.startswith("__") and not x.is_declaration:
            x.linkage = "internal"


@functools.cache
def _prepared() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def _library() -> Path:
    """The file of CUDA's mathematical functions."""
    wheels = [Path(p) / "nvidia" for p in sys.path]
    places = [p for w in wheels for p in sorted(w.glob(f"*/nvvm/libdevice/{_LIBRARY}"), reverse=True)]
    roots = [os.environ[k] for k in ("CUDA_HOME", "CUDA_PATH") if k in os.environ]
    compiler = shutil.which("nvcc")
    roots += [str(Path(compiler).resolve().parents[1])] if compiler else []
    places += [Path(root) / "nvvm" / "libdevice" / _LIBRARY for root in (*roots, "/usr/local/cuda")]
    found = next((p for p in places if p.exists()), None)
    if found is None:
        raise ModelError(f"{_LIBRARY} of CUDA was not found: pip install 'jax[cuda13]', or set CUDA_HOME")
    return found
