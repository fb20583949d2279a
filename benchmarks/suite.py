"""Measurement: every case runs jaxmbs and the peers in turns on the same inputs, checks that the numbers agree, and
gives a row of the table. A round calls each contender twice and times the second call, so that nobody pays for the
threads and caches that the one before left behind."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from benchmarks.peers import PEERS, Absent, Run, version_of
from jaxmbs.rows import over_rows

RESULTS = Path(__file__).parent / "results"
LONGEST = 2.0  # seconds of a peer's call that is still repeated
AGREE = {"float64": 1e-8, "float32": 5e-3}  # relative to the largest number of the result


@dataclass(frozen=True)
class Case:
    function: str
    robot: str
    dtype: str
    batch: int
    quick: bool = False


@dataclass
class Row:
    """One line of the table: times in ns per evaluation as (median, 10 % and 90 % quantile)."""

    case: Case
    first_call: float
    times: dict[str, tuple[float, float, float]]
    errors: dict[str, float]
    absent: dict[str, str] = field(default_factory=dict)

    def ratio(self, peer: str) -> float:
        return self.times[peer][0] / self.times["jaxmbs"][0]


FORWARD, INVERSE, MASS = "forward dynamics", "inverse dynamics", "mass matrix"
DERIVATIVES, VJP = "derivatives of forward dynamics", "vector-Jacobian product of forward dynamics"
VARIED, ROLLOUT = "forward dynamics, every mass and inertia its own", "rollout, one evaluation of the dynamics"

CASES = [
    *(
        Case(FORWARD, "arm7", d, b, b in (1024, 8192, 65536))
        for d in AGREE
        for b in (1, 64, 1024, 8192, 65536, 1_000_000)
    ),
    *(Case(FORWARD, "humanoid30", d, b, b == 65536) for d in AGREE for b in (1024, 8192, 65536)),
    *(Case(FORWARD, f"chain{n}", "float64", b) for n, b in ((10, 8192), (30, 8192), (100, 4096), (1000, 256))),
    *(Case(f, "arm7", d, 8192, d == "float64") for f in (INVERSE, MASS) for d in AGREE),
    *(Case(f, "humanoid30", "float64", 8192) for f in (INVERSE, MASS)),
    *(Case(VARIED, "arm7", d, 8192, d == "float64") for d in AGREE),
    *(Case(VJP, r, "float64", 8192, r == "arm7") for r in ("arm7", "humanoid30")),
    Case(DERIVATIVES, "arm7", "float64", 8192),
    *(Case(ROLLOUT, "arm7", d, 8192) for d in AGREE),
]


@functools.cache
def robot(name: str) -> mbs.Model:
    if name.startswith("chain"):
        return mbs.library.chain(int(name[5:])).build()
    return getattr(mbs.library, name)().build()


def inputs(model: mbs.Model, case: Case) -> list[np.ndarray]:
    """q, v, tau of every instance; long chains bend little, as they do in use."""
    rng = np.random.default_rng(0)
    bend = 1.0 if model.nv <= 30 else 0.1
    q, v, tau = (bend * rng.normal(size=(case.batch, n)) for n in (model.nq, model.nv, model.nv))
    if model.nq != model.nv:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return [x.astype(case.dtype).astype(float) for x in (q, v, tau)]


def own(model: mbs.Model, case: Case, arrays: Sequence[np.ndarray], scalars: bool = False) -> Run:
    """jaxmbs's side of a case; `scalars`: as a program of scalars on any device, which mbs.jit makes on a CPU alone."""
    q, v, tau = (jnp.asarray(x, case.dtype) for x in arrays)

    def forward(q: Any, v: Any, tau: Any) -> Any:
        return mbs.forward_dynamics(model, q, v, tau)

    args: tuple[Any, ...] = (q, v, tau)
    axes: Any = 0
    if case.function == FORWARD:
        fn: Any = forward
    elif case.function == INVERSE:
        fn = functools.partial(mbs.inverse_dynamics, model)
    elif case.function == MASS:
        fn, args = functools.partial(mbs.mass_matrix, model), (q,)
    elif case.function == VJP:
        fn = lambda q, v, tau: jax.vjp(forward, q, v, tau)[1](tau)  # noqa: E731
    elif case.function == DERIVATIVES:
        fn = lambda q, v, tau: jnp.stack(jax.jacfwd(forward, argnums=(0, 1, 2))(q, v, tau))  # noqa: E731
    elif case.function == ROLLOUT:
        fn = lambda q, v, tau: mbs.simulate(model, q, v, t_end=0.1, dt=1e-3, tau=tau, save_every=None).q[-1]  # noqa: E731
    else:
        values = {
            f"{link.body}.{what}": np.repeat(np.asarray(mbs.get(model, f"{link.body}.{what}"))[None], case.batch, 0)
            for link in model.structure.links
            for what in ("mass", "com", "inertia")
        }
        varied, in_axes = mbs.vary(model, {k: jnp.asarray(x, case.dtype) for k, x in values.items()})
        fn, args, axes = mbs.forward_dynamics, (varied, q, v, tau), (in_axes, 0, 0, 0)
    run = jax.jit(over_rows(fn, axes)) if scalars else mbs.jit(fn, in_axes=axes)
    return lambda: jax.block_until_ready(run(*args))


def measure(case: Case, repeats: int) -> Row:
    model = robot(case.robot)
    arrays, threads = inputs(model, case), len(os.sched_getaffinity(0))
    runs = {"jaxmbs": own(model, case, arrays)}
    start = time.perf_counter()
    result = runs["jaxmbs"]()
    first_call = time.perf_counter() - start
    absent, errors = {}, {}
    if jax.default_backend() != "cpu":
        runs["jaxmbs.rows"] = own(model, case, arrays, scalars=True)
        errors["jaxmbs.rows"] = float(np.abs(np.asarray(runs["jaxmbs.rows"]()) - result).max() / np.abs(result).max())
    peer_function = FORWARD if case.function == VARIED else case.function
    for peer in PEERS:
        try:
            if not peer.smallest <= case.batch <= peer.largest:
                raise Absent(f"measured with {peer.smallest} to {peer.largest} instances")
            run, as_ours = peer(model, threads).task(peer_function, *arrays)
            expected = as_ours(run())
            start = time.perf_counter()
            run()
            took = time.perf_counter() - start
            if took > LONGEST:
                raise Absent(f"a call took {took:.1f} s ({case.robot}, {case.dtype}, batch {case.batch})")
            runs[peer.name] = run
            ours = np.asarray(result, float)[-len(expected) :]
            errors[peer.name] = float(np.abs(ours - expected).max() / np.abs(expected).max())
        except Absent as reason:
            absent[peer.name] = str(reason)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            run()
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    evaluations = case.batch * (400 if case.function == ROLLOUT else 1)
    spread = {n: tuple(np.quantile(x, (0.5, 0.1, 0.9)) / evaluations * 1e9) for n, x in times.items()}
    return Row(case, first_call, spread, errors, absent)  # type: ignore[arg-type]


def machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*: (.*)", info.read_text())
        cpu = found.group(1) if found else cpu
    packages = ["jaxmbs", "jax", "jaxlib", "numpy", *(p.package for p in PEERS)]
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "device": str(jax.devices()[0].device_kind),
        "python": platform.python_version(),
        "versions": {p: version_of(p) for p in packages if version_of(p)},
        "date": date.today().isoformat(),
    }


def file_of(machine: dict[str, Any]) -> Path:
    words = re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['cores']} cores {machine['device']}".lower())
    return RESULTS / f"{words.strip('-')}.json"


def rows(cases: Sequence[Case], repeats: int) -> Iterator[Row]:
    for case in cases:
        yield measure(case, repeats)


def kept(path: Path) -> dict[Case, Row]:
    """The rows of an earlier run on this machine."""
    if not path.exists():
        return {}
    out = {}
    for r in json.loads(path.read_text())["rows"]:
        case = Case(**r["case"])
        out[case] = Row(case, r["first_call"], {k: tuple(x) for k, x in r["times"].items()}, r["errors"], r["absent"])
    return out


def keep(path: Path, machine: dict[str, Any], found: dict[Case, Row]) -> None:
    path.parent.mkdir(exist_ok=True)
    merged = {**kept(path), **found}
    ordered = [merged[c] for c in CASES if c in merged]
    path.write_text(json.dumps({"machine": machine, "rows": [asdict(r) for r in ordered]}, indent=1) + "\n")
