"""The model: one pytree whose static part is the structure and whose leaves are the numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.forces.surroundings import ALWAYS
from jaxmbs.model.joints import Coordinate
from jaxmbs.model.mode import Mode
from jaxmbs.model.parameters import Parameter, Values
from jaxmbs.model.shapes import Float
from jaxmbs.model.structure import Structure


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Model:
    """A mechanism ready for computation; built by `Mechanism.build`, never by hand.

    structure: tree, types, names and the components that are pinned to 0 or ±1, which decide what is compiled;
    numbers: flat vector of all parameter components that are not pinned; overrides: parameters that were set to traced
    or batched values, by name. Both are leaves of the pytree: map, differentiate or replace them without recompiling.
    Models are equal when their structures and all their numbers are equal. The result of `jax.grad` with respect to a
    model has the structure of the model; read it with `derivative`, which refuses parameters with pinned components.

    >>> model = mbs.library.double_pendulum().build()
    >>> model.body_names, model.q_slice("elbow")
    (('upper', 'lower'), slice(1, 2, None))
    """

    numbers: Any
    overrides: dict[str, Any]
    structure: Structure = field(metadata={"static": True})

    def __repr__(self) -> str:
        bodies, n = self.body_names[:6], len(self.body_names)
        said = f"{n} {'body' if n == 1 else 'bodies'} ({', '.join(bodies)}{', ...' if n > len(bodies) else ''})"
        return f"<Model {self.name!r}: {said}, nq = {self.nq}, nv = {self.nv}>"

    def _repr_html_(self) -> str:
        from jaxmbs.view.html import model_html

        return model_html(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        (mine, own), (others, its) = (jax.tree_util.tree_flatten(model) for model in (self, other))
        return own == its and all(x is y or np.array_equal(x, y) for x, y in zip(mine, others, strict=True))

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.structure.name

    @property
    def nq(self) -> int:
        """Length of q."""
        return self.structure.nq

    @property
    def nv(self) -> int:
        """Length of v: the degrees of freedom of the tree."""
        return self.structure.nv

    @property
    def body_names(self) -> tuple[str, ...]:
        """Bodies, parents before children, otherwise in the order in which they were added; without the world."""
        return tuple(link.body for link in self.structure.links)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Tree joints in the order of q; joint i carries body i."""
        return tuple(link.name for link in self.structure.links)

    @property
    def force_names(self) -> tuple[str, ...]:
        """Force elements, in the order in which they were added."""
        return tuple(f.name for f in self.structure.forces)

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Cut joints, in the order in which they were added."""
        return tuple(loop.name for loop in self.structure.loops)

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """All constraints in the order of the multipliers: cut joints, then constraint elements."""
        return self.loop_names + tuple(c.name for c in self.structure.constraints)

    @property
    def event_names(self) -> tuple[str, ...]:
        """Events in the order in which they were added; `Solution.events.index` points into it."""
        return tuple(e.name for e in self.structure.events)

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """Sensors, in the order in which they were added."""
        return tuple(x.name for x in self.structure.sensors)

    @property
    def controller_names(self) -> tuple[str, ...]:
        """Controllers, in the order in which they were added."""
        return tuple(x.name for x in self.structure.controllers)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names that `get`, `set`, `free` and `vary` accept: "gravity", "<element>.<field>"."""
        return tuple(p.name for p in self.structure.parameters)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Name ("hinge.angle") and unit of every component of q."""
        return _named((link.name, link.joint.coordinates()) for link in self.structure.links)

    @property
    def speeds(self) -> tuple[Coordinate, ...]:
        """Name ("hinge.angle_rate") and unit of every component of v."""
        return _named((link.name, link.joint.speeds()) for link in self.structure.links)

    def q_slice(self, joint: str) -> slice:
        """Where the joint's coordinates lie in q."""
        return self.structure.q_slices[self.structure.find_joint(joint, "q_slice")]

    def v_slice(self, joint: str) -> slice:
        """Where the joint's rates lie in v."""
        return self.structure.v_slices[self.structure.find_joint(joint, "v_slice")]

    def neutral(self) -> Float[jax.Array, " nq"]:
        """q (nq,) at which the two frames of every joint coincide."""
        return jnp.asarray([c for link in self.structure.links for c in link.joint.neutral()], float)

    def random(self, key: jax.Array) -> Float[jax.Array, " nq"]:
        """Random q (nq,) from a key of jax.random: angles in (-pi, pi), displacements in (-1, 1) m, uniform orientations,
        and modal coordinates of flexible bodies in (-0.01, 0.01)."""
        parts = [
            link.joint.random(jax.random.fold_in(key, i))
            for i, link in enumerate(self.structure.links)
            if link.joint.nq
        ]
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    def mode(self, lock: Iterable[str] = (), off: Iterable[str] = ()) -> Mode:
        """Mode with every degree of freedom of the joints in `lock` locked, and with the force elements, loops and
        constraints in `off` switched off."""
        s = self.structure
        locked, on = np.zeros(s.nv, bool), np.ones(len(s.forces), bool)
        holds = np.ones(len(self.constraint_names), bool)
        for name in [lock] if isinstance(lock, str) else lock:
            locked[s.v_slices[s.find_moving(name, "mode(lock=...)")]] = True
        for name in [off] if isinstance(off, str) else off:
            if name in self.force_names and s.forces[self.force_names.index(name)].element.role:
                raise ModelError(f"mode(off=...): {ALWAYS.format(name=name)}")
            if name in self.force_names:
                on[self.force_names.index(name)] = False
            elif name in self.constraint_names:
                holds[self.constraint_names.index(name)] = False
            else:
                known = self.force_names + self.constraint_names
                raise unknown("force element or constraint", name, known, "mode(off=...)")
        return Mode(jnp.asarray(locked), jnp.asarray(on), jnp.asarray(holds))

    def values(self, dtype: Any = None) -> Values:
        """The numbers as components, cast to dtype (None: Python floats where they are concrete)."""
        return Values(self.structure.table, self.numbers, self.overrides, dtype)


def _named(joints: Iterable[tuple[str, tuple[Coordinate, ...]]]) -> tuple[Coordinate, ...]:
    return tuple(c._replace(name=f"{joint}.{c.name}") for joint, components in joints for c in components)


def parameter_named(model: Model, name: str, where: str) -> Parameter:
    if name not in model.structure.table:
        raise unknown("parameter", name, model.structure.table, where)
    return model.structure.table[name][0]


def get(model: Model, name: str) -> float | np.ndarray | jax.Array:
    """Value of the parameter `name` [SI]: a number or an array (NumPy if concrete); 3x3 for inertias and rotations.

    Raises ModelError for an unknown name.

    >>> model = mbs.library.double_pendulum(mass_2=1.5).build()
    >>> mbs.get(model, "lower.mass"), mbs.get(model, "lower.com").tolist()
    (1.5, [0.0, 0.0, -1.0])
    """
    p = parameter_named(model, name, "get")
    if name in model.overrides:
        own = model.overrides[name]
        if p.kind not in (Kind.INERTIA, Kind.ROTATION) or np.ndim(own) != 1:  # principal moments, a quaternion
            return own
    c = Values({name: model.structure.table[name]}, model.numbers, model.overrides, None).components(name)
    backend = jnp if any(isinstance(x, jax.Array) for x in c) else np
    if p.kind is Kind.INERTIA:
        c = (c[0], c[3], c[4], c[3], c[1], c[5], c[4], c[5], c[2])
    out = backend.stack([backend.asarray(x, float) for x in c]).reshape(p.shape)
    return float(out) if out.shape == () and backend is np else out


def derivative(gradient: Model, name: str) -> jax.Array:
    """Derivative with respect to one parameter, read from a derivative with respect to a whole model.

    gradient: the result of `jax.grad`, `jax.jacfwd`, ...: it has the structure of the model, and its leaves have the axes
    of the function's result first. Returns (..., *shape of the parameter), the derivative with respect to the value
    that `set` would give to the parameter; it is symmetric for an inertia. Raises ModelError where components are
    pinned, because the model has no number there that could vary; differentiate with respect to
    `mbs.free(model, [name])` instead.

    >>> model = mbs.library.double_pendulum().build()
    >>> slope = jax.grad(lambda model: mbs.energy(model, jnp.zeros(2), jnp.ones(2))[0])(model)
    >>> print(mbs.derivative(slope, "lower.mass").round(3))
    4.5
    """
    p = parameter_named(gradient, name, "derivative")
    if name in gradient.overrides:
        return gradient.overrides[name]
    pinned = sum(x is not None for x in p.pattern)
    if pinned:
        raise ModelError(
            f"derivative: {pinned} of {len(p.pattern)} components of {name!r} are structural numbers (0 or +-1), which have "
            f"no derivative; differentiate with respect to mbs.free(model, [{name!r}])"
        )
    offset = gradient.structure.table[name][1]
    c = gradient.numbers[..., offset : offset + len(p.pattern)]
    if p.kind is Kind.INERTIA:
        c = c[..., np.array([0, 3, 4, 3, 1, 5, 4, 5, 2])] * np.array([1, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 1], c.dtype)
    return c.reshape(*c.shape[:-1], *p.shape)


def read_only(numbers: Iterable[float]) -> np.ndarray:
    """The flat vector of a model's numbers. It cannot be written to, so that arrays made from it stay valid."""
    out = np.array(numbers, float)
    out.setflags(write=False)
    return out
