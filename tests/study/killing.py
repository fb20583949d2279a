"""Commands in processes that are killed: forked from one that has imported everything, so that a start costs nothing."""

import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["jaxmbs.study.samples.batch", "jaxmbs.study.reports.report", "jaxmbs.study.reports.page", __name__]
)


def killed(arguments: list[str], moment: float, said: Path) -> bool:
    """Whether a command was still at work when it had computed for `moment` [s]; it ends there. said: what it says."""
    process = _FORKS.Process(target=_command, args=(arguments, said))
    process.start()
    assert process.pid is not None
    with suppress(psutil.NoSuchProcess):  # it ended by itself between two looks
        watched = psutil.Process(process.pid)
        while process.is_alive():
            spent = watched.cpu_times()
            if spent.user + spent.system >= moment:
                watched.kill()
                break
            time.sleep(0.004)
    process.join()
    return process.exitcode == -signal.SIGKILL


def _command(arguments: list[str], said: Path) -> None:
    from jaxmbs.cli.app import app

    with said.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = sys.stderr = file
        app(arguments)
