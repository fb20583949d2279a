"""python -m benchmarks.separation [--keep]: samples per second of a separation that MuJoCo and Pinocchio can also express.

Two free bodies and a spring between them that pushes until it is slack; masses and stiffness vary from sample to sample. The
speed of separation is known: sqrt(k s^2 (1/m_1 + 1/m_2)). MuJoCo has a loop over its models, with all steps of a sample in
one call; Pinocchio has a loop over samples and the same Runge-Kutta steps. Both loops are in Python, as is usual.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import made_from

RESULTS = Path(__file__).parent / "results" / "separation.json"
MASSES, STIFFNESS, STROKE, T_END, DT = (3000.0, 500.0), 50_000.0, 0.1, 0.3, 1e-3
MJCF = """
<mujoco><option gravity="0 0 0" timestep="{dt}" integrator="RK4"/><worldbody>
<body name="a"><freejoint/><inertial pos="0 0 0" mass="{a}" diaginertia="2000 9000 9000"/><site name="a"/></body>
<body name="b" pos="1 0 0"><freejoint/><inertial pos="0 0 0" mass="{b}" diaginertia="75 200 200"/><site name="b"/></body>
</worldbody><tendon>
<spatial name="spring" stiffness="{k}" springlength="{long} 100"><site site="a"/><site site="b"/></spatial>
</tendon></mujoco>
"""


def drawn(n: int) -> np.ndarray:
    """Masses and stiffness of n random samples, (n, 3)."""
    return np.array([*MASSES, STIFFNESS]) * (1 + 0.02 * np.random.default_rng(0).normal(size=(n, 3)))


def exact(x: np.ndarray) -> np.ndarray:
    return np.sqrt(x[:, 2] * STROKE**2 * (1 / x[:, 0] + 1 / x[:, 1]))


def ours(x: np.ndarray) -> Any:
    import jax

    import jaxmbs as mbs

    mech = mbs.Mechanism("separation", gravity=(0, 0, 0))
    mech.add_body("a", mass=MASSES[0], inertia=(2000, 9000, 9000))
    mech.add_body("b", mass=MASSES[1], inertia=(75, 200, 200))
    mech.add_joint("flight", mbs.Free(), parent="world", child="a")
    mech.add_joint("other", mbs.Free(), parent="world", child="b")
    spring = mbs.Pusher(
        "a", "b", (1, 0, 0), (0, 0, 0), (1, 0, 0), stiffness=STIFFNESS, preload=STIFFNESS * STROKE, stroke=STROKE
    )
    mech.add_force("spring", spring)
    names = ("a.mass", "b.mass", "spring.stiffness", "spring.preload")
    model = mech.build()
    varied, axes = mbs.vary(model, dict(zip(names, [*x.T, x[:, 2] * STROKE], strict=True)))
    q = np.zeros(model.nq)
    q[[3, 10]], q[7] = 1.0, 1.0

    def speed(model: Any) -> Any:
        v = mbs.simulate(model, q, np.zeros(model.nv), T_END, DT, save_every=None).v[-1]
        return v[9] - v[3]

    fn = mbs.jit(speed, in_axes=(axes,))
    return lambda: np.asarray(jax.block_until_ready(fn(varied)))


def mujoco(x: np.ndarray) -> Any:
    import mujoco as mj

    model = mj.MjModel.from_xml_string(MJCF.format(dt=DT, a=MASSES[0], b=MASSES[1], k=STIFFNESS, long=1 + STROKE))
    inertia = model.body_inertia.copy()
    data = mj.MjData(model)

    def run() -> np.ndarray:
        out = np.zeros(len(x))
        for i, (a, b, k) in enumerate(x):
            model.body_mass[1:], model.tendon_stiffness[0], model.body_inertia[:] = (a, b), k, inertia
            mj.mj_setConst(model, data)
            mj.mj_resetData(model, data)
            mj.mj_step(model, data, nstep=round(T_END / DT))
            out[i] = data.qvel[6] - data.qvel[0]
        return out

    return run


def pinocchio(x: np.ndarray) -> Any:
    import pinocchio as pin

    model = pin.Model()
    for m, inertia in zip(MASSES, ((2000.0, 9000.0, 9000.0), (75.0, 200.0, 200.0)), strict=True):
        j = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), str(m))
        model.appendBodyToJoint(j, pin.Inertia(m, np.zeros(3), np.diag(inertia)), pin.SE3.Identity())
    model.gravity.linear[:] = 0.0
    data = model.createData()
    start = pin.neutral(model)
    start[7] = 1.0

    def run() -> np.ndarray:
        out = np.zeros(len(x))
        for i, (a, b, k) in enumerate(x):
            model.inertias[1].mass, model.inertias[2].mass = a, b
            tau = np.zeros(12)

            def rate(q: np.ndarray, v: np.ndarray, k: float = k, tau: np.ndarray = tau) -> np.ndarray:
                f = max(0.0, k * (1 + STROKE - (q[7] - q[0])))  # both keep their attitude: the spring acts along x
                tau[0], tau[6] = -f, f
                return pin.aba(model, data, q, v, tau)

            q, v, h = start, np.zeros(12), DT
            for _ in range(round(T_END / DT)):
                a1 = rate(q, v)
                v2 = v + h / 2 * a1
                a2 = rate(pin.integrate(model, q, h / 2 * v), v2)
                v3 = v + h / 2 * a2
                a3 = rate(pin.integrate(model, q, h / 2 * v2), v3)
                v4 = v + h * a3
                a4 = rate(pin.integrate(model, q, h * v3), v4)
                q = pin.integrate(model, q, h / 6 * (v + 2 * v2 + 2 * v3 + v4))
                v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
            out[i] = v[6] - v[0]
        return out

    return run


def main(keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False) -> None:
    """Samples per second of wall time and of processor time, and the largest relative error of the speed."""
    from jaxmbs.cli.common import compute

    compute("float64")
    found = {}
    for name, make, n in (
        ("jaxmbs", ours, 20_800),
        ("MuJoCo, a loop", mujoco, 200),
        ("Pinocchio, a loop", pinocchio, 20),
    ):
        x = drawn(n)
        run = make(x)
        run()
        begin, used = time.perf_counter(), time.process_time()
        v = run()
        wall, cpu = time.perf_counter() - begin, time.process_time() - used
        error = float(np.max(np.abs(v / exact(x) - 1)))
        found[name] = {"samples": n, "per_second": n / wall, "per_cpu_second": n / cpu, "error": error}
    print(json.dumps(found, indent=1))
    if keep:
        made_from.keep(RESULTS, found)


if __name__ == "__main__":
    typer.run(main)
