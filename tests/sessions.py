"""Which tests are compiled as for a user, with all of XLA's optimisation: their subject is what XLA makes of a program."""

import functools
import subprocess
import zlib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parent.parent
OPTIMISED = ("batching", "test_run.py")  # a folder and a file: bits, memory, kernels


def optimised(path: Path) -> bool:
    """Whether a file or folder belongs to them."""
    return path.name in OPTIMISED or path.parent.name in OPTIMISED


@functools.cache
def turn() -> int:
    """A number that changes with each commit; outside a repository, with the day."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )
    return int(asked.stdout[:12], 16) if asked.returncode == 0 else date.today().toordinal()


def drawn(path: Path, share: int) -> bool:
    """Whether a file of tests is among one in `share` of them, others with each commit; the optimised ones always are."""
    if share == 1 or optimised(path) or not path.name.startswith("test_"):
        return True
    return (zlib.crc32(path.relative_to(ROOT).as_posix().encode()) + turn()) % share == 0
