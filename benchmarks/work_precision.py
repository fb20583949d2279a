"""python -m benchmarks.work_precision: error against evaluations of the equations of motion for four problems, compared with
SciPy and diffrax on the same equations; results/work-precision.json and a picture next to it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib

matplotlib.use("Agg")
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbs as mbs
from benchmarks import made_from

RESULTS = Path(__file__).parent / "results"
TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
STEPS = (100, 300, 1000, 3000, 10000)
STAGES = {"rk4": 4, "dopri5": 7, "dop853": 13}
COLOURS = {
    "rk4": "C0", "dopri5": "C1", "dop853": "C2", "implicit": "C3", "symplectic": "C4", "SciPy DOP853": "C5",
    "SciPy Radau": "C6", "diffrax Dopri5": "C7", "diffrax Dopri8": "C8", "diffrax Kvaerno5": "C9",
}  # fmt: skip


class Problem(NamedTuple):
    name: str
    model: Any
    q: Any
    v: Any
    t_end: float
    smallest: float  # smallest tolerance that explicit methods are asked for


def problems() -> Iterator[Problem]:
    """A chain that swings widely, two tumbling bodies joined by a ball joint, a top, and a stiff pad on a slow boom."""
    yield Problem("three links", mbs.library.chain(3).build(), np.full(3, 0.8), np.linspace(0, 1, 3), 4.0, 1e-11)
    mech = mbs.Mechanism("pair", gravity=(0, 0, 0))
    mech.add_body("bus", mass=5.0, inertia=(0.5, 0.7, 0.9))
    mech.add_body("payload", mass=2.0, com=(0, 0, 0.4), inertia=(0.1, 0.12, 0.05))
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    mech.add_joint("ball", mbs.Spherical(), "bus", "payload", mbs.Pose((0.3, 0, 0.2)))
    model = mech.build()
    yield Problem(
        "two tumbling bodies", model, model.neutral(), np.array([1, -2, 0.5, 0.1, 0, 0, 2, 1, -3.0]), 4.0, 1e-11
    )
    mech = mbs.Mechanism("top", gravity=(0, 0, -9.81))
    mech.add_body("top", mass=1.0, com=(0, 0, 0.15), inertia=(0.02, 0.02, 0.005))
    mech.add_joint("tip", mbs.Spherical(), "world", "top")
    yield Problem("heavy top", mech.build(), np.array([0.96, 0.28, 0, 0.0]), np.array([0, 0.5, 60.0]), 4.0, 1e-11)
    mech = mbs.Mechanism("boom", gravity=(0, 0, -9.81))
    mech.add_body("boom", mass=2.0, com=(0, 0, -0.5), inertia=(0.2, 0.2, 0.02))
    mech.add_body("sensor", mass=0.05, inertia=(1e-5, 1e-5, 1e-5))
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "boom")
    mech.add_joint("pad", mbs.Prismatic((0, 0, 1)), "boom", "sensor", mbs.Pose((0, 0, -1)))
    mech.add_force("rubber", mbs.TorsionSpring("pad", stiffness=1e6, damping=50.0))
    yield Problem("stiff pad, slow boom", mech.build(), np.array([1.0, 0]), np.zeros(2), 4.0, 1e-9)


def field(p: Problem) -> Callable[[Any, Any], Any]:
    """The function (t, x) -> dx/dt of the state x = (q, v) in one array."""
    nq = p.model.nq

    def rates(t: Any, x: Any) -> Any:
        q, v = x[:nq], x[nq:]
        return jnp.concatenate([mbs.rates(p.model, q, v), mbs.forward_dynamics(p.model, q, v)])

    return rates


def ours(p: Problem, method: str, given: float) -> tuple[Any, int, float]:
    """(final state, evaluations, seconds of the second run)."""
    adaptive = given < 1
    kwargs: dict[str, Any] = {"method": method, "save_every": None}
    if adaptive:
        kwargs |= {"tolerance": given, "max_steps": 100_000 if method != "implicit" else 20_000}
    dt = p.t_end / (8 if adaptive else given)
    run = jax.jit(lambda q, v: mbs.simulate(p.model, q, v, p.t_end, dt, **kwargs))
    jax.block_until_ready(run(p.q, p.v).q)
    start = time.perf_counter()
    found = jax.block_until_ready(run(p.q, p.v))
    seconds = time.perf_counter() - start
    steps = int(sum(found.steps))
    each = STAGES.get(method) or (8 + 2 * p.model.nv + 1 if method == "implicit" else 2 * 9)
    return np.concatenate([found.q[-1], found.v[-1]]), steps * each, seconds


def scipy_run(p: Problem, method: str, tolerance: float) -> tuple[Any, int, float]:
    fn = jax.jit(field(p))
    jacobian = jax.jit(jax.jacfwd(field(p), 1))
    more = {"jac": lambda t, x: np.asarray(jacobian(t, x))} if method == "Radau" else {}
    x = np.concatenate([p.q, p.v]).astype(float)
    fn(0.0, x)
    start = time.perf_counter()
    found = solve_ivp(
        lambda t, x: np.asarray(fn(t, x)), (0, p.t_end), x, method=method, rtol=tolerance, atol=tolerance, **more
    )
    return found.y[:, -1], int(found.nfev + len(x) * found.njev), time.perf_counter() - start


def diffrax_run(p: Problem, method: str, tolerance: float) -> tuple[Any, int, float]:
    import diffrax

    solver = getattr(diffrax, method)()
    rates = field(p)
    term = diffrax.ODETerm(lambda t, x, _: rates(t, x))

    @jax.jit
    def run(x: Any) -> Any:
        return diffrax.diffeqsolve(
            term, solver, 0.0, p.t_end, None, x, max_steps=200_000,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        )  # fmt: skip

    x = jnp.concatenate([jnp.asarray(p.q, float), jnp.asarray(p.v, float)])
    jax.block_until_ready(run(x).ys)
    start = time.perf_counter()
    found = jax.block_until_ready(run(x))
    each = {"Dopri5": 6, "Dopri8": 13}.get(method) or 7 * 4 + len(x)  # Kvaerno5: about four iterations in seven stages
    assert found.ys is not None
    return np.asarray(found.ys[-1]), int(found.stats["num_steps"]) * each, time.perf_counter() - start


def difference(p: Problem, x: Any, y: Any) -> float:
    """The largest difference of coordinates and rates; a quaternion and its negative count as equal."""
    x, y = np.array(x), np.array(y)
    for link, own in zip(p.model.structure.links, p.model.structure.q_slices, strict=True):
        if link.joint.quaternion is not None:
            part = slice(own.start + link.joint.quaternion, own.start + link.joint.quaternion + 4)
            x[part] *= np.sign(x[part] @ y[part]) / np.linalg.norm(x[part])
            y[part] /= np.linalg.norm(y[part])
    return float(np.abs(x - y).max())


def measured(p: Problem) -> dict[str, list[tuple[float, int]]]:
    """For each method, a list of (error, evaluations)."""
    truth = ours(p, "implicit" if "stiff" in p.name else "dop853", 1e-13 if "stiff" not in p.name else 1e-12)[0]
    out: dict[str, list[tuple[float, int]]] = {}
    explicit = [x for x in TOLERANCES if x >= p.smallest]
    runs: list[tuple[str, Callable[..., Any], str, Any]] = [
        ("rk4", ours, "rk4", STEPS if "stiff" not in p.name else (30_000, 60_000)),
        ("dopri5", ours, "dopri5", explicit), ("dop853", ours, "dop853", explicit),
        ("implicit", ours, "implicit", TOLERANCES),
        ("symplectic", ours, "symplectic", STEPS if "stiff" not in p.name else ()),
        ("SciPy DOP853", scipy_run, "DOP853", explicit), ("SciPy Radau", scipy_run, "Radau", TOLERANCES[:4]),
        ("diffrax Dopri5", diffrax_run, "Dopri5", explicit), ("diffrax Dopri8", diffrax_run, "Dopri8", explicit),
        ("diffrax Kvaerno5", diffrax_run, "Kvaerno5", TOLERANCES[:4] if "stiff" in p.name else ()),
    ]  # fmt: skip
    for name, run, method, settings in runs:
        for setting in settings:
            end, evaluations, seconds = run(p, method, setting)
            out.setdefault(name, []).append((difference(p, end, truth), evaluations))
            print(f"{p.name:22} {name:17} {setting:8g}  error {out[name][-1][0]:8.1e}  evaluations {evaluations:7d}"
                  f"  {1e3 * seconds:9.2f} ms", flush=True)  # fmt: skip
    return out


def draw(kept: dict[str, Any]) -> Path:
    """One diagram for each problem."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for ax, (name, methods) in zip(axes.flat, kept["problems"].items(), strict=True):
        for method, rows in methods.items():
            errors, evaluations = zip(*rows, strict=True)
            style = "-o" if " " not in method else "--s"
            ax.loglog(
                evaluations,
                np.maximum(errors, 1e-14),
                style,
                color=COLOURS[method],
                label=method,
                markersize=4,
                linewidth=1,
            )
        ax.set(title=name, xlabel="evaluations", ylabel="error at the end")
        ax.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=7)
    axes[1, 1].legend(fontsize=7)
    figure.tight_layout()
    out = RESULTS / "work-precision.png"
    figure.savefig(out, dpi=110)
    plt.close(figure)
    return out


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    kept = {
        "machine": f"{platform.machine()}, jax {jax.__version__}",
        "problems": {p.name: measured(p) for p in problems()},
    }
    made_from.keep(RESULTS / "work-precision.json", kept)
    print(draw(kept))


if __name__ == "__main__":
    main()
