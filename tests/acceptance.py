"""The acceptance matrix: function x method x joint type x dtype x {value, jvp, vjp, vmap, jit} x states.

`python -m tests.acceptance` writes its table into tests/README.md. A new function or method is one line in ROWS; a
joint type that it does not serve goes into `without`, with the reason, and must then be refused with a ValueError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

import jaxmbs as mbs
from tests.cases import relative
from tests.mechanisms import IDENTITY, KINDS, Body, Description, Joint, Z, build, joint_q, random_mechanism, rates
from tests.mechanisms import joint as model_joint
from tests.mirrors import Pinocchio

STATES = ("random", "rest", "zero", "half turn")
POINT = (0.2, -0.1, 0.3)
DT = 2e-3


@dataclass(frozen=True, eq=False)
class Row:
    """fn(model, q, v, u) and its independent value oracle(pinocchio, q, v, u); u is an acceleration or a drive."""

    function: str
    method: str
    fn: Callable
    oracle: Callable
    without: dict[str, str] = field(default_factory=dict)  # joint type -> reason
    slow: bool = False  # checked by `pytest --slow` only
    usual: tuple[str, ...] = KINDS  # the joint types that are checked without --slow

    @property
    def name(self):
        return f"{self.function}, {self.method}" if self.method else self.function


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


def _integrated(p, q, v, u):
    def slope(t, x):
        q, v = x[: -len(u)], x[-len(u) :]
        return np.concatenate([rates(p.mechanism, q, v), p.forward_dynamics(q, v, u)])

    end = solve_ivp(slope, (0, DT), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return end[: len(q)], end[len(q) :]


def _mass_matrix(method, without=(), slow=True):
    fn = functools.partial(_of_q, mbs.mass_matrix, method=method)
    return Row("mass_matrix", method, fn, _on_q("mass_matrix"), dict(without), slow)


def _forward(method, without=(), slow=True, usual=KINDS):
    fn = functools.partial(mbs.forward_dynamics, method=method)
    return Row("forward_dynamics", method, fn, Pinocchio.forward_dynamics, dict(without), slow, usual)


def _of_q(function, m, q, v, u, **options):
    return function(m, q, **options)


def _on_q(name, *more):
    """The oracle's function of q alone."""
    return lambda p, q, v, u: getattr(p, name)(q, *more)


def _on_qv(name):
    return lambda p, q, v, u: getattr(p, name)(q, v)


def _closed(method, usual):
    return Row("constrained_dynamics", method, functools.partial(_in_a_loop, method=method), _of_the_tree, usual=usual)


def _in_a_loop(m, q, v, u, method):
    """Accelerations of turntable and body when the joint between them closes a loop instead of carrying the body."""
    poses, J = mbs.body_poses(m, q), mbs.jacobian(m, q, "body")
    R, twist = poses.rotation[1], J @ v
    loop = looped(m.name)
    q = jnp.concatenate([q[:1], poses.position[1], quaternion_of(R)])
    v = jnp.concatenate([v[:1], R.T @ twist[:3], R.T @ twist[3:]])
    tau = jnp.concatenate([u[:1], jnp.zeros(6, u.dtype)])
    return mbs.constrained_dynamics(loop, q, v, tau, method=method)[0]


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
FEW = ("Revolute", "Spherical", "Free")
ROWS = (
    Row("body_poses", "", lambda m, q, v, u: _arrays(mbs.body_poses(m, q)), _poses),
    Row("jacobian", "", lambda m, q, v, u: mbs.jacobian(m, q, "body", POINT), _on_q("jacobian", "body", POINT)),
    Row("inverse_dynamics", "", mbs.inverse_dynamics, Pinocchio.inverse_dynamics),
    Row("bias_forces", "", lambda m, q, v, u: mbs.bias_forces(m, q, v), _on_qv("bias_forces"), usual=FEW),
    _mass_matrix("crba", slow=False),
    _mass_matrix("configuration"),
    _mass_matrix("jacobian"),
    _mass_matrix("barycentric", MOVING_HINGE),
    _mass_matrix("wang", MOVING_HINGE),
    _mass_matrix("telegin", NOT_REVOLUTE),
    _forward("aba", slow=False),
    _forward("crba", slow=False, usual=FEW),
    _forward("configuration"),
    _forward("jacobian"),
    _forward("barycentric", MOVING_HINGE),
    _forward("wang", MOVING_HINGE),
    _forward("telegin", NOT_REVOLUTE),
    _closed("multipliers", ("Universal",)),
    _closed("elimination", ()),
    Row("energy", "", lambda m, q, v, u: mbs.energy(m, q, v), _on_qv("energy")),
    Row("momentum", "", lambda m, q, v, u: mbs.momentum(m, q, v), _on_qv("momentum")),
    Row("joint_reactions", "", _moving_reactions, _reactions, usual=("General", *FEW)),
    Row("simulate", "rk4", _final, _integrated, usual=FEW[1:]),
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
def looped(kind):
    """The same two bodies, the second one free but for the joint, which closes a loop."""
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
    return mech.build()


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

# dtype: relative tolerance of values, of derivatives
TOLERANCE = {"float64": (1e-10, 1e-8), "float32": (2e-4, 2e-3)}


def failures(row, kind):
    """(dtype, aspect, state, error) of whatever does not hold in the cell.

    Two evaluations: compiled, one state at a time; and not compiled, all states in one batch together with the
    derivative along a direction (forward) and that of a combination of the outputs (reverse). jit and vmap: the two
    agree. Derivatives are compared with central differences of fourth order, taken in float64.
    """
    model, oracle, rows = setting(kind)
    f, exact = flat(row, model), np.stack([np.concatenate(r) for r in rows])
    want = np.stack([ravel_pytree(jax.tree.map(np.asarray, row.oracle(oracle, *r)))[0] for r in rows])
    compiled = jax.jit(f)
    slopes = jacobians(compiled, exact)
    direction, weights = np.cos(np.arange(exact.shape[1])), np.sin(1.0 + np.arange(want.shape[1]))
    found = []
    for dtype, (tight, loose) in TOLERANCE.items():
        x, d, w = (jnp.asarray(a, dtype) for a in (exact, direction, weights))
        with jax.disable_jit():
            batch, forward, reverse = jax.vmap(functools.partial(both_derivatives, f, d, w))(x)
        single = jnp.stack([compiled(y) for y in x])
        aspects = {
            "value": (single, want, tight),
            "jvp": (forward, slopes @ direction, loose),
            "vjp": (reverse, weights @ slopes, loose),
            "vmap": (batch, want, tight),
            "jit": (single, batch, tight),
        }
        for aspect, (got, expected, tolerance) in aspects.items():
            if got.dtype != dtype:
                found.append((dtype, aspect, "any", f"result is {got.dtype}"))
            errors = [relative(*pair) for pair in zip(got, expected, strict=True)]
            found += [(dtype, aspect, s, e) for s, e in zip(STATES, errors, strict=True) if not e < tolerance]
    return found


def both_derivatives(f, direction, weights, x):
    """f(x), its derivative along the direction (forward mode), the gradient of weights . f (reverse mode)."""
    value, push = jax.linearize(f, x)
    (pulled,) = jax.linear_transpose(push, x)(weights)
    return value, push(direction), pulled


def jacobians(f, x, h=1e-3):
    """Central differences of fourth order at the rows of x: (row, output, input)."""
    found = []
    for row in x:
        sides = [np.stack([f(row + k * h * e) for e in np.eye(len(row))], axis=1) for k in (-2, -1, 1, 2)]
        found.append((sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h))
    return np.stack(found)


# --- the table -------------------------------------------------------------------------------------------------------

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- acceptance matrix: begin -->\n", "<!-- acceptance matrix: end -->\n"


def table():
    """Markdown: one line per function and method, one column per joint type; reasons below."""
    reasons = []
    lines = ["| function, method | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for row in ROWS:
        cells = []
        for kind in KINDS:
            reason = row.without.get(kind)
            if reason and reason not in reasons:
                reasons.append(reason)
            cells.append(f"no ({reasons.index(reason) + 1})" if reason else "yes")
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    lines += [""] + [f"({i}) {reason}" for i, reason in enumerate(reasons, 1)] * bool(reasons)
    return "\n".join(lines).rstrip() + "\n"


def with_table(text):
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
