"""Pinocchio's generated code: its algorithms on CasADi's symbols, written out as C, compiled by this machine's compiler.

The package that provides them, cmeel-casadi-kin-dyn, needs numpy < 2 and therefore its own environment. The variable
CASADI_PYTHON names its Python interpreter: python3 -m venv DIR && DIR/bin/pip install cmeel-casadi-kin-dyn.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import jaxmbs as mbs
from benchmarks import peers
from benchmarks.peers import Absent, Task

VARIABLE = "CASADI_PYTHON"
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
WRITE = """
from casadi_kin_dyn import CasadiKinDyn
import casadi  # its library is found once the other is there

robot = CasadiKinDyn(open("robot.urdf").read())
found = robot.aba()
found = casadi.Function.deserialize(found) if isinstance(found, str) else found
x = [casadi.SX.sym(name, robot.nv()) for name in ("q", "v", "tau")]
function = casadi.Function("aba", x, [found(*x)])
function.generate("aba.c")
print(function.sz_w(), *robot.joint_names()[1:])
"""
ROWS = """
#include "aba.c"
void rows(long n, long m, const double *q, const double *v, const double *tau, double *a) {
  double w[%s];
  for (long i = 0; i < n * m; i += m) {
    const double *given[] = {q + i, v + i, tau + i};
    double *found[] = {a + i};
    aba(given, found, 0, w, 0);
  }
}
"""


class Generated:
    """Forward dynamics of a robot with a fixed base, with the batch rows divided among threads; float64."""

    name, package, smallest, largest = "Pinocchio, generated C", "cmeel-casadi-kin-dyn", 1, 1_000_000

    def __init__(self, model: mbs.Model, threads: int):
        python, compiler = os.environ.get(VARIABLE), shutil.which("cc")
        if not python:
            raise Absent(f"{VARIABLE} does not name a Python with cmeel-casadi-kin-dyn, which needs numpy < 2")
        if compiler is None:
            raise Absent("there is no C compiler")
        parts = peers.segments(model)
        if any(s.free for s in parts) or len(parts) > peers.MOST_BODIES:
            raise Absent("only robots with a fixed base and few bodies")
        self.threads, self.n = threads, len(parts)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "robot.urdf").write_text(peers.urdf(parts), encoding="utf-8")
            said = subprocess.run(
                [python, "-c", WRITE], cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8"
            )
            if said.returncode:
                raise Absent(f"{python} writes no C: {said.stderr.strip().splitlines()[-1]}")
            size, *joints = said.stdout.split()
            if joints != [f"j{k}" for k in range(self.n)]:
                raise Absent("its joints come in another order")
            Path(folder, "rows.c").write_text(ROWS % size, encoding="utf-8")
            subprocess.run([compiler, *FLAGS, "rows.c", "-o", "rows.so", "-lm"], cwd=folder, check=True)
            self.library = ctypes.CDLL(str(Path(folder, "rows.so")))

    def task(self, function: str, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Task:
        if function != "forward dynamics":
            raise Absent("measured for forward dynamics only")
        a, given = np.empty_like(v), [np.ascontiguousarray(x, np.float64) for x in (q, v, tau)]
        ends = np.linspace(0, len(q), self.threads + 1).astype(int)
        pool = ThreadPoolExecutor(self.threads)

        def part(k: int) -> None:
            first, stop = ends[k], ends[k + 1]
            arrays = [x[first:stop].ctypes.data_as(ctypes.c_void_p) for x in (*given, a)]
            self.library.rows(ctypes.c_long(stop - first), ctypes.c_long(self.n), *arrays)

        def run() -> np.ndarray:
            list(pool.map(part, range(self.threads)))
            return a

        return run, np.copy
