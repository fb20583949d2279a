"""What a dispersion can act on, and how: parameters of the model and initial values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.io.errors import choices
from jaxmbs.model import get
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import names_in
from jaxmbs.study import units
from jaxmbs.study.outputs.base import normals

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.joints import Joint
    from jaxmbs.model.parameters import Parameter

Array = Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Numbers:
    """The numbers of one sample that differ between samples: parameters by name, q (nq,), v (nv,)."""

    parameters: dict[str, Array]
    q: Array
    v: Array


@dataclass(frozen=True)
class Way:
    """One way of acting on a target.

    neutral (k,): the draw that changes nothing; quantity: what a draw measures (None: unknown, any unit is accepted);
    act: returns the sample's numbers with a draw (k,) applied.
    """

    neutral: np.ndarray
    quantity: str | None
    act: Callable[[Numbers, Array], Numbers]


@dataclass(frozen=True)
class Target:
    """A quantity that can be dispersed. ways: how draws can act on it, the default first; kind: that of the parameter,
    None for a rotation or an initial value, which no draw makes invalid."""

    name: str
    nominal: np.ndarray
    ways: Mapping[str, Way]
    kind: Kind | None = None

    @property
    def is_mass(self) -> bool:
        """Whether it is a mass or an inertia: no draw may make these vanish, since something would move without mass."""
        return self.kind is Kind.INERTIA or (self.kind is not None and self.name.endswith(".mass"))


def target(name: str, model: Model, joints: Mapping[str, Joint], q0: np.ndarray, v0: np.ndarray) -> Target:
    """The target called `name`. Raises ValueError with similar names if there is none."""
    if name.startswith("initial."):
        return _initial(name, model, joints, q0, v0)
    if name not in model.parameter_names:
        known = [*model.parameter_names, *initial_names(joints)]
        raise ValueError(f'there is no "{name}" to disperse; {choices(name, known, "targets")}')
    if name in model.structure.fixed_by_modes:
        raise ValueError(f'the modes of a flexible body belong to "{name}"; disperse its frequency or damping instead')
    nominal, (p, _) = np.asarray(get(model, name), float), model.structure.table[name]
    if p.kind is Kind.INERTIA:
        return _inertia(name, nominal)
    if p.kind is Kind.DIRECTION:
        return Target(name, nominal, {"tilt": _tilted_direction(name, nominal)}, p.kind)
    if p.kind is Kind.ROTATION:
        return Target(name, nominal, {"tilt": _tilted_rotation(name)})

    def act(sample: Numbers, change: Callable[[Array], Array]) -> Numbers:
        return replace(sample, parameters=sample.parameters | {name: change(sample.parameters[name])})

    return Target(name, nominal, _plain(nominal, units.quantity(_unit(model, p)), act), p.kind)


def _unit(model: Model, p: Parameter) -> str:
    """SI unit of a parameter; if it is "N m/rad or N/m", the one that fits the joint on which the element acts."""
    element = model.structure.elements.get(p.name.partition(".")[0])
    if p.unit.count(" or ") != 1 or element is None:
        return p.unit
    joints: list[Any] = [model.structure.elements[j] for _, j in names_in(element, Kind.JOINT)]
    measured = {c.unit for joint in joints for c in joint.coordinates()}
    about, along = p.unit.split(" or ")
    return about if measured == {"rad"} else along if measured == {"m"} else p.unit


def initial_names(joints: Mapping[str, Joint]) -> list[str]:
    """Every initial value that can be dispersed."""
    return [f"initial.{j}.{part}" for j, joint in joints.items() for part in parts_of(joint)]


def start(targets: Mapping[str, Target], q0: np.ndarray, v0: np.ndarray, dtype: Any) -> Numbers:
    """The nominal parameters that are dispersed, and the nominal initial state."""
    parameters = {n: jnp.asarray(t.nominal, dtype) for n, t in targets.items() if not n.startswith("initial.")}
    return Numbers(parameters, jnp.asarray(q0, dtype), jnp.asarray(v0, dtype))


def _plain(nominal: np.ndarray, quantity: str | None, act: Callable[[Numbers, Any], Numbers]) -> dict[str, Way]:
    shape, k = nominal.shape, nominal.size

    def way(neutral: np.ndarray, quantity: str | None, change: Callable[[Array, Array], Array]) -> Way:
        return Way(neutral, quantity, lambda sample, draw: act(sample, lambda x: change(x, draw.reshape(shape))))

    return {
        "replace": way(nominal.reshape(k), quantity, lambda x, d: d),
        "add": way(np.zeros(k), quantity, lambda x, d: x + d),
        "multiply": way(np.ones(k), "number", lambda x, d: x * d),
    }


# --- inertia ------------------------------------------------------------------------------------------------------


def _inertia(name: str, nominal: np.ndarray) -> Target:
    """Target for an inertia, which draws scale ("multiply") or rotate ("tilt"). Scaling stretches the body along the
    nominal principal axes: each mass element dm moves from x to A x, where A is symmetric and positive definite.

    The second moments G = tr(I)/2 - I become A G Aᵀ; the draw's factors are the squares of A's eigenvalues. For any
    positive factors, and however often this is done, the result is the inertia of some mass distribution: it is
    positive and satisfies the triangle inequality.
    """
    second = np.trace(nominal) / 2 * np.eye(3) - nominal
    diagonal = np.count_nonzero(nominal - np.diag(np.diag(nominal))) == 0
    axes = np.eye(3) if diagonal else np.linalg.eigh(second)[1]

    def change(sample: Numbers, fn: Callable[[Array], Array]) -> Numbers:
        return replace(sample, parameters=sample.parameters | {name: fn(sample.parameters[name])})

    def scale(inertia: Array, factors: Array) -> Array:
        one = jnp.eye(3, dtype=inertia.dtype)
        A = jnp.diag(jnp.sqrt(factors)) if diagonal else (axes * jnp.sqrt(factors)[None, :]) @ axes.T
        G = _symmetric(A @ (jnp.trace(inertia) / 2 * one - inertia) @ A.T)
        return jnp.trace(G) * one - G

    def rotated(inertia: Array, vector: Array) -> Array:
        R = rotation_of(vector)
        return _symmetric(R @ inertia @ R.T)

    ways = {
        "multiply": Way(np.ones(3), "number", lambda sample, d: change(sample, lambda x: scale(x, d))),
        "tilt": Way(np.zeros(3), "angle", lambda sample, d: change(sample, lambda x: rotated(x, d))),
    }
    return Target(name, nominal, ways, Kind.INERTIA)


def _symmetric(x: Array) -> Array:
    return (x + x.T) / 2


# --- rotations ----------------------------------------------------------------------------------------------------


def _tilted_direction(name: str, nominal: np.ndarray) -> Way:
    first, second = (np.asarray(e) for e in normals(nominal))

    def act(sample: Numbers, draw: Array) -> Numbers:
        turned = rotation_of(draw[0] * first + draw[1] * second) @ sample.parameters[name]
        return replace(sample, parameters=sample.parameters | {name: turned})

    return Way(np.zeros(2), "angle", act)


def _tilted_rotation(name: str) -> Way:
    def act(sample: Numbers, draw: Array) -> Numbers:
        turned = sample.parameters[name] @ rotation_of(draw)
        return replace(sample, parameters=sample.parameters | {name: turned})

    return Way(np.zeros(3), "angle", act)


def rotation_of(vector: Array) -> Array:
    """3x3 rotation matrix for the rotation vector (3,) [rad]."""
    square = vector @ vector
    angle = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    x, y, z = vector
    K = jnp.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])
    a = jnp.where(square > 0, jnp.sin(angle) / angle, 1.0)
    b = jnp.where(square > 0, 0.5 * (jnp.sin(angle / 2) / (angle / 2)) ** 2, 0.5)
    return jnp.eye(3, dtype=K.dtype) + a * K + b * (K @ K)


def quaternion_times(q: Array, vector: Array) -> Array:
    """The quaternion q (w, x, y, z) followed by a rotation by the rotation vector (3,) [rad] in the rotated axes."""
    square = vector @ vector
    angle = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    s = jnp.where(square > 0, jnp.sin(angle / 2) / angle, 0.5)
    w, u = jnp.where(square > 0, jnp.cos(angle / 2), 1.0), s * vector
    return jnp.concatenate([(q[0] * w - q[1:] @ u)[None], q[0] * u + w * q[1:] + jnp.cross(q[1:], u)])


# --- initial values -----------------------------------------------------------------------------------------------


def parts_of(joint: Joint) -> dict[str, tuple[slice, str]]:
    """Parts of a joint's state that are dispersed together: name -> (components, quantity that they measure)."""
    out = {}
    for field, components in (("q", joint.coordinates()), ("v", joint.speeds())):
        for part, group in itertools.groupby(range(len(components)), key=lambda k: components[k].part):
            found = list(group)
            turns = field == "q" and found[0] == joint.quaternion
            measured = (
                "angle" if turns else _common(tuple(units.quantity(components[k].unit) or "number" for k in found))
            )
            out[f"{field}.{part}" if part else field] = (slice(found[0], found[-1] + 1), measured)
    return out


def _common(quantities: tuple[str, ...]) -> str:
    return quantities[0] if len(set(quantities)) == 1 else "several quantities"


def _initial(name: str, model: Model, joints: Mapping[str, Joint], q0: np.ndarray, v0: np.ndarray) -> Target:
    joint = next((j for j in joints if name.startswith(f"initial.{j}.")), None)
    parts = parts_of(joints[joint]) if joint else {}
    part = name.removeprefix(f"initial.{joint}.")
    if joint is None or part not in parts:
        raise ValueError(f'there is no "{name}" to disperse; {choices(name, initial_names(joints), "targets")}')
    components, quantity = parts[part]
    field, state = ("q", q0) if part[0] == "q" else ("v", v0)
    whole = (model.q_slice if field == "q" else model.v_slice)(joint)
    where = slice(whole.start + components.start, whole.start + components.stop)

    nominal = np.asarray(state[where], float)

    def act(sample: Numbers, change: Callable[[Array], Array]) -> Numbers:
        vector = getattr(sample, field)
        changed = jnp.reshape(change(vector[where]), nominal.shape).astype(vector.dtype)
        # programs of a row can contain neither `at[...].set` nor empty arrays
        parts = [x for x in (vector[: where.start], changed, vector[where.stop :]) if x.size]
        return replace(sample, **{field: jnp.concatenate(parts)})

    if field == "q" and components.start == joints[joint].quaternion:
        tilt = Way(np.zeros(3), "angle", lambda sample, d: act(sample, lambda q: quaternion_times(q, d)))
        return Target(name, nominal, {"tilt": tilt})
    return Target(name, nominal, _plain(nominal, quantity if quantity != "several quantities" else None, act))
