"""python -m benchmarks.within_jax [--keep]: what a program of JAX around functions of the library costs.

Each row compares a program that uses `jax.jit`, `jax.vmap`, `jax.grad`, `jax.lax.scan` as usual with the same computation
as one outermost call of `mbs.jit`, in alternation in one process. The results are compared.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import made_from, suite

RESULTS = Path(__file__).parent / "results" / "within_jax.json"
ROUNDS, LEAST = 9, 0.02  # rounds of each function, in alternation; least duration of a round [s]
Pair = tuple[str, int, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def pairs() -> list[Pair]:
    """(name, number of instances, the outermost `mbs.jit`, the program of JAX, the arguments of both)."""
    import jax
    import jax.numpy as jnp
    import optax

    import jaxmbs as mbs

    model, rng = suite.robot("arm7"), np.random.default_rng(0)
    n = model.nv

    def dynamics(q: Any, v: Any, tau: Any) -> Any:
        return mbs.forward_dynamics(model, q, v, tau)

    def motion(q: Any, v: Any) -> Any:
        return jnp.sum(mbs.simulate(model, q, v, 1.0, dt=1e-3, save_every=None).q[-1] ** 2)

    def mean(q: Any, v: Any) -> Any:
        return jnp.mean(jax.vmap(motion)(q, v))

    def nested(q: Any, v: Any, tau: Any) -> Any:
        parts = (x.reshape(len(x) // 8, 8, n) for x in (q, v, tau))
        return jax.vmap(jax.vmap(dynamics))(*parts).reshape(len(q), n)

    def inside(q: Any, v: Any) -> Any:
        """Control steps within the function of one instance."""

        def step(state: Any, _: Any) -> Any:
            q, v = state
            a = mbs.forward_dynamics(model, q, v, -q - 0.1 * v)
            return (q + 0.001 * v, v + 0.001 * a), None

        return jax.lax.scan(step, (q, v), length=200)[0][0]

    def around(q: Any, v: Any) -> Any:
        """The same steps, each computed as one batch."""

        def step(state: Any, _: Any) -> Any:
            q, v = state
            a = jax.vmap(dynamics)(q, v, -q - 0.1 * v)
            return (q + 0.001 * v, v + 0.001 * a), None

        return jax.lax.scan(step, (q, v), length=200)[0][0]

    rule = optax.sgd(1e-9)  # derivatives reach 1e6: longer steps magnify rounding until results cannot be compared

    def descent(q: Any, v: Any) -> Any:
        """Ten steps of an optimiser over the initial angles."""

        def step(carry: Any, _: Any) -> Any:
            q, state = carry
            update, state = rule.update(jax.grad(mean)(q, v), state)
            return (optax.apply_updates(q, update), state), None

        return jax.lax.scan(step, (q, rule.init(q)), length=10)[0][0]

    weights = tuple(jnp.asarray(0.1 * rng.normal(size=shape)) for shape in ((2 * n, 64), (64, 64), (64, n)))

    def policy(x: Any, weights: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ weights[0]) @ weights[1]) @ weights[2]

    def steered(forces: Any, q: Any, v: Any, weights: Any) -> Any:
        """100 steps whose forces a neural network computes; forces: `dynamics` of one instance or of all."""

        def step(state: Any, _: Any) -> Any:
            q, v = state
            a = forces(q, v, policy(jnp.concatenate([q, v], -1), weights))
            return (q + 0.001 * v, v + 0.001 * a), None

        return jax.lax.scan(step, (q, v), length=100)[0][0]

    gradients = mbs.jit(jax.grad(motion), in_axes=0)

    @jax.jit
    def updated(q: Any, state: Any, found: Any) -> Any:
        update, state = rule.update(found / len(q), state)
        return optax.apply_updates(q, update), state

    def by_calls(q: Any, v: Any) -> Any:
        """The same, with each gradient as an outermost call."""
        state = rule.init(q)
        for _ in range(10):
            q, state = updated(q, state, gradients(q, v))
        return q

    out: list[Pair] = []
    outermost = mbs.jit(dynamics, in_axes=0)
    for rows in (64, 1024, 65536):
        x = tuple(jnp.asarray(rng.normal(size=(rows, n))) for _ in range(3))
        out += [
            ("forward dynamics, jit(vmap)", rows, outermost, jax.jit(jax.vmap(dynamics)), x),
            ("forward dynamics, jit(mbs.jit)", rows, outermost, jax.jit(outermost), x),
            ("forward dynamics, jit(vmap(vmap))", rows, outermost, jax.jit(nested), x),
        ]
    q, v = (jnp.asarray(0.3 * rng.normal(size=(256, n))) for _ in range(2))
    gradient = jax.jit(jax.grad(mean))
    out += [
        ("motions, jit(vmap)", 256, mbs.jit(motion, in_axes=0), jax.jit(jax.vmap(motion)), (q, v)),
        ("gradients of motions, jit(grad(mean(vmap)))", 256, lambda *a: gradients(*a) / 256, gradient, (q, v)),
        ("200 steps of control, scan around vmap", 256, mbs.jit(inside, in_axes=0), jax.jit(around), (q, v)),
        (
            "100 steps with a policy of 64 x 64, scan around vmap",
            256,
            mbs.jit(functools.partial(steered, dynamics), in_axes=(0, 0, None)),
            jax.jit(functools.partial(steered, jax.vmap(dynamics))),
            (q, v, weights),
        ),
        ("optimiser, ten steps within one jit", 256, by_calls, jax.jit(descent), (q, v)),
        ("one motion, eager", 1, mbs.jit(motion, in_axes=0), lambda q, v: motion(q[0], v[0])[None], (q[:1], v[:1])),
    ]
    return out


def timed(fn: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Seconds per call, the mean over as many calls as a round needs."""
    import jax

    calls, start = 0, time.perf_counter()
    while True:
        jax.block_until_ready(fn(*args))
        calls += 1
        if (passed := time.perf_counter() - start) > LEAST:
            return passed / calls


def measured(pair: Pair) -> dict[str, Any]:
    """One row of the table: seconds per call and of the first call of both, their ratio, the largest difference."""
    import jax

    what, rows, *functions, args = pair
    first, results, times = [], [], ([], [])
    for fn in functions:
        start = time.perf_counter()
        results.append(jax.tree_util.tree_leaves(jax.block_until_ready(fn(*args))))
        first.append(time.perf_counter() - start)
    for _ in range(ROUNDS):
        for k, fn in enumerate(functions):
            times[k].append(timed(fn, args))
    wanted, got = ([np.asarray(x) for x in leaves] for leaves in results)
    error = max(
        float(np.max(np.abs(a - b)) / max(1e-9, float(np.max(np.abs(b))))) for a, b in zip(got, wanted, strict=True)
    )
    outermost, within = map(min, times)
    return {
        "what": what, "rows": rows, "outermost_s": outermost, "within_s": within, "ratio": within / outermost,
        "first_outermost_s": first[0], "first_within_s": first[1], "error": error,
    }  # fmt: skip


def main(keep: Annotated[bool, typer.Option(help="Save the figures.")] = False) -> None:
    """Measure all rows."""
    import jax

    from jaxmbs.batching import use_all_cores

    # without the commands' cache of programs, which adds 50 microseconds to every outermost call
    jax.config.update("jax_enable_x64", True)
    use_all_cores()
    rows = []
    for pair in pairs():
        row = measured(pair)
        rows.append(row)
        times = (
            "{within_s:.3g} s, outermost {outermost_s:.3g} s; first {first_within_s:.1f} s, {first_outermost_s:.1f} s"
        )
        print(
            f"{row['what']:45} {row['rows']:6} rows: {row['ratio']:.2f}; {times.format(**row)}; {row['error']:.0e}",
            flush=True,
        )
    if keep:
        made_from.keep(RESULTS, {"machine": suite.machine(), "comparisons": rows})


if __name__ == "__main__":
    typer.run(main)
