"""The same robots in other libraries. Each peer offers functions of the arrays q, v, tau, with one row per sample, in
jaxmbs's order of coordinates, prepared so that a measured call does only the computation.

A peer that is not installed, or that cannot handle a robot, raises Absent.
"""

from __future__ import annotations

import importlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs

Run = Callable[[], Any]  # computes with inputs that it already holds
Task = tuple[
    Run, Callable[[Any], np.ndarray] | None
]  # a run, and the function that converts its result to jaxmbs's form; None if it need not agree

MOST_BODIES = 200  # of robots that peers are given
ROLLOUT_STEPS, ROLLOUT_STEP = 100, 1e-3


class Absent(Exception):
    """Raised with the reason why a peer is not measured."""


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{name} is not installed (pip install 'jaxmbs[bench]')") from error


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Segment:
    """A body with the joint that carries it; frames are parallel at q = 0, and the body frame is located at the joint."""

    name: str
    parent: int
    free: bool
    axis: np.ndarray
    position: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray


def segments(model: mbs.Model) -> list[Segment]:
    """The robot as plain data: a tree of revolute joints, the first body perhaps free."""
    out = []
    for link in model.structure.links:
        kind, j, b = type(link.joint).__name__, link.name, link.body
        if kind not in ("Revolute", "Free"):
            raise Absent(f"{kind} joints are not in this benchmark")
        axis = mbs.get(model, f"{j}.axis") if kind == "Revolute" else np.zeros(3)
        numbers = (mbs.get(model, f"{j}.parent_pose.position"), mbs.get(model, f"{b}.mass"), mbs.get(model, f"{b}.com"))
        out.append(Segment(b, link.parent, kind == "Free", np.asarray(axis), *numbers, mbs.get(model, f"{b}.inertia")))
    return out


@dataclass(frozen=True)
class Loop:
    """A hinge that closes a loop: its position on two bodies."""

    bodies: tuple[int, int]
    names: tuple[str, str]
    places: tuple[np.ndarray, np.ndarray]


def loops(model: mbs.Model) -> list[Loop]:
    order, out = model.body_names, []
    for loop in model.structure.loops:
        names = (loop.body_a, loop.body_b)
        places = (mbs.get(model, f"{loop.name}.pose_a.position"), mbs.get(model, f"{loop.name}.pose_b.position"))
        out.append(Loop((order.index(names[0]), order.index(names[1])), names, places))
    return out


def gravity(model: mbs.Model) -> np.ndarray:
    return np.asarray(mbs.get(model, "gravity"))


class Pinocchio:
    """C++, with its functions for batches on all cores where they exist; float64."""

    name, package, smallest, largest = "Pinocchio", "pin", 1, 1_000_000

    def __init__(self, model: mbs.Model, threads: int):
        self.pin, self.threads = imported("pinocchio"), threads
        pin, parts = self.pin, segments(model)
        if len(parts) > MOST_BODIES:
            raise Absent("its workspace for so many bodies takes gigabytes")
        self.model = pin.Model()
        self.model.gravity.linear = gravity(model)
        ids: dict[int, int] = {-1: 0}

        aligned = {
            tuple(a): j for a, j in zip(np.eye(3), (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ), strict=True)
        }
        waiting = [k for k, s in enumerate(parts) if s.parent < 0]
        while waiting:  # depth-first: in another order crba and the derivatives are silently wrong
            k = waiting.pop()
            s = parts[k]
            if s.free:
                joint = pin.JointModelFreeFlyer()
            elif tuple(s.axis) in aligned:
                joint = aligned[tuple(s.axis)]()
            else:
                joint = pin.JointModelRevoluteUnaligned(*s.axis)
            ids[k] = self.model.addJoint(ids[s.parent], joint, pin.SE3(np.eye(3), s.position), s.name)
            self.model.appendBodyToJoint(ids[k], pin.Inertia(s.mass, s.com, s.inertia), pin.SE3.Identity())
            waiting += [i for i, t in enumerate(parts) if t.parent == k]

        self.q_order, self.v_order = np.zeros(self.model.nq, int), np.zeros(self.model.nv, int)
        at_q = at_v = 0
        self.ids, self.loops = ids, loops(model)
        for k, s in enumerate(parts):
            from_q, from_v = ([0, 1, 2, 4, 5, 6, 3], [3, 4, 5, 0, 1, 2]) if s.free else ([0], [0])
            iq, iv = self.model.idx_qs[ids[k]], self.model.idx_vs[ids[k]]
            self.q_order[iq : iq + len(from_q)] = at_q + np.array(from_q)
            self.v_order[iv : iv + len(from_v)] = at_v + np.array(from_v)
            at_q, at_v = at_q + len(from_q), at_v + len(from_v)
        self.back = np.argsort(self.v_order)

    def task(self, function: str, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Task:
        pin, model = self.pin, self.model
        columns = [np.asfortranarray(x.T) for x in (q[:, self.q_order], v[:, self.v_order], tau[:, self.v_order])]
        rows, back, data = len(q), self.back, model.createData()
        pool = pin.ModelPool(model, self.threads)
        if function == "forward dynamics":
            return lambda: pin.abaInParallel(self.threads, pool, *columns), lambda r: np.atleast_2d(r.T)[:, back]
        if function == "inverse dynamics":
            return lambda: pin.rneaInParallel(self.threads, pool, *columns), lambda r: np.atleast_2d(r.T)[:, back]
        if function == "mass matrix":
            kept = np.empty((rows, model.nv, model.nv))

            def crba() -> np.ndarray:
                for k in range(rows):
                    kept[k] = pin.crba(model, data, columns[0][:, k])
                return kept

            def whole(m: np.ndarray) -> np.ndarray:
                return (np.triu(m) + np.triu(m, 1).swapaxes(1, 2))[:, back][:, :, back]

            return crba, whole
        if function == "derivatives of forward dynamics":

            def derivatives() -> tuple[np.ndarray, ...]:
                for k in range(rows):
                    pin.computeABADerivatives(model, data, *(x[:, k] for x in columns))
                return data.ddq_dq, data.ddq_dv, data.Minv

            def joined(d: tuple[np.ndarray, ...]) -> np.ndarray:
                inverse = np.triu(d[2]) + np.triu(d[2], 1).T
                return np.stack([x[np.ix_(back, back)] for x in (d[0], d[1], inverse)])[None]

            return derivatives, joined
        if function == "constrained dynamics":
            closings = pin.StdVec_RigidConstraintModel()
            for loop in self.loops:  # only the points of planar hinges: all else that a hinge constrains holds already
                (a, b), places = loop.bodies, [pin.SE3(np.eye(3), x) for x in loop.places]
                closing = (self.ids[a], places[0], self.ids[b], places[1], pin.ReferenceFrame.LOCAL)
                closings.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *closing))
            closing_data = pin.StdVec_RigidConstraintData()
            closing_data.extend(c.createData() for c in closings)
            pin.initConstraintDynamics(model, data, closings, closing_data)
            settings = pin.ProximalSettings(1e-13, 1e-12, 20)

            def constrained() -> np.ndarray:
                for k in range(rows):
                    pin.constraintDynamics(model, data, *(x[:, k] for x in columns), closings, closing_data, settings)
                return data.ddq

            return constrained, lambda a: a[None, back]
        raise Absent(f"Pinocchio has no {function}")


class PinocchioAlone(Pinocchio):
    """Pinocchio on one core."""

    name = "Pinocchio, 1 thread"

    def __init__(self, model: mbs.Model, threads: int):
        super().__init__(model, 1)

    def task(self, function: str, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Task:
        if function != "forward dynamics":
            raise Absent("measured for forward dynamics only")
        return super().task(function, q, v, tau)


class MuJoCo:
    """C, `rollout` on all cores, float64: one Euler step, from which the acceleration is computed, or steps of RK4."""

    name, package, smallest, largest = "MuJoCo", "mujoco", 1, 65536
    STEP = 1e-6

    def __init__(self, model: mbs.Model, threads: int):
        self.mujoco, self.threads = imported("mujoco"), threads
        self.rollout = imported("mujoco.rollout")
        self.model = compiled_by_mujoco(model, self.STEP)

    def task(self, function: str, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Task:
        if function not in ("forward dynamics", "constrained dynamics", "rollout, one evaluation of the dynamics"):
            raise Absent(f"MuJoCo has no {function} for batches")
        m, rows = self.model, len(q)
        if m.nq != m.nv:
            raise Absent("a free body's velocities are those of another frame")
        steps = 1
        if function.startswith("rollout"):
            steps, m.opt.timestep, m.opt.integrator = ROLLOUT_STEPS, ROLLOUT_STEP, self.mujoco.mjtIntegrator.mjINT_RK4
        state = np.zeros((rows, self.mujoco.mj_stateSize(m, self.mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        state[:, 1 : 1 + m.nq], state[:, 1 + m.nq : 1 + m.nq + m.nv] = q, v
        control, data = np.repeat(tau[:, None, :], steps, axis=1), [self.mujoco.MjData(m) for _ in range(self.threads)]
        pool = self.rollout.Rollout(nthread=self.threads)

        def run() -> np.ndarray:
            return pool.rollout(m, data, state, control, nstep=steps, skip_checks=False)[0]

        if function == "constrained dynamics":
            return run, None  # its loops are soft
        if steps > 1:
            return run, lambda s: s[:, -1, 1 : 1 + m.nq]
        return run, lambda s: (s[:, 0, 1 + m.nq : 1 + m.nq + m.nv] - v) / self.STEP


def mjcf(model: mbs.Model, step: float) -> str:
    """The robot in MuJoCo's format, with a motor of gain 1 in every joint and no contacts."""
    parts, g = segments(model), gravity(model)
    if len(parts) > MOST_BODIES:
        raise Absent("more bodies than a description is nested here")

    def text(x: Sequence[float] | np.ndarray) -> str:
        return " ".join(repr(float(n)) for n in np.ravel(x))

    def body(k: int) -> str:
        s = parts[k]
        inertia = [s.inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        joint = "<freejoint/>" if s.free else f'<joint name="j{k}" type="hinge" axis="{text(s.axis)}"/>'
        inside = "".join(body(i) for i, t in enumerate(parts) if t.parent == k)
        return (
            f'<body name="{s.name}" pos="{text(s.position)}">{joint}'
            f'<inertial pos="{text(s.com)}" mass="{s.mass!r}" fullinertia="{text(inertia)}"/>'
            f'<geom type="sphere" size="0.001" mass="0" contype="0" conaffinity="0"/>{inside}</body>'
        )

    bodies = "".join(body(k) for k, s in enumerate(parts) if s.parent < 0)
    motors = "".join(f'<motor joint="j{k}"/>' for k, s in enumerate(parts) if not s.free)
    joined = "".join(
        f'<connect body1="{x.names[0]}" body2="{x.names[1]}" anchor="{text(x.places[0])}"/>' for x in loops(model)
    )
    flag = "" if joined else ' constraint="disable"'
    return (
        f'<mujoco><compiler angle="radian" inertiafromgeom="false" boundinertia="1e-9"/>'
        f'<option timestep="{step}" gravity="{text(g)}"><flag contact="disable"{flag}/></option>'
        f"<worldbody>{bodies}</worldbody><equality>{joined}</equality><actuator>{motors}</actuator></mujoco>"
    )


def compiled_by_mujoco(model: mbs.Model, step: float) -> Any:
    """MuJoCo's model. Raises Absent with its words if it refuses the robot: its versions differ in what they accept."""
    try:
        return imported("mujoco").MjModel.from_xml_string(mjcf(model, step))
    except ValueError as error:
        raise Absent(f"MuJoCo refuses the robot: {' '.join(str(error).split())}") from None


class _InJax:
    """A peer written in JAX: jit(vmap) over the batch rows, in double precision, as JAX is set."""

    function = "forward dynamics"
    smallest, largest = 1024, 8192
    largest_on_gpu = 65536
    dtypes = ("float64",)

    def one(self, q: Any, v: Any, tau: Any) -> Any:
        raise NotImplementedError

    def task(self, function: str, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Task:
        if function != self.function:
            raise Absent(f"{function} is not measured in {type(self).__name__}")
        if q.shape != v.shape:
            raise Absent("only robots with a fixed base")
        arrays = [jnp.asarray(x) for x in (q, v, tau)]
        fn = jax.jit(jax.vmap(self.one))
        return lambda: jax.block_until_ready(fn(*arrays)), np.asarray


class MJX(_InJax):
    name, package = "MJX", "mujoco-mjx"
    largest = 1024  # a call takes seconds on a CPU

    def __init__(self, model: mbs.Model, threads: int):
        self.mjx = imported("mujoco.mjx")
        self.model = self.mjx.put_model(compiled_by_mujoco(model, 1e-3))
        self.data = self.mjx.make_data(self.model)

    def one(self, q: Any, v: Any, tau: Any) -> Any:
        return self.mjx.forward(self.model, self.data.replace(qpos=q, qvel=v, ctrl=tau)).qacc


class MuJoCoWarp:
    """Kernels of Warp on a GPU by NVIDIA, float32: forward dynamics of all worlds as one recorded graph of launches."""

    name, package, smallest, largest = "MuJoCo Warp", "mujoco-warp", 64, 1_000_000

    def __init__(self, model: mbs.Model, threads: int):
        self.warp, self.library = imported("warp"), imported("mujoco_warp")
        if not self.warp.is_cuda_available():
            raise Absent("Warp has no GPU here")
        self.model = compiled_by_mujoco(model, 1e-3)

    def task(self, function: str, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Task:
        if function != "forward dynamics":
            raise Absent(f"{function} is not measured in MuJoCo Warp")
        if q.shape != v.shape:
            raise Absent("only robots with a fixed base")
        model, data = self.library.put_model(self.model), self.library.make_data(self.model, nworld=len(q))
        for array, values in ((data.qpos, q), (data.qvel, v), (data.ctrl, tau)):
            array.assign(values.astype(np.float32))
        self.library.forward(model, data)  # compiles the kernels
        with self.warp.ScopedCapture() as capture:
            self.library.forward(model, data)

        def run() -> Any:
            self.warp.capture_launch(capture.graph)
            self.warp.synchronize()
            return data.qacc

        return run, lambda qacc: qacc.numpy()


class Brax(_InJax):
    name, package = "brax", "brax"

    def __init__(self, model: mbs.Model, threads: int):
        if len(model.body_names) > 12:
            raise Absent("a chain of 30 bodies compiles for more than six minutes")
        self.pipeline, self.dynamics = imported("brax.generalized.pipeline"), imported("brax.generalized.dynamics")
        text = mjcf(model, 1e-3).replace('<flag contact="disable" constraint="disable"/>', "")
        self.system = imported("brax.io.mjcf").loads(text)

    def one(self, q: Any, v: Any, tau: Any) -> Any:
        state = self.pipeline.init(self.system, q, v)
        return state.mass_mx_inv @ self.dynamics.forward(self.system, state, tau)


class Frax(_InJax):
    name, package = "frax", "frax"

    def __init__(self, model: mbs.Model, threads: int):
        parts = segments(model)
        if any(s.free for s in parts):
            raise Absent("only robots with a fixed base")
        if len(parts) > MOST_BODIES:
            raise Absent("a call takes seconds for so many bodies")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its advice on environment variables
            frax = imported("frax")
        with tempfile.NamedTemporaryFile("w", suffix=".urdf", encoding="utf-8") as file:
            file.write(urdf(parts))
            file.flush()
            self.robot = frax.Robot(file.name, joint_ordering=[f"j{k}" for k in range(len(parts))])

    def one(self, q: Any, v: Any, tau: Any) -> Any:
        return self.robot.forward_dynamics(q, v, tau, None)


def urdf(parts: Sequence[Segment]) -> str:
    def text(x: Any) -> str:
        return " ".join(repr(float(n)) for n in np.ravel(x))

    unit = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    out = [f'<robot name="robot"><link name="world">{unit}</link>']
    for k, s in enumerate(parts):
        i = s.inertia
        names = {"ixx": i[0, 0], "iyy": i[1, 1], "izz": i[2, 2], "ixy": i[0, 1], "ixz": i[0, 2], "iyz": i[1, 2]}
        numbers = " ".join(f'{n}="{float(x)!r}"' for n, x in names.items())
        parent = parts[s.parent].name if s.parent >= 0 else "world"
        out.append(
            f'<link name="{s.name}"><inertial><origin xyz="{text(s.com)}" rpy="0 0 0"/><mass value="{s.mass!r}"/>'
            f'<inertia {numbers}/></inertial></link><joint name="j{k}" type="revolute"><origin xyz="{text(s.position)}" '
            f'rpy="0 0 0"/><axis xyz="{text(s.axis)}"/><parent link="{parent}"/><child link="{s.name}"/>'
            f'<limit effort="1e9" lower="-1e9" upper="1e9" velocity="1e9"/></joint>'
        )
    return "".join([*out, "</robot>"])


PEERS = (Pinocchio, PinocchioAlone, MuJoCo, MJX, MuJoCoWarp, Brax, Frax)
