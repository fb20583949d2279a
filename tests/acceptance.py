"""The acceptance matrix: function x method x joint type x dtype x {value, jvp, vjp} x states.

`python -m tests.acceptance` writes its table into tests/README.md. A new function or method is one line in ROWS; a
joint type that it does not serve goes into `without`, with the reason, and must then be refused with a ValueError.

A cell (row and joint type) holds six checks: three modes times two dtypes, each in all states. `--slow` runs them all; by
default `chosen` deals a row's checks over its cells, one each, but for rows that take long: in the j-th of n cells of the
i-th row the checks i + j, i + j + n, ... (modulo six) until the row has had all six. So every function meets every joint
type, and every function, and every joint type, meets every combination of mode, dtype and state.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import jaxmbs as mbs
from jaxmbs.elements import element
from jaxmbs.model.events import Condition
from tests.cases import relative
from tests.mechanisms import IDENTITY, KINDS, Body, Description, Joint, Z, build, joint_q, random_mechanism, rates
from tests.mechanisms import joint as model_joint
from tests.mirrors import Pinocchio

STATES = ("random", "rest", "zero", "half turn")
POINT = (0.2, -0.1, 0.3)
DT = 2e-3
# dtype: relative tolerance of values, of derivatives
TOLERANCE = {"float64": (1e-10, 1e-8), "float32": (2e-4, 2e-3)}
MODES = ("value", "jvp", "vjp")
RESTITUTION = 0.5
CHECKS = tuple(itertools.product(MODES, TOLERANCE))


@dataclass(frozen=True, eq=False)
class Row:
    """fn(model, q, v, u) and its independent value oracle(pinocchio, q, v, u); u is an acceleration or a drive.

    quick: joint types that run by default, where a row takes long or another one holds what it checks; None: all.
    """

    function: str
    method: str
    fn: Callable
    oracle: Callable
    without: dict[str, str] = field(default_factory=dict)  # joint type -> reason
    quick: tuple[str, ...] | None = None
    step: float = 1e-3  # of the differences of the oracle: less where its values bend sharply

    @property
    def name(self):
        return f"{self.function}, {self.method}" if self.method else self.function

    @property
    def kinds(self):
        """The joint types that it serves."""
        return [kind for kind in KINDS if kind not in self.without]


def _poses(p, q, v, u):
    poses = p.body_poses(q)
    return [[poses[j.child][i] for j in p.mechanism.joints] for i in (0, 1)]


def _reactions(p, q, v, u):
    found = p.joint_reactions(q, v, p.forward_dynamics(q, v, u))
    return [found[j.name] for j in p.mechanism.joints if j.nv]


def _moving_reactions(m, q, v, u):
    wrenches = mbs.joint_reactions(m, q, v, u)
    moving = [i for i, n in enumerate(m.joint_names) if m.v_slice(n).stop > m.v_slice(n).start]
    return [wrenches[i] for i in moving]


def _final(m, q, v, u):
    run = mbs.simulate(m, q, v, DT, dt=DT, tau=u, save_every=None)
    return run.q[-1], run.v[-1]


def _integrated(p, q, v, u, steps=4, h=DT):
    """The classical method of Runge and Kutta on Pinocchio's accelerations, in finer steps than the run's."""

    def slope(x):
        q, v = x[: -len(u)], x[-len(u) :]
        return np.concatenate([rates(p.mechanism, q, v), p.forward_dynamics(q, v, u)])

    x, h = np.concatenate([_unit(p.mechanism, q), v]), h / steps
    for _ in range(steps):
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3))
    return x[: len(q)], x[len(q) :]


def _through_an_event(m, q, v, u):
    """The turntable is struck at an instant that depends on the state."""
    run = mbs.simulate(struck(m.name), q, v, DT, dt=DT, tau=u, save_every=None)
    return run.q[-1], run.v[-1], run.events.time


def _instant(angle, xp=np):
    """Within the step, by the angle of the turntable."""
    return DT * (0.5 + 0.2 * xp.sin(angle))


@element
class _Due(Condition):
    """The time is what the turntable's angle says."""

    def guards(self, p, now):
        return (now.t - _instant(now.coordinates("pivot")[0], jnp),)


def _integrated_and_struck(p, q, v, u):
    """The same motion on Pinocchio's accelerations, the instant found by repetition, and an impact by the mass matrix."""
    h, q1, v1 = 0.0, q, v
    for _ in range(6):  # each one gains two digits or more
        h = _instant(q1[0])
        q1, v1 = _integrated(p, q, v, u, 1, h)
    found = np.linalg.solve(p.mass_matrix(q1), np.eye(len(v))[0])
    v1 = v1 - (1 + RESTITUTION) * v1[0] / found[0] * found
    return *_integrated(p, q1, v1, u, 1, DT - h), np.array([h])


def _unit(mechanism, q):
    """q with quaternions of length one."""
    out = q.copy()
    for j, sq, _ in mechanism.slices():
        if j.motion in ("Spherical", "Free"):
            out[sq][-4:] /= np.linalg.norm(out[sq][-4:])
    return out


IN_ANOTHER = ("Revolute", "Spherical")  # other joint types are checked by a row that computes with what this one does


def _mass_matrix(method, without=()):
    fn = functools.partial(_of_q, mbs.mass_matrix, method=method)
    return Row("mass_matrix", method, fn, _on_q("mass_matrix"), dict(without), quick=IN_ANOTHER)


def _forward(method, without=(), quick=None):
    fn = functools.partial(mbs.forward_dynamics, method=method)
    return Row("forward_dynamics", method, fn, Pinocchio.forward_dynamics, dict(without), quick)


def _of_q(function, m, q, v, u, **options):
    return function(m, q, **options)


def _on_q(name, *more):
    """The oracle's function of q alone."""
    return lambda p, q, v, u: getattr(p, name)(q, *more)


def _on_qv(name):
    return lambda p, q, v, u: getattr(p, name)(q, v)


def _closed(method, quick=None):
    fn = functools.partial(_in_a_loop, method=method)
    return Row("constrained_dynamics", method, fn, _of_the_tree, quick=quick)


def _in_a_loop(m, q, v, u, method, more=0):
    """Accelerations of turntable and body when the joint between them closes a loop instead of carrying the body; more:
    further bodies, each held by a loop of its own."""
    poses, J = mbs.body_poses(m, q), mbs.jacobian(m, q, "body")
    R, twist = poses.rotation[1], J @ v
    held = jnp.array([0, 0, 0, 1, 0, 0, 0] * more, q.dtype)
    q = jnp.concatenate([q[:1], poses.position[1], quaternion_of(R), held])
    v = jnp.concatenate([v[:1], R.T @ twist[:3], R.T @ twist[3:], jnp.zeros(6 * more, v.dtype)])
    tau = jnp.concatenate([u[:1], jnp.zeros(6 + 6 * more, u.dtype)])
    return mbs.constrained_dynamics(looped(m.name, more), q, v, tau, method=method)[0][:7]


def _at_rest(m, q, v, u):
    """Where the turntable comes to rest, and what holds the joint, at the given coordinates of that."""
    found = mbs.equilibrium(m, q, 0.01 * u, fixed="tested")
    return jnp.sin(found.q[0]), jnp.cos(found.q[0]), found.multipliers


def _balanced(p, q, v, u):
    """The torque of gravity is a wave of the turntable's angle; at rest where it grows through that of the drive."""
    u = 0.01 * u

    def torque(angle):
        return p.inverse_dynamics(np.concatenate([[angle], q[1:]]), 0 * v, 0 * v)

    c = (torque(0.0)[0] + torque(np.pi)[0]) / 2
    wave = complex(torque(0.0)[0] - c, torque(np.pi / 2)[0] - c)
    angle = np.angle(wave) - np.arccos((u[0] - c) / abs(wave))
    return np.sin(angle), np.cos(angle), (torque(angle) - u)[1:]


def _linear(m, q, v, u):
    found = mbs.linearize(m, q, tau=u)
    return found.M, found.K


def _slopes_of_forces(p, q, v, u):
    """The mass matrix, and how the forces that the accelerations need change as the configuration is displaced."""
    q, h = _unit(p.mechanism, q), 1e-3
    a = p.forward_dynamics(q, 0 * v, u)

    def force(x):
        moved = _unit(p.mechanism, q + rates(p.mechanism, q, x))
        return p.inverse_dynamics(moved, 0 * v, a)

    K = [
        (8 * (force(h * e) - force(-h * e)) - (force(2 * h * e) - force(-2 * h * e))) / (12 * h) for e in np.eye(len(v))
    ]
    return p.mass_matrix(q), np.stack(K, axis=1)


def _of_the_tree(p, q, v, u):
    return p.accelerations("body", q, v, p.forward_dynamics(q, v, np.concatenate([u[:1], 0 * u[1:]])))


def quaternion_of(R):
    """Quaternion (4,) of a rotation matrix, from the largest of its four candidates."""
    trace = jnp.trace(R)
    vector = jnp.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    rows = [jnp.concatenate([1 + trace[None], vector])]
    for i, e in enumerate(jnp.eye(3, dtype=R.dtype)):
        rows.append(jnp.concatenate([vector[i][None], R[i] + R[:, i] + (1 - trace) * e]))
    candidates = jnp.stack(rows)
    sizes = jnp.stack([rows[k][k] for k in range(4)])
    largest = candidates[jnp.argmax(jax.lax.stop_gradient(sizes))]
    return largest / jnp.sqrt(largest @ largest)


MOVING_HINGE = dict.fromkeys(
    ("Prismatic", "Helical", "Cylindrical", "Planar", "Free"),
    "the formulation rests on hinge points that are fixed in both bodies (Free only on the world; General if it only turns)",
)
NOT_REVOLUTE = dict.fromkeys(
    (k for k in KINDS if k not in ("Revolute", "Fixed")),
    "the inertial coefficients are those of trees of revolute joints",
)
ROWS = (
    Row("body_poses", "", lambda m, q, v, u: _arrays(mbs.body_poses(m, q)), _poses),
    Row("jacobian", "", lambda m, q, v, u: mbs.jacobian(m, q, "body", POINT), _on_q("jacobian", "body", POINT)),
    Row("inverse_dynamics", "", mbs.inverse_dynamics, Pinocchio.inverse_dynamics),
    Row("bias_forces", "", lambda m, q, v, u: mbs.bias_forces(m, q, v), _on_qv("bias_forces")),
    _mass_matrix("crba"),
    _mass_matrix("configuration"),
    _mass_matrix("jacobian"),
    _mass_matrix("barycentric", MOVING_HINGE),
    _mass_matrix("wang", MOVING_HINGE),
    _mass_matrix("telegin", NOT_REVOLUTE),
    _forward("aba"),
    _forward("crba"),
    _forward("configuration", quick=("General",)),
    _forward("jacobian", quick=("Revolute",)),
    _forward("barycentric", MOVING_HINGE, quick=("Universal",)),
    _forward("wang", MOVING_HINGE, quick=("Spherical",)),
    _forward("telegin", NOT_REVOLUTE),
    _closed("multipliers", ("Cylindrical",)),
    _closed("elimination", ("Planar",)),
    Row(
        "constrained_dynamics",
        "fronts",
        functools.partial(_in_a_loop, method="multipliers", more=2),
        _of_the_tree,
        quick=(),
    ),
    Row("equilibrium", "", _at_rest, _balanced, quick=(), step=5e-5),
    Row("linearize", "", _linear, _slopes_of_forces, quick=()),
    Row("energy", "", lambda m, q, v, u: mbs.energy(m, q, v), _on_qv("energy")),
    Row("momentum", "", lambda m, q, v, u: mbs.momentum(m, q, v), _on_qv("momentum")),
    Row("joint_reactions", "", _moving_reactions, _reactions),
    Row("simulate", "rk4", _final, _integrated, quick=("Spherical",)),
    Row("simulate", "event", _through_an_event, _integrated_and_struck, quick=("Revolute",)),
)


def _arrays(pose):
    return pose.position, pose.rotation


# --- the mechanisms and their states ---------------------------------------------------------------------------------


@functools.cache
def mechanism(kind):
    """A turntable on the world that carries one body by the joint in question, in arbitrary poses."""
    one = random_mechanism(7, 1, kinds=(kind,), aligned=0.0, massless=0.0, free_base=False)
    tested = replace(one.joints[0], name="tested", parent="table", child="body")
    if kind == "General":
        tested = replace(tested, like="Bryant", axes=())
    bodies = Body("table", 1.5, np.array([0.1, 0, 0]), np.diag([0.1, 0.1, 0.1])), replace(one.bodies[0], name="body")
    pivot = Joint("pivot", "Revolute", "world", "table", IDENTITY, IDENTITY, (Z,))
    return Description(bodies, (pivot, tested), np.array([0.5, -1.0, -9.0]))


@functools.cache
def looped(kind, more=0):
    """The same two bodies, the second one free but for the joint, which closes a loop; and more, each hung on a ball."""
    description = mechanism(kind)
    pivot, tested = description.joints
    mech = mbs.Mechanism(f"{kind} in a loop", gravity=tuple(description.gravity))
    for b in description.bodies:
        mech.add_body(b.name, b.mass, b.com, b.inertia)
    mech.add_joint("pivot", model_joint(pivot), "world", "table")
    mech.add_joint("free", mbs.Free(), "world", "body")
    joint = model_joint(tested)
    if kind == "General":
        joint = replace(joint, closure=lambda z, G, t: z)
    poses = (mbs.Pose(p.position, p.quaternion) for p in (tested.parent_pose, tested.child_pose))
    mech.close_loop("tested", joint, "table", "body", *poses)
    for i in range(more):
        mech.add_body(f"more_{i}", 1.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.2))
        mech.add_joint(f"free_{i}", mbs.Free(), "world", f"more_{i}")
        mech.close_loop(f"ball_{i}", mbs.Spherical(), "world", f"more_{i}")
    return mech.build()


@functools.cache
def struck(kind):
    """The same two bodies, and an event that strikes the turntable."""
    return build(mechanism(kind), kind, [("strike", _Due(), mbs.Bounce("pivot", RESTITUTION))])


@functools.cache
def setting(kind):
    """Model, oracle, and one row (q, v, u) per state."""
    description = mechanism(kind)
    model = build(description, kind)
    rng = np.random.default_rng(len(kind))
    rows = []
    for state in STATES:
        q = np.concatenate([[0.3], joint_q(description.joints[1].motion, "random" if state == "rest" else state, rng)])
        v, u = rng.normal(size=(2, model.nv))
        rows.append((q, 0 * v if state == "rest" else v, u))
    return model, Pinocchio(description), rows


def flat(row, model):
    """The row's function from one vector (q, v, u) to one vector."""

    def f(x):
        q, v, u = jnp.split(x, [model.nq, model.nq + model.nv])
        return ravel_pytree(row.fn(model, q, v, u))[0]

    return f


# --- one cell --------------------------------------------------------------------------------------------------------


def chosen(row, kind):
    """The checks (mode, dtype) of a cell that run by default."""
    if row.quick is not None and kind not in row.quick:
        return []
    cell, cells = row.kinds.index(kind), len(row.kinds)
    turns = range(cell, max(cells, len(CHECKS)), cells)
    return [CHECKS[(ROWS.index(row) + turn) % len(CHECKS)] for turn in turns]


def failures(row, kind, mode, dtype):
    """(aspect, state, error) of whatever does not hold in the check.

    value: one state after the other. jvp, vjp: all states in one batch, the derivative along a direction or that of a
    combination of the outputs, and the value that comes with it.
    """
    model, *_ = setting(kind)
    exact, want, slopes = expected(row, kind)
    f, x = flat(row, model), jnp.asarray(exact, dtype)
    direction, weights = np.cos(np.arange(exact.shape[1])), np.sin(1.0 + np.arange(want.shape[1]))
    d, w = jnp.asarray(direction, dtype), jnp.asarray(weights, dtype)
    if mode == "value":
        one = jax.jit(f)
        found = {"value": jnp.stack([one(y) for y in x])}
    elif mode == "jvp":
        value, forward = jax.jit(jax.vmap(lambda y: jax.jvp(f, (y,), (d,))))(x)
        found = {"value": value, "jvp": forward}
    else:
        value, reverse = jax.jit(jax.vmap(functools.partial(with_gradient, f, w)))(x)
        found = {"value": value, "vjp": reverse}
    right = {"value": want, "jvp": slopes @ direction, "vjp": weights @ slopes}
    tight, loose = TOLERANCE[dtype]
    wrong = [("dtype", aspect, got.dtype) for aspect, got in found.items() if got.dtype != dtype]
    for aspect, got in found.items():
        errors = [relative(*pair) for pair in zip(got, right[aspect], strict=True)]
        tolerance = tight if aspect == "value" else loose
        wrong += [(aspect, s, e) for s, e in zip(STATES, errors, strict=True) if not e < tolerance]
    return wrong


def with_gradient(f, weights, x):
    """f(x) and the gradient of weights . f."""
    value, pull = jax.vjp(f, x)
    return value, pull(weights)[0]


@functools.cache
def expected(row, kind):
    """States (state, input), values (state, output) and slopes (state, output, input) of the oracle."""
    model, oracle, states = setting(kind)

    def value(x):
        q, v, u = np.split(x, [model.nq, model.nq + model.nv])
        return ravel_pytree(jax.tree.map(np.asarray, row.oracle(oracle, q, v, u)))[0]

    exact = np.stack([np.concatenate(state) for state in states])
    return exact, np.stack([value(x) for x in exact]), np.stack([slopes(value, x, row.step) for x in exact])


def slopes(f, x, h):
    """Jacobian (output, input) of f at x by central differences of fourth order."""
    sides = [np.stack([f(x + k * h * e) for e in np.eye(len(x))], axis=1) for k in (-2, -1, 1, 2)]
    return (sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h)


# --- the table -------------------------------------------------------------------------------------------------------

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- acceptance matrix: begin -->\n", "<!-- acceptance matrix: end -->\n"


def table():
    """Markdown: one line per function and method, one column per joint type, with the checks of the default; reasons."""
    reasons = []
    lines = ["| function, method | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for row in ROWS:
        cells = []
        for kind in KINDS:
            reason = row.without.get(kind)
            if reason and reason not in reasons:
                reasons.append(reason)
            checks = [] if reason else chosen(row, kind)
            cells.append(f"no ({reasons.index(reason) + 1})" if reason else ", ".join(map(short, checks)) or "slow")
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    lines += [""] + [f"({i}) {reason}" for i, reason in enumerate(reasons, 1)] * bool(reasons)
    served = [(row, kind) for row in ROWS for kind in row.kinds]
    default = sum(len(chosen(*cell)) for cell in served)
    total = f"{len(served)} cells; {len(served) * len(CHECKS)} checks with `--slow`, {default} of them by default."
    return "\n".join([*lines, "", total]).rstrip() + "\n"


def short(check):
    mode, dtype = check
    return mode + " " + dtype.removeprefix("float")


def with_table(text):
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
