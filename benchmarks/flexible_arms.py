"""python -m benchmarks.flexible_arms [--keep]: arms with two flexible links compared with Exudyn, whose floating frames of
reference also move by modes; what a body with 20 modes costs beside 20 rigid links; results/flexible_arms.json.

Both programs start from the same mass and stiffness matrices of a truss of 24 nodes, reduce it by their own methods of Craig
and Bampton, and keep the same number of modes. The first result is whether they find the same motion. Then each takes the
fewest steps (doubled from few) with which its error is small enough: jaxmbs in batches whose stiffness varies, Exudyn one
arm after the other, by its implicit method; its explicit ones do not have joints between flexible bodies.

The elbow is a ball joint, which holds positions alone. With a hinge there the programs differ by terms of second order in
the deflections: by 9e-5 m, and by 6e-6 m with four times the stiffness. The energy of Exudyn's arm, which has neither loads
nor damping, then ends 7e-4 J above its start however short the steps are; that of jaxmbs changes by less than 1e-7 J.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import scipy.linalg
import scipy.sparse
import typer

import jaxmbs as mbs
from benchmarks import made_from, peers, suite
from benchmarks.loops import fastest
from tests.flexible.parts import truss

RESULTS = Path(__file__).parent / "results" / "flexible_arms.json"
FIRST, LAST = [0, 1, 2, 3], [20, 21, 22, 23]  # nodes of the rigid faces at the root and at the tip of a link
LENGTH = 5.0  # [m] between them
STIFFNESS, SPREAD, MODES = 100.0, 0.1, 4
RATES, T_END = (0.6, -0.8), 2.0  # of the hinge about z, and of the elbow about y [rad/s]; no gravity
FINE = (8000, 1000)  # steps of Exudyn and of jaxmbs for the check
AGREE = (2e-6, 1e-4)  # least difference of positions [m] and of velocities [m/s] that the check refuses
ERROR, MOST = 1e-5, 20_000  # greatest error of the tips' positions at the end [m]; steps
METHOD = "rk4"  # "dopri5" needs twice the steps
BATCHES, ALONE = (1, 64, 1024), 4  # arms in a batch of jaxmbs; different arms that Exudyn computes in turn
RIGID, EVALUATED = 20, 4096  # rigid links, or modes; rows of a batch
ROUNDS = 7
RADII = (0.9, 0.6)  # spectral radii of Exudyn's generalized alpha
Ends = np.ndarray  # (4, 3) positions of both tips, then their velocities


def link_matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, stiffness and positions; the origin is the middle of the first face."""
    M, K, x = truss()
    return M, STIFFNESS * K, x - x[FIRST].mean(axis=0)


def factors(n: int) -> np.ndarray:
    """(n, 2): on the stiffness of each link; the first arm is the nominal one."""
    found = 1 + SPREAD * np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    found[0] = 1.0
    return found


def arm() -> Any:
    """The model: a hinge "root", a ball joint "elbow", flexible bodies "first" and "second"."""
    mech = mbs.Mechanism("flexible arm")
    for name, nodes in (("first", {"attachments": {"tip": LAST}}), ("second", {"stations": {"tip": LAST}})):
        part = mbs.Part.from_matrices(*link_matrices(), **{"attachments": {}, **nodes}, frame=FIRST, modes=MODES)
        mech.add_flexible_body(name, part.keep(MODES), damping=0.0, order=2)
    mech.add_joint("root", mbs.Revolute((0, 0, 1)), "world", "first")
    mech.add_joint("elbow", mbs.Spherical(), "first_tip", "second")
    return mech.build()


def start(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) of the straight arm whose joints turn."""
    v = np.zeros(model.nv)
    v[model.v_slice("root")], v[model.v_slice("elbow")] = RATES[0], (0, RATES[1], 0)
    return np.asarray(model.neutral()), v


def ours(model: Any, method: str, steps: int, arms: np.ndarray) -> Callable[[], Any]:
    """A run of all arms as one batch, which returns their final (q, v, status)."""
    names = ("first.frequency", "second.frequency")
    values = {n: np.sqrt(arms[:, k : k + 1]) * mbs.get(model, n) for k, n in enumerate(names)}
    varied, axes = mbs.vary(model, values)
    q, v = start(model)

    def motion(model: Any) -> Any:
        found = mbs.simulate(model, q, v, T_END, T_END / steps, method=method, save_every=None)
        return found.q[-1], found.v[-1], found.status

    fn = mbs.jit(motion, in_axes=(axes,))
    return lambda: jax.block_until_ready(fn(varied))


def ends(model: Any, q: Any, v: Any) -> Ends:
    """What `Exudyn` returns, for the state of one arm."""
    tips = ("first_tip", "second_tip")
    poses, velocities = mbs.body_poses(model, q), np.asarray(mbs.body_velocities(model, q, v))
    return np.array([*(poses[t].position for t in tips), *(velocities[model.body_names.index(t), 3:] for t in tips)])


class Exudyn:
    """One arm, with factors on the stiffness of its links."""

    def __init__(self, arm: np.ndarray):
        self.exu, self.fem, self.items = (peers.imported(f"exudyn{name}") for name in ("", ".FEM", ".itemInterface"))
        self.container = self.exu.SystemContainer()
        system = self.system = self.container.AddSystem()
        reach, (turn, bend) = np.array([LENGTH, 0, 0]), RATES
        first = self.link(arm[0], [FIRST, LAST], 0 * reach, 0 * reach, [0, 0, turn])
        second = self.link(arm[1], [FIRST], reach, np.cross([0, 0, turn], reach), [0, bend, turn])
        self.links = first, second
        world = system.AddMarker(self.items.MarkerBodyRigid(bodyNumber=system.AddObject(self.items.ObjectGround())))
        for pair, held in (
            ((world, self.face(first, FIRST)), [1, 1, 1, 1, 1, 0]),
            ((self.face(first, LAST), self.face(second, FIRST)), [1, 1, 1, 0, 0, 0]),
        ):
            system.AddObject(self.items.GenericJoint(markerNumbers=list(pair), constrainedAxes=held))
        system.Assemble()

    def link(self, factor: float, faces: list[list[int]], position: Any, velocity: Any, spin: Any) -> int:
        """The number of a link's object, reduced to as many modes as that of jaxmbs."""
        M, K, x = link_matrices()
        mesh = self.fem.FEMinterface()
        mesh.nodes = {"Position": x}
        mesh.massMatrix, mesh.stiffnessMatrix = scipy.sparse.csr_matrix(M), scipy.sparse.csr_matrix(factor * K)
        mesh.ComputeHurtyCraigBamptonModes(
            faces, MODES, useSparseSolver=False, computationMode=self.fem.HCBstaticModeSelection.RBE2
        )
        basis = mesh.modeBasis["matrix"]
        own = scipy.linalg.eigh(basis.T @ K @ basis, basis.T @ M @ basis)[1][:, :MODES]
        mesh.modeBasis["matrix"] = basis @ own
        reduced = self.fem.ObjectFFRFreducedOrderInterface(mesh)
        return reduced.AddObjectFFRFreducedOrder(
            self.system, positionRef=list(position), initialVelocity=list(velocity), initialAngularVelocity=list(spin)
        )["oFFRFreducedOrder"]

    def face(self, link: int, nodes: list[int]) -> int:
        weights = [1 / len(nodes)] * len(nodes)
        return self.system.AddMarker(
            self.items.MarkerSuperElementRigid(bodyNumber=link, meshNodeNumbers=nodes, weightingFactors=weights)
        )

    def motion(self, radius: float, steps: int) -> Callable[[], Ends]:
        """A run from the start by generalized alpha with this spectral radius."""
        settings = self.exu.SimulationSettings()
        by = settings.timeIntegration
        by.numberOfSteps, by.endTime = steps, T_END
        by.generalizedAlpha.spectralRadius = radius
        by.newton.useModifiedNewton = True
        settings.solution.file.write = False

        def run() -> Ends:
            self.system.SolveDynamic(settings)
            kinds = self.exu.OutputVariableType.Position, self.exu.OutputVariableType.Velocity
            return np.array([
                np.mean([self.system.GetObjectOutputSuperElement(link, kind, k) for k in LAST], axis=0)
                for kind in kinds for link in self.links
            ])  # fmt: skip

        return run


def differences(found: Ends, exact: Ends) -> tuple[float, float]:
    """The largest differences of positions and of velocities."""
    off = np.abs(found - exact).reshape(-1, 2, 2, 3).max(axis=(0, 2, 3))
    return float(off[0]), float(off[1])


def all_ends(model: Any, method: str, steps: int, arms: np.ndarray) -> Ends:
    """(n, 4, 3): of all arms, by jaxmbs; not a number where a run did not end."""
    q, v, status = ours(model, method, steps, arms)()
    return np.array(
        [ends(model, *x) if ok else np.full((4, 3), np.nan) for *x, ok in zip(q, v, status == 0, strict=True)]
    )


def fewest(found: Callable[[int], Ends], exact: Ends, steps: int) -> tuple[int, float]:
    """(steps, error), with the number of steps doubled until the error is below ERROR, or the steps are more than MOST."""
    while True:
        error = differences(found(steps), exact)[0]
        if error < ERROR or steps > MOST:
            return steps, error
        steps *= 2


def timed(run: Callable[[], Any], arms: int, rounds: int) -> dict[str, float]:
    """Milliseconds per arm, of wall time and of the processor's, because a batch uses all cores."""
    wall = fastest(run, rounds)
    start = time.process_time()
    for _ in range(rounds):
        run()
    busy = (time.process_time() - start) / rounds
    return {"arms": arms, "ms_per_arm": wall / arms * 1e3, "processor_ms_per_arm": busy / arms * 1e3}


def arms_beside_exudyn(batches: tuple[int, ...] = BATCHES, alone: int = ALONE) -> dict[str, Any]:
    """The check, then the steps, errors and times of every method. Raises SystemExit if the motions differ."""
    model, few = arm(), factors(alone)
    exact = all_ends(model, "dop853", FINE[1], few)
    out: dict[str, Any] = {"t_end": T_END, "error_below": ERROR, "rows": []}
    try:
        arms = [Exudyn(x) for x in few]
    except peers.Absent as reason:
        out["Exudyn"] = {"absent": str(reason)}
        arms = []
    if arms:
        found = np.array([a.motion(RADII[0], FINE[0])() for a in arms])
        out["same_motion"] = dict(zip(("positions_m", "velocities_m_per_s"), differences(found, exact), strict=True))
        if not all(x < most for x, most in zip(out["same_motion"].values(), AGREE, strict=True)):
            raise SystemExit(f"jaxmbs and Exudyn do not find the same motion: {out['same_motion']}")
    steps, error = fewest(lambda n: all_ends(model, METHOD, n, few), exact, 50)
    for n in batches:
        run = ours(model, METHOD, steps, factors(n))
        start = time.perf_counter()
        run()
        row = {"steps": steps, "error": error, "first_result_s": time.perf_counter() - start, **timed(run, n, 5)}
        out["rows"].append({"what": f"jaxmbs, {METHOD}, a batch", **row})
    for radius in RADII if arms else ():
        steps, error = fewest(lambda n, radius=radius: np.array([a.motion(radius, n)() for a in arms]), exact, 125)
        runs = [a.motion(radius, steps) for a in arms]
        row = {"steps": steps, "error": error, **timed(lambda runs=runs: [run() for run in runs], alone, 3)}
        out["rows"].append({"what": f"Exudyn, generalized alpha, {radius}, in turn", **row})
    return out


def flexible_bodies() -> Iterator[tuple[str, Any]]:
    """(what it is, model) of a body with RIGID modes on a hinge, with a rigid body on its tip: a beam, whose bending in two
    planes, tension and torsion are not coupled, and a part in which every mode is coupled with every other."""
    M, K, x = link_matrices()
    coupled = {"attachments": {"tip": LAST}, "frame": FIRST, "modes": RIGID - 6}
    parts = {
        "beam": mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=RIGID),
        "truss": mbs.Part.from_matrices(M, K, x, **coupled),
    }
    for name, part in parts.items():
        for order in (1, 2):
            mech = mbs.Mechanism(name, gravity=(0, 0, -9.81))
            mech.add_flexible_body("body", part, order=order)
            mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "world", "body")
            mech.add_body("load", 0.5, (0.1, 0, 0), (0.01, 0.01, 0.01))
            mech.add_joint("mount", mbs.Fixed(), "body_tip", "load")
            yield f"{name}, {part.modes} modes, order {order}", mech.build()


def modes_beside_links(rows: int = EVALUATED) -> list[dict[str, Any]]:
    """Nanoseconds per forward dynamics in a batch: of rigid links, then of bodies with as many modes, in alternation."""
    models = {f"{RIGID} rigid links": mbs.library.chain(RIGID).build(), **dict(flexible_bodies())}
    rng, runs, out = np.random.default_rng(0), {}, []
    for name, model in models.items():
        q, v, tau = (0.1 * rng.normal(size=(rows, model.nv)) for _ in range(3))
        fn = mbs.jit(lambda q, v, tau, model=model: mbs.forward_dynamics(model, q, v, tau), in_axes=(0, 0, 0))
        start = time.perf_counter()
        a = np.asarray(fn(q, v, tau))
        first = time.perf_counter() - start
        k = 0  # against another algorithm
        exact = np.asarray(mbs.forward_dynamics(model, q[k], v[k], tau[k], method="crba"))
        error = float(np.abs(a[k] - exact).max() / np.abs(exact).max())
        out.append({"what": name, "first_result_s": first, "error": error})
        runs[name] = lambda fn=fn, x=(q, v, tau): jax.block_until_ready(fn(*x))
    times = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name].append(fastest(run, 2, 0.02))
    links = min(next(iter(times.values())))
    for row in out:
        own = min(times[row["what"]])
        row |= {"ns": own / rows * 1e9, "beside_links": own / links}
    return out


def main(keep: Annotated[bool, typer.Option(help="Keep the figures.")] = False) -> None:
    """Check, measure and print; under five minutes."""
    from jaxmbs.cli.common import compute

    compute("float64")
    machine = suite.machine()
    machine["versions"]["exudyn"] = peers.version_of("exudyn")
    found: dict[str, Any] = {"machine": machine, "arms": arms_beside_exudyn()}
    print(json.dumps(found["arms"], indent=1), flush=True)
    found["modes"] = modes_beside_links()
    print(json.dumps(found["modes"], indent=1))
    if keep:
        made_from.keep(RESULTS, found)


if __name__ == "__main__":
    typer.run(main)
