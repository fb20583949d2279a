"""Forward dynamics of a batch against Pinocchio's C++ on all cores, in one process, on the same inputs.

python benchmarks/forward_dynamics.py [--batch 8192] [--repeats 15]
Prints ns per evaluation (median and spread), the ratio taken pair by pair, compile time apart, the largest relative
error, machine and versions.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin

import jaxmbs as mbs

CASES = [(7, "float64"), (7, "float32"), (30, "float64"), (30, "float32")]
INERTIA = np.array([[0.08, 0.001, 0.002], [0.001, 0.07, -0.001], [0.002, -0.001, 0.02]])


def chain(n: int) -> tuple[mbs.Model, pin.Model]:
    """The same chain of n revolute joints, alternately about z and y, in both libraries."""
    mech, peer, parent = mbs.Mechanism("chain", gravity=(0, 0, -9.81)), pin.Model(), 0
    peer.gravity.linear = np.array([0, 0, -9.81])
    for i in range(n):
        mass, com, offset = 4.0 - 0.4 * (i % 8), np.array([0.01, 0.02 * (-1) ** i, 0.1]), np.array([0, 0, 0.2])
        mech.add_body(f"b{i}", mass=mass, com=com, inertia=INERTIA)
        axis, joint = ((0, 0, 1), pin.JointModelRZ()) if i % 2 == 0 else ((0, 1, 0), pin.JointModelRY())
        mech.add_joint(
            f"j{i}", mbs.Revolute(axis=axis), f"b{i - 1}" if i else "world", f"b{i}", mbs.Pose(position=offset)
        )
        parent = peer.addJoint(parent, joint, pin.SE3(np.eye(3), offset), f"j{i}")
        peer.appendBodyToJoint(parent, pin.Inertia(mass, com, INERTIA), pin.SE3.Identity())
    return mech.build(), peer


def measure(n: int, dtype: str, batch: int, repeats: int, cores: int) -> str:
    model, peer = chain(n)
    rng = np.random.default_rng(0)
    state = [rng.normal(size=(batch, n)) for _ in range(3)]
    pool, columns = pin.ModelPool(peer, cores), [np.asfortranarray(x.T) for x in state]
    ours = mbs.jit(lambda q, v, tau: mbs.forward_dynamics(model, q, v, tau), in_axes=0)
    args = [jnp.asarray(x, dtype) for x in state]
    start = time.perf_counter()
    result = jax.block_until_ready(ours(*args))
    first = time.perf_counter() - start
    expected = pin.abaInParallel(cores, pool, *columns).T
    error = np.abs(np.asarray(result, float) - expected).max() / np.abs(expected).max()
    times = np.zeros((repeats, 2))
    for row in times:
        start = time.perf_counter()
        pin.abaInParallel(cores, pool, *columns)
        middle = time.perf_counter()
        jax.block_until_ready(ours(*args))
        row[:] = middle - start, time.perf_counter() - middle
    peer_ns, own_ns = np.median(times, axis=0) / batch * 1e9
    low, high = np.quantile(times[:, 1], [0.1, 0.9]) / batch * 1e9
    ratio = np.median(times[:, 0] / times[:, 1])
    own = f"{own_ns:.0f} ({low:.0f}-{high:.0f})"
    return f"| {n} | {dtype} | {own} | {peer_ns:.0f} | {ratio:.1f} | {first:.1f} | {error:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    cores = mbs.use_all_cores()
    print(f"{platform.machine()}, {cores} of {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{p} {version(p)}" for p in ("jaxmbs", "jax", "jaxlib", "pin", "numpy")), f"; batch {args.batch}")
    print("| links | dtype | jaxmbs ns | Pinocchio ns (float64) | ratio | first call s | error |")
    print("|---|---|---|---|---|---|---|")
    for n, dtype in CASES:
        print(measure(n, dtype, args.batch, args.repeats, cores), flush=True)


if __name__ == "__main__":
    main()
