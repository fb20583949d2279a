"""Measurement: every case runs jaxmbs and the peers in alternation on the same inputs, checks that the numbers agree, and
gives a row of the table. A round calls each library twice and times the second call, so that none pays for the threads
and caches that the previous one left behind."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from benchmarks import limits, made_from, peers
from benchmarks.generated import Generated
from benchmarks.peers import Absent, Run, version_of

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PEERS = (*peers.PEERS, Generated)
LONGEST = 2.0  # seconds; a peer whose call takes longer is left out
AGREE = {"float64": 1e-8, "float32": 5e-3}  # relative to the largest number of the result


@dataclass(frozen=True)
class Case:
    function: str
    robot: str
    dtype: str
    batch: int
    quick: bool = field(default=False, compare=False)


@dataclass
class Row:
    """One line of the table: times in ns per evaluation as (median, 10 % and 90 % quantile)."""

    case: Case
    first_call: float
    times: dict[str, tuple[float, float, float]]
    errors: dict[str, float]
    absent: dict[str, str] = field(default_factory=dict)
    compiled: dict[str, float] = field(default_factory=dict)  # see `compiled`
    limit: dict[str, Any] = field(default_factory=dict)  # see `limited`

    def ratio(self, peer: str) -> float:
        return self.times[peer][0] / self.times["jaxmbs"][0]


FORWARD, INVERSE, MASS = "forward dynamics", "inverse dynamics", "mass matrix"
DERIVATIVES, VJP = "derivatives of forward dynamics", "vector-Jacobian product of forward dynamics"
VARIED, ROLLOUT = "forward dynamics, every mass and inertia its own", "rollout, one evaluation of the dynamics"
VARIED_ROLLOUT = "rollout, one evaluation, every mass and inertia its own"
ROLLOUTS = (ROLLOUT, VARIED_ROLLOUT)
CONSTRAINED = "constrained dynamics"
STUDY = "a sample of the study of a stage separation"
EVENTS = "a sample of a study with events"  # the study is that of the file examples/ROBOT.toml

CASES = [
    *(
        Case(FORWARD, "arm7", d, b, b == 65536 or (d == "float64" and b in (1024, 8192)))
        for d in AGREE
        for b in (1, 64, 256, 1024, 8192, 65536, 1_000_000)
    ),
    *(Case(FORWARD, "humanoid30", d, b, b == 65536) for d in AGREE for b in (256, 1024, 8192, 65536)),
    *(Case(FORWARD, f"chain{n}", "float64", b) for n, b in ((10, 8192), (30, 8192), (100, 4096), (1000, 256))),
    *(Case(f, "arm7", d, 8192, d == "float64") for f in (INVERSE, MASS) for d in AGREE),
    *(Case(f, "humanoid30", "float64", b) for f, b in ((INVERSE, 8192), (MASS, 4096), (MASS, 8192))),
    *(Case(FORWARD, "arm7_skewed", d, 65536) for d in AGREE),
    *(Case(VARIED, "arm7_skewed", d, 65536, d == "float64") for d in AGREE),
    *(Case(VJP, r, "float64", 8192) for r in ("arm7", "humanoid30")),
    *(Case(VJP, "arm7", d, 65536, d == "float64") for d in AGREE),
    Case(DERIVATIVES, "arm7", "float64", 8192, True),
    Case(ROLLOUT, "arm7", "float64", 2048, True),
    *(Case(ROLLOUT, "arm7", d, 8192) for d in AGREE),
    *(Case(f, "arm7_skewed", "float64", 8192) for f in ROLLOUTS),
    *(Case(CONSTRAINED, f"windows{n}", "float64", b, b == 65536) for n in (1, 6) for b in (4096, 65536)),
    Case(STUDY, "stage_separation", "float64", 8320),
    *(
        Case(EVENTS, name, "float64", 2080)
        for name in ("cubesat_dispenser", "fairing_halves", "satellite_release", "solar_array_deployment")
    ),
]


@functools.cache
def robot(name: str) -> mbs.Model:
    if name.startswith("chain"):
        return mbs.library.chain(int(name[5:])).build()
    if name.startswith("windows"):
        return mbs.library.four_bar_windows(int(name[7:])).build()
    if name == "arm7_skewed":
        return skewed(mbs.library.arm7().build())
    return getattr(mbs.library, name)().build()


def skewed(model: mbs.Model) -> mbs.Model:
    """The robot without any zero among its masses, centres of mass and inertias."""
    rng, values = np.random.default_rng(0), {}
    for b in model.body_names:
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        values[f"{b}.inertia"] = turn @ np.asarray(mbs.get(model, f"{b}.inertia")) @ turn.T
        values[f"{b}.com"] = np.asarray(mbs.get(model, f"{b}.com")) + 0.01 * rng.normal(size=3)
    return mbs.set(model, values)


def inputs(model: mbs.Model, case: Case) -> list[np.ndarray]:
    """q, v, tau of every batch row; long chains bend little, as they do in use; posts of windows are parallel."""
    rng = np.random.default_rng(0)
    if case.function == CONSTRAINED:
        turn = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
        angle, rate = rng.uniform(0.3, 2.8, case.batch), rng.normal(size=case.batch)
        return [np.outer(x, turn) for x in (angle, rate, 0 * angle)]
    bend = 1.0 if model.nv <= 30 else 0.1
    q, v, tau = (bend * rng.normal(size=(case.batch, n)) for n in (model.nq, model.nv, model.nv))
    if model.nq != model.nv:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return [x.astype(case.dtype).astype(float) for x in (q, v, tau)]


@dataclass
class Own:
    """jaxmbs's side of a case: fn of one sample, mapped over in_axes of args."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    in_axes: Any = 0

    def run(self) -> Run:
        jitted = mbs.jit(self.fn, in_axes=self.in_axes)
        return lambda: jax.block_until_ready(jitted(*self.args))

    def by_xla(self) -> Run:
        """The function as XLA compiles it, without kernels of ours."""
        jitted = jax.jit(jax.vmap(self.fn, in_axes=self.in_axes))

        def run() -> Any:
            with mock.patch.dict(os.environ, JAXMBS_KERNELS="xla"):
                return jax.block_until_ready(jitted(*self.args))

        return run


def own(model: mbs.Model, case: Case, arrays: Sequence[np.ndarray]) -> Own:
    q, v, tau = (jnp.asarray(x, case.dtype) for x in arrays)

    def forward(q: Any, v: Any, tau: Any) -> Any:
        return mbs.forward_dynamics(model, q, v, tau)

    def transposed(q: Any, v: Any, tau: Any) -> Any:
        return jax.vjp(forward, q, v, tau)[1](tau)

    def derivatives(q: Any, v: Any, tau: Any) -> Any:
        return jnp.stack(jax.jacfwd(forward, argnums=(0, 1, 2))(q, v, tau))

    def rollout(model: mbs.Model, q: Any, v: Any, tau: Any) -> Any:
        end = peers.ROLLOUT_STEPS * peers.ROLLOUT_STEP
        return mbs.simulate(model, q, v, t_end=end, dt=peers.ROLLOUT_STEP, tau=tau, save_every=None).q[-1]

    def constrained(model: mbs.Model, q: Any, v: Any, tau: Any) -> jax.Array:
        return mbs.constrained_dynamics(model, q, v, tau)[0]

    if case.function in (VARIED, VARIED_ROLLOUT, CONSTRAINED):
        links, closing = model.structure.links, model.structure.loops
        own_numbers = [f"{link.body}.{what}" for link in links for what in ("mass", "com", "inertia")]
        if case.function == CONSTRAINED:
            own_numbers = [f"{link.name}.parent_pose.position" for link in links]
            own_numbers += [f"{loop.name}.pose_{end}.position" for loop in closing for end in "ab"]
        values = {n: np.repeat(np.asarray(mbs.get(model, n), case.dtype)[None], case.batch, 0) for n in own_numbers}
        varied, in_axes = mbs.vary(model, {n: jnp.asarray(x) for n, x in values.items()})
        fn = {VARIED: mbs.forward_dynamics, VARIED_ROLLOUT: rollout, CONSTRAINED: constrained}[case.function]
        return Own(fn, (varied, q, v, tau), (in_axes, 0, 0, 0))
    if case.function == MASS:
        return Own(functools.partial(mbs.mass_matrix, model), (q,))
    functions = {
        FORWARD: forward,
        VJP: transposed,
        DERIVATIVES: derivatives,
        ROLLOUT: functools.partial(rollout, model),
    }
    return Own(functions.get(case.function, functools.partial(mbs.inverse_dynamics, model)), (q, v, tau))


def study(case: Case) -> Run:
    """A run that computes the samples of an example's study, without writing its files."""
    from jaxmbs.study.problem.study import read
    from jaxmbs.study.samples.batch import compiled, usual_rows

    rows = usual_rows()
    program = compiled(read(ROOT / "examples" / f"{case.robot}.toml"), rows)
    return lambda: program(0, case.batch // rows)["status"]


def compiled(case: Case, ours: Own) -> dict[str, float]:
    """Bytes of memory per batch row (arguments, results and intermediate values), calls of linear-algebra libraries."""
    program = jax.jit(mbs.jit(ours.fn, in_axes=ours.in_axes).whole).lower(*ours.args).compile()
    memory = program.memory_analysis()
    used = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    calls = len(re.findall(r"cublas|cusolver|lapack", program.as_text()))
    return {"memory": used / case.batch, "library calls": calls}


def limited(row: Row, needs: dict[str, float], peaks: dict[str, Any]) -> dict[str, Any]:
    """What an evaluation needs, the least time that the machine's peaks allow for it, and the fraction reached."""
    c = row.case
    evaluations = evaluations_of(c)
    operations, moved = needs["operations"] / evaluations, needs["moved"] / evaluations
    ns, by = limits.limit(operations, moved, c.batch * evaluations, c.dtype, peaks)
    return {"operations": operations, "moved": moved, "ns": ns, "by": by, "reached": ns / row.times["jaxmbs"][0]}


def evaluations_of(case: Case) -> int:
    """Evaluations of the dynamics in one batch row."""
    return 4 * peers.ROLLOUT_STEPS if case.function in ROLLOUTS else 1


def measure(case: Case, repeats: int, peaks: dict[str, Any] | None = None) -> Row:
    """The row of a case. peaks: those of the machine; with them, the row also has the memory of the program and the limit of
    its speed, for which the program is traced and compiled once more."""
    if case.function in (STUDY, EVENTS):
        return timed(
            case, {"jaxmbs": study(case)}, repeats
        )  # no limit: it would also count work that is skipped where nothing happens
    model = robot(case.robot)
    arrays, threads = inputs(model, case), len(os.sched_getaffinity(0))
    ours = own(model, case, arrays)
    runs = {"jaxmbs": ours.run()}
    start = time.perf_counter()
    result = runs["jaxmbs"]()
    first_call = time.perf_counter() - start
    absent, errors, on_cpu = {}, {}, jax.default_backend() == "cpu"
    if not on_cpu:
        runs["XLA"] = ours.by_xla()
        ours_first, theirs = (np.asarray(jax.tree.leaves(x)[0]) for x in (result, runs["XLA"]()))
        errors["XLA"] = float(np.abs(theirs - ours_first).max() / np.abs(ours_first).max())
    peer_function = FORWARD if case.function == VARIED else case.function
    for peer in PEERS:
        try:
            largest = peer.largest if on_cpu else getattr(peer, "largest_on_gpu", peer.largest)
            if not peer.smallest <= case.batch <= largest:
                raise Absent(f"measured with {peer.smallest} to {largest} instances")
            if case.dtype not in getattr(peer, "dtypes", AGREE):
                raise Absent(f"not measured in {case.dtype}: it computes as JAX is set, in float64")
            if case.quick and not peaks and peer is peers.MJX:
                raise Absent("left out of the quick run: it takes minutes")
            run, as_ours = peer(model, threads).task(peer_function, *arrays)
            given = run()
            start = time.perf_counter()
            run()
            took = time.perf_counter() - start
            if took > LONGEST:
                raise Absent(f"a call took {took:.1f} s ({case.robot}, {case.dtype}, batch {case.batch})")
            runs[peer.name] = run
            if as_ours:
                expected = as_ours(given)
                last = np.asarray(result, float)[-len(expected) :]
                errors[peer.name] = float(np.abs(last - expected).max() / np.abs(expected).max())
        except Absent as reason:
            absent[peer.name] = str(reason)
    row = timed(case, runs, repeats)
    row.first_call, row.errors, row.absent = first_call, errors, absent
    if peaks:
        row.limit = limited(row, limits.needs(ours.fn, ours.args, ours.in_axes, case.dtype), peaks)
        row.compiled = {} if case.function in (DERIVATIVES, *ROLLOUTS) else compiled(case, ours)
    return row


def timed(case: Case, runs: dict[str, Run], repeats: int) -> Row:
    start = time.perf_counter()
    for run in runs.values():
        run()
    first_call = time.perf_counter() - start
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            run()
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    evaluations = case.batch * evaluations_of(case)
    spread = {n: tuple(np.quantile(x, (0.5, 0.1, 0.9)) / evaluations * 1e9) for n, x in times.items()}
    return Row(case, first_call, spread, {})  # type: ignore[arg-type]


def machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*: (.*)", info.read_text(encoding="utf-8"))
        cpu = found.group(1) if found else cpu
    packages = ["jaxmbs", "jax", "jaxlib", "numpy", *dict.fromkeys(p.package for p in PEERS)]
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


def rows(cases: Sequence[Case], repeats: int, peaks: dict[str, Any] | None) -> Iterator[Row]:
    for case in cases:
        yield measure(case, repeats, peaks)


def kept(path: Path) -> dict[Case, Row]:
    """The saved rows of an earlier run on this machine."""
    if not path.exists():
        return {}
    out = {}
    for r in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        case = Case(**r["case"])
        times = {k: tuple(x) for k, x in r["times"].items()}
        out[case] = Row(
            case, r["first_call"], times, r["errors"], r["absent"], r.get("compiled", {}), r.get("limit", {})
        )
    return out


def regressions(found: dict[Case, Row], before: dict[Case, Row]) -> list[str]:
    """Cases slower than the saved ones: the spreads do not overlap, and the median is more than a tenth larger."""
    out = []
    for case, row in found.items():
        if case in before:
            (now, low, _), (was, _, high) = row.times["jaxmbs"], before[case].times["jaxmbs"]
            if low > high and now > 1.1 * was:
                out.append(f"{case.function}, {case.robot}, {case.dtype}, {case.batch}: {was:.0f} -> {now:.0f} ns")
    return out


def keep(path: Path, machine: dict[str, Any], found: dict[Case, Row]) -> None:
    merged = {**kept(path), **found}
    ordered = [merged[c] for c in CASES if c in merged]
    made_from.keep(path, {"machine": machine, "rows": [asdict(r) for r in ordered]})
