"""Runs several solvers that ask for one point at a time, and evaluates their points together.

Each search runs in its own thread and waits for its answer; when all searches that are still running have asked, their
points are evaluated as one batch. In this way the points of many starts run in machine code with any library solver,
and the results of a search do not depend on the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbs.design.tally import current

Ask = Callable[[np.ndarray], Any]


class Stopped(BaseException):
    """Raised to end the thread of a search that is no longer wanted."""


def together(evaluate: Callable[[np.ndarray], Sequence[Any]], searches: Sequence[Callable[[Ask], Any]]) -> list[Any]:
    """Run all searches and return their results, in order; each is called with a function that evaluates one point (n,).

    evaluate: returns the answers at several points (s, n). An error in a search or in `evaluate` ends all searches and is
    raised here.
    """
    change = threading.Condition()
    asked: dict[int, np.ndarray] = {}
    answers: dict[int, Any] = {}
    results: dict[int, Any] = {}
    errors: list[BaseException] = []
    stopped = False

    def run(k: int, search: Callable[[Ask], Any]) -> None:
        def ask(x: np.ndarray) -> Any:
            with change:
                asked[k] = np.array(x, float)
                change.notify_all()
                change.wait_for(lambda: stopped or k in answers)
                if stopped:
                    raise Stopped
                return answers.pop(k)

        try:
            found = search(ask)
            with change:
                results[k] = found
        except Stopped:
            pass
        except BaseException as error:
            errors.append(error)
        with change:
            running.discard(k)
            change.notify_all()

    running = set(range(len(searches)))
    current().stage = "searching"
    threads = [threading.Thread(target=run, args=(k, s), daemon=True) for k, s in enumerate(searches)]
    try:
        for thread in threads:
            thread.start()
        while True:
            with change:
                change.wait_for(lambda: errors or (len(asked) == len(running)))
                if errors:
                    raise errors[0]
                if not running:
                    break
                order = sorted(asked)
                points = np.stack([asked.pop(k) for k in order])
            found = evaluate(points)
            with change:
                answers.update(zip(order, found, strict=True))
                change.notify_all()
    finally:
        with change:
            stopped = True
            change.notify_all()
        for thread in threads:
            thread.join()
    current().stage = "looking at the result"  # any further points are evaluated for this
    return [results[k] for k in range(len(searches))]
