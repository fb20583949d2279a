"""One context of MLIR for the programs of a process.

To make one takes half the time of a program as small as one operation, and a session has some ten thousand of those.
"""

from functools import cache

from jax._src.interpreters import mlir  # not in the documented part of JAX
from jax._src.lib.mlir import ir


def share_contexts() -> None:
    """Programs that are lowered while another one is get a context of their own: theirs would go into the other's."""
    make = mlir.make_ir_context
    shared = cache(make)

    def context():
        return make() if _lowering() else shared()

    mlir.make_ir_context = context


def _lowering() -> bool:
    """Whether a context is in use; where none is, some versions of MLIR say None and others raise."""
    try:
        return ir.Context.current is not None
    except ValueError:
        return False
