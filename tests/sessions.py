"""Which tests are compiled as for a user, with all of XLA's optimisation: their subject is what XLA makes of a program."""

from pathlib import Path

OPTIMISED = ("batching", "test_run.py")  # a folder and a file: bits, memory, kernels


def optimised(path: Path) -> bool:
    """Whether a file or folder belongs to them."""
    return path.name in OPTIMISED or path.parent.name in OPTIMISED
