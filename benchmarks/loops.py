"""Closed loops: a four-bar linkage and six windows of bars, against Pinocchio and MuJoCo, in one process.

python benchmarks/loops.py [--batches 1 256 4096 65536] [--repeats 7]
jaxmbs: index-1 equations with multipliers, every instance with link lengths of its own. Pinocchio: constraintDynamics
with one closing point per loop (one thread, called from Python instance by instance; the cost of the call from Python is
stated). MuJoCo: mj_forward with soft "connect" equalities, as a reference of speed; its motion is not exact.
Prints ns per evaluation (median and spread), compile time apart, the error against Pinocchio, machine and versions.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from importlib.metadata import version

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import jaxmbs as mbs

G = 9.81


def rods(windows: int) -> list[tuple[str, str | None, float]]:
    """(name, rod that carries it or None, x of the foot) of every rod, in the order of the coordinates."""
    out = []
    for i in range(windows + 1):
        out.append((f"post_{i}", None, float(i)))
        if i:
            out.append((f"bar_{i}", f"post_{i - 1}", 1.0))
    return out


def in_pinocchio(windows: int) -> tuple[pin.Model, pin.StdVec_RigidConstraintModel, list[str]]:
    """Rods of 1 m and 1 kg in the xy plane; joints depth-first."""
    model, ids = pin.Model(), {}
    model.gravity.linear = np.array([0, -G, 0])
    inertia = pin.Inertia(1.0, np.array([0.5, 0, 0]), np.diag([1e-9, 1 / 12, 1 / 12]))

    def place(name: str, parent: int, x: float) -> None:
        ids[name] = model.addJoint(parent, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([x, 0, 0])), name)
        model.appendBodyToJoint(ids[name], inertia, pin.SE3.Identity())

    tree = rods(windows)
    for name, parent, x in tree:
        if parent is None:
            place(name, 0, x)
            for bar, carrier, at in tree:
                if carrier == name:
                    place(bar, ids[name], at)
    head = pin.SE3(np.eye(3), np.array([1.0, 0, 0]))
    loops = pin.StdVec_RigidConstraintModel()
    loops.extend(
        pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, model, ids[f"bar_{i}"], head, ids[f"post_{i}"], head, pin.ReferenceFrame.LOCAL
        )
        for i in range(1, windows + 1)
    )
    return model, loops, list(model.names)[1:]


def in_mujoco(windows: int) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    spec.option.gravity = [0, -G, 0]
    bodies = {}
    for name, parent, x in rods(windows):
        node = spec.worldbody if parent is None else bodies[parent]
        bodies[name] = node.add_body(
            name=name, pos=[x, 0, 0], explicitinertial=True, mass=1.0, ipos=[0.5, 0, 0], inertia=[1e-6, 1 / 12, 1 / 12]
        )
        bodies[name].add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    for i in range(1, windows + 1):
        loop = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, name1=f"bar_{i}", name2=f"post_{i}")
        loop.objtype = mujoco.mjtObj.mjOBJ_BODY
        loop.data[:3] = [1.0, 0, 0]
    return spec.compile()


def states(model: mbs.Model, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Consistent states: all posts alike."""
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    return np.outer(rng.uniform(0.3, 2.8, n), sign), np.outer(rng.normal(size=n), sign)


def dispersed(model: mbs.Model, windows: int, rng: np.random.Generator, n: int) -> tuple[mbs.Model, mbs.Model]:
    """Every instance with windows of its own width and height, closed at the same angles."""
    width, height = (np.stack([1 + rng.uniform(-0.1, 0.1, n), *np.zeros((2, n))], 1) for _ in range(2))
    values = {}
    for i in range(windows + 1):
        values[f"foot_{i}.parent_pose.position"] = i * width
        if i:
            values[f"head_{i - 1}.parent_pose.position"] = height
            values[f"window_{i}.pose_a.position"], values[f"window_{i}.pose_b.position"] = width, height
    return mbs.vary(model, values)


def timed(fn, repeats: int) -> np.ndarray:
    out = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        out.append(time.perf_counter() - start)
    return np.array(out)


def measure(windows: int, dtype: str, batch: int, repeats: int) -> str:
    model, rng = mbs.library.four_bar_windows(windows).build(), np.random.default_rng(0)
    q, v = states(model, rng, batch)
    peer, loops, names = in_pinocchio(windows)
    order = [names.index(link) for link in model.body_names]
    data, loop_data = peer.createData(), pin.StdVec_RigidConstraintData()
    loop_data.extend(c.createData() for c in loops)
    pin.initConstraintDynamics(peer, data, loops, loop_data)
    settings = pin.ProximalSettings(1e-13, 1e-12, 20)

    def pinocchio(row: int) -> np.ndarray:
        a = pin.constraintDynamics(peer, data, Q[row], V[row], zero, loops, loop_data, settings)
        return np.asarray(a)[order]

    Q, V = np.zeros((min(batch, 512), peer.nv)), np.zeros((min(batch, 512), peer.nv))
    Q[:, order], V[:, order] = q[:512], v[:512]
    zero = np.zeros(peer.nv)
    mj = in_mujoco(windows)
    mj_data = mujoco.MjData(mj)

    def mujoco_forward(row: int) -> None:
        mj_data.qpos[:], mj_data.qvel[:] = q[row], v[row]
        mujoco.mj_forward(mj, mj_data)

    same = mbs.jit(lambda q, v: mbs.constrained_dynamics(model, q, v)[0], in_axes=0)
    exact = np.stack([pinocchio(k) for k in range(len(Q))])
    got = np.asarray(same(jnp.asarray(q[: len(Q)], dtype), jnp.asarray(v[: len(Q)], dtype)), float)
    error = np.abs(got - exact).max() / np.abs(exact).max()

    many, axes = dispersed(model, windows, rng, batch)
    ours = mbs.jit(lambda m, q, v: mbs.constrained_dynamics(m, q, v)[0], in_axes=(axes, 0, 0))
    args = many, jnp.asarray(q, dtype), jnp.asarray(v, dtype)
    start = time.perf_counter()
    jax.block_until_ready(ours(*args))
    first = time.perf_counter() - start
    own = timed(lambda: jax.block_until_ready(ours(*args)), repeats) / batch * 1e9
    count = len(Q)
    pinned = timed(lambda: [pinocchio(k) for k in range(count)], repeats) / count * 1e9
    soft = timed(lambda: [mujoco_forward(k) for k in range(count)], repeats) / count * 1e9
    low, high = np.quantile(own, [0.1, 0.9])
    return (
        f"| {windows} | {dtype} | {batch} | {np.median(own):.0f} ({low:.0f}-{high:.0f}) | {np.median(pinned):.0f} | "
        f"{np.median(soft):.0f} | {first:.1f} | {error:.0e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 256, 4096, 65536])
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    cores = mbs.use_all_cores()
    print(f"{platform.machine()}, {cores} of {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{p} {version(p)}" for p in ("jaxmbs", "jax", "jaxlib", "pin", "mujoco", "numpy")))
    print(
        "| loops | dtype | batch | jaxmbs ns | Pinocchio ns, 1 thread | MuJoCo ns (soft), 1 thread | first call s | error |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for windows in (1, 6):
        for dtype in ("float64", "float32"):
            for batch in args.batches:
                print(measure(windows, dtype, batch, args.repeats), flush=True)


if __name__ == "__main__":
    main()
