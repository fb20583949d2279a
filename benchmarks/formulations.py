"""Cost of every tree formulation against the number of bodies: python benchmarks/formulations.py [--largest 100]

Chains of n revolute joints (axes y and x alternately; all y for "planar"; on a Free joint for "fictitious"), forward
dynamics in float64, batch by `jax.vmap` on one CPU device. Every row is checked before it is timed: its accelerations
must satisfy the equations of the recursive Newton-Euler algorithm. Columns: operations per evaluation (read from the
traced program; a trigonometric value counts as one), compile time (separate from run time), run time per evaluation.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.dynamics.formulations.methods import METHODS
from jaxmbs.library import chain

SIZES = (2, 5, 10, 20, 50, 100)
# beyond this many bodies, a slow method takes long and shows nothing new
LARGEST = {"jacobian": 20}
_FREE_OF_CHARGE = {
    "broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "concatenate", "gather", "convert_element_type",
    "copy", "rev", "iota", "pad", "dynamic_slice", "expand_dims", "stop_gradient", "split",
}  # fmt: skip


def operations(jaxpr: Any) -> int:
    """Scalar operations of a traced program; a trigonometric or square root value counts as one."""
    total = 0
    for equation in jaxpr.eqns:
        name, out = equation.primitive.name, equation.outvars[0].aval if equation.outvars else None
        inner = [p for p in jax.tree_util.tree_leaves(equation.params, is_leaf=_is_program) if _is_program(p)]
        if inner:
            times = equation.params.get("length", 1) if name == "scan" else 1
            total += times * sum(operations(getattr(p, "jaxpr", p)) for p in inner)
        elif name == "dot_general":
            ((contracted, _), _) = equation.params["dimension_numbers"]
            depth = math.prod(equation.invars[0].aval.shape[k] for k in contracted)
            total += math.prod(out.shape) * max(1, 2 * depth - 1)
        elif name.startswith("reduce_") or name in ("argmax", "argmin"):
            total += math.prod(equation.invars[0].aval.shape)
        elif name in ("cholesky", "triangular_solve"):
            n = equation.invars[0].aval.shape[-1]
            total += n**3 // 3 if name == "cholesky" else n * n
        elif out is not None and name not in _FREE_OF_CHARGE:
            total += math.prod(getattr(out, "shape", ()))
    return total


def _is_program(x: Any) -> bool:
    return hasattr(x, "eqns") or hasattr(getattr(x, "jaxpr", None), "eqns")


def mechanism(method: str, n: int) -> mbs.Model:
    if method == "planar":
        return chain(n, axes=((0, 1, 0),)).build()
    if method != "fictitious":
        return chain(n).build()
    mech = mbs.Mechanism(f"free chain of {n}", gravity=(0, 0, -9.81))
    for i in range(1, n + 1):
        mech.add_body(f"link_{i}", 1.0, (0, 0, -0.25), (0.02, 0.02, 0.001))
        joint = mbs.Free() if i == 1 else mbs.Revolute(((0, 1, 0), (1, 0, 0))[i % 2])
        mech.add_joint(f"joint_{i}", joint, f"link_{i - 1}" if i > 1 else "world", f"link_{i}", mbs.Pose((0, 0, -0.5)))
    return mech.build()


def measure(method: str, n: int, seconds: float = 0.5) -> dict[str, Any]:
    """One row: operations, compile time, time per evaluation, relative residual of the equations of motion."""
    model = mechanism(method, n)
    batch = int(np.clip(4096 // n, 32, 512))
    q = jax.vmap(model.random)(jax.random.split(jax.random.key(0), batch))
    v, tau = jax.random.normal(jax.random.key(1), (2, batch, model.nv))

    def one(q: jax.Array, v: jax.Array, tau: jax.Array, method: str = method) -> jax.Array:
        return mbs.forward_dynamics(model, q, v, tau, method=method)

    count = operations(jax.make_jaxpr(one)(q[0], v[0], tau[0]).jaxpr)
    start = time.perf_counter()
    compiled = jax.jit(jax.vmap(one)).lower(q, v, tau).compile()
    compile_s = time.perf_counter() - start
    a = compiled(q, v, tau).block_until_ready()
    # the residual of A a + bias = tau, since long chains are ill-conditioned
    few = slice(0, 8)
    needed = jax.jit(jax.vmap(lambda q, v, a: mbs.inverse_dynamics(model, q, v, a)))(q[few], v[few], a[few])
    terms = jax.jit(jax.vmap(lambda q, a: jnp.abs(mbs.mass_matrix(model, q)) @ jnp.abs(a)))(q[few], a[few])
    error = float(jnp.max(jnp.abs(needed - tau[few])) / jnp.max(terms))
    runs, best, until = 0, math.inf, time.perf_counter() + seconds
    while runs < 3 or time.perf_counter() < until:
        start = time.perf_counter()
        compiled(q, v, tau).block_until_ready()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return {
        "method": method, "n": n, "operations": count, "compile_s": compile_s, "us": best / batch * 1e6,
        "error": error, "batch": batch,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--largest", type=int, default=100, help="largest number of bodies")
    parser.add_argument("--methods", nargs="*", default=["aba", *METHODS])
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"# {platform.processor() or platform.machine()}, jax {jax.__version__}, {jax.devices()[0].platform}")
    print(f"{'method':14}{'n':>5}{'operations':>13}{'compile s':>11}{'us':>10}{'error':>10}")
    rows = []
    for method in args.methods:
        for n in (n for n in SIZES if n <= min(args.largest, LARGEST.get(method, 10**9))):
            row = measure(method, n)
            rows.append(row)
            print(
                f"{row['method']:14}{n:5}{row['operations']:13,}{row['compile_s']:11.2f}{row['us']:10.2f}"
                f"{row['error']:10.0e}", flush=True,
            )  # fmt: skip
            if not row["error"] < 1e-9:
                raise SystemExit(f"{method} with {n} bodies is wrong: {row['error']:.1e}")
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
