"""The command line."""

from __future__ import annotations

import gc
import os
import sys

# what the commands import from the [study] extra
_EXTRA = (
    "typer", "rich", "click", "pydantic", "xarray", "zarr", "scipy", "matplotlib", "psutil", "filelock", "platformdirs",
)  # fmt: skip


def main() -> None:
    """Entry point of `jaxmbs`."""
    # commands open no windows, and a notebook may have set a backend that is not installed here
    os.environ["MPLBACKEND"] = "agg"
    gc.set_threshold(100_000, 20, 20)  # imports create many permanent objects; scanning them takes a tenth of the start
    try:
        from jaxmbs.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _EXTRA:
            raise
        message = f"the command line needs {error.name}, which is not installed: pip install 'jaxmbs[study]'"
        print(message, file=sys.stderr)
        sys.exit(1)
