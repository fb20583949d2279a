"""Functions as programs for other software: shared libraries, C source, programs of JAX, and kernels for GPUs."""

from jaxmbs.exporting.export import export as export
