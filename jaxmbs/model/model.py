"""The model: one pytree whose static part is the structure and whose leaves are the numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.field_rules import Kind, checked_rows
from jaxmbs.model.fields import check_together
from jaxmbs.model.forces.surroundings import ALWAYS
from jaxmbs.model.given import AnyShape, shape_of
from jaxmbs.model.joints import Coordinate
from jaxmbs.model.mode import Mode
from jaxmbs.model.parameters import Parameter, Values, concrete_components, fits, is_traced
from jaxmbs.model.redundancy import with_rows_for
from jaxmbs.model.shapes import Float
from jaxmbs.model.structure import WORLD, Structure
from jaxmbs.model.taken import check_taken


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
        """Random q (nq,) from a key of jax.random: angles in (-pi, pi), displacements in (-1, 1) m, uniform orientations."""
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


def _parameter(model: Model, name: str, where: str) -> Parameter:
    if name not in model.structure.table:
        raise unknown("parameter", name, model.structure.table, where)
    return model.structure.table[name][0]


def _changeable(model: Model, name: str, where: str) -> Parameter:
    p = _parameter(model, name, where)
    if name in model.structure.fixed_by_modes:
        raise ModelError(
            f"{where} {name!r}: the body is flexible, and its modes belong to this value; make another part, and add the "
            "body with it"
        )
    return p


def get(model: Model, name: str) -> float | np.ndarray | jax.Array:
    """Value of the parameter `name` [SI]: a number or an array (NumPy if concrete); 3x3 for inertias and rotations.

    Raises ModelError for an unknown name.

    >>> model = mbs.library.double_pendulum(mass_2=1.5).build()
    >>> mbs.get(model, "lower.mass"), mbs.get(model, "lower.com").tolist()
    (1.5, [0.0, 0.0, -1.0])
    """
    p = _parameter(model, name, "get")
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
    p = _parameter(gradient, name, "derivative")
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


def set(model: Model, values: Mapping[str, AnyShape]) -> Model:
    """The model with other values {name: value} of some parameters.

    Plain numbers are checked as in `build`. A value that is traced, or that differs from a pinned 0 or +-1, makes all
    components of the parameter variable, which costs one compilation. Raises ModelError for unknown names, wrong shapes
    and unphysical values.

    >>> model = mbs.set(mbs.library.double_pendulum().build(), {"lower.mass": 3.0, "gravity": (0, 0, -1.62)})
    >>> mbs.get(model, "lower.mass")
    3.0
    """
    concrete: dict[str, list[float]] = {}
    overrides = dict(model.overrides)
    for name, value in values.items():
        p = _changeable(model, name, "set")
        if is_traced(value) or any(is_traced(x) for x in jax.tree_util.tree_leaves(value)):
            value = jnp.asarray(value)
            if value.shape not in p.forms and not _is_batched(p, value.shape):
                raise ModelError(f"set {name!r}: one instance has shape {value.shape}; pass {_instance_shapes(p)}")
            overrides[name] = value
        elif _is_batched(p, shape_of(value)):
            checked_rows(p.kind, value, f"set {name!r}")
            overrides[name] = _array(value)
        else:
            concrete[name] = concrete_components(p.kind, value, f"set {name!r}")
            if len(concrete[name]) != len(p.pattern):
                raise ModelError(f"set {name!r}: got {len(concrete[name])} numbers, but the model has {len(p.pattern)}")
            overrides.pop(name, None)
    new = replace(_with_components(model, concrete), overrides=overrides)
    _check_elements(new, values, "set")
    return with_rows_for(new, model)


def free(model: Model, names: Iterable[str]) -> Model:
    """The model in which no component of the parameters in `names` is pinned to 0 or +-1.

    Do this before differentiating with respect to a component whose value is exactly 0 or +-1; `derivative` reads the
    result and refuses parameters that are still pinned.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.free(model, ["lower.com"]).numbers.size - model.numbers.size  # components that were pinned
    2
    """
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        _changeable(model, name, "free")
    return with_rows_for(_with_components(model, {}, loosened=names), model)


def vary(model: Model, values: Mapping[str, AnyShape]) -> tuple[Model, Model]:
    """Give the named parameters one value per instance of a batch, batch axis first.

    values: {name: (B, ...)}; an inertia as (B, 3) or (B, 3, 3), a rotation as (B, 4) or (B, 3, 3). Returns the model
    with batched leaves, and the in_axes for `jax.vmap` as a Model. Concrete values are checked: an inertia that no body
    can have raises ModelError with the index of the instance.

    >>> model = mbs.library.double_pendulum().build()
    >>> batch, axes = mbs.vary(model, {"lower.mass": jnp.array([1.0, 2.0, 3.0])})
    >>> matrices = jax.vmap(mbs.mass_matrix, in_axes=(axes, None))(batch, jnp.zeros(2))
    >>> print(matrices[:, 1, 1])
    [1. 2. 3.]
    """
    batch, axes = varied(model, values)
    for name in values:
        if not is_traced(values[name]):
            checked_rows(_parameter(model, name, "vary").kind, values[name], f"vary {name!r}")
    _check_elements(batch, values, "vary")
    return batch, axes


def varied(model: Model, values: Mapping[str, AnyShape]) -> tuple[Model, Model]:
    """Do the same as `vary`, but do not check the numbers: some instances of a batch may be unphysical."""
    overrides = dict(model.overrides)
    axes: dict[str, Any] = dict.fromkeys(overrides)
    size: tuple[int, str] | None = None
    for name, value in values.items():
        p = _changeable(model, name, "vary")
        shape = shape_of(value)
        if not shape or not _is_batched(p, shape, exact=True):
            raise ModelError(
                f"vary: {name!r} has shape {shape}; expected the batch axis first, then {_instance_shapes(p)}"
            )
        if size is not None and shape[0] != size[0]:
            raise ModelError(
                f"vary: {name!r} has {shape[0]} instances, but {size[1]!r} has {size[0]}; give all the same number"
            )
        size = (shape[0], name)
        overrides[name] = _array(value)
        axes[name] = 0
    batch = with_rows_for(replace(model, overrides=overrides), model)
    return batch, replace(batch, numbers=None, overrides=axes)


def _instance_shapes(p: Parameter) -> str:
    return " or ".join(str(form) for form in reversed(p.forms))


def _is_batched(p: Parameter, shape: tuple[int, ...], exact: bool = False) -> bool:
    """Whether the shape is that of a batch. (3, 3) may be one inertia or, if `exact`, a batch of principal moments."""
    return len(shape) > 0 and shape[1:] in p.forms and (exact or shape not in p.forms)


def _array(value: Any) -> jax.Array:
    return value if isinstance(value, jax.Array) else jnp.asarray(value, float)


def _check_elements(model: Model, changed: Collection[str], where: str) -> None:
    """Check what elements require of their numbers in combination, if some have changed and none of them is traced."""
    demanding = model.structure.demanding
    for name, element in dict.fromkeys(demanding[n] for n in changed if n in demanding):
        found = {path: get(model, f"{name}.{path}") for path in element.numbers}
        traced = {path for path, x in found.items() if is_traced(x)}
        if remedy := element.unchecked([path for path in traced if f"{name}.{path}" in changed]):
            raise ModelError(f"{where} {name!r}: {remedy}")
        if not traced:
            try:
                check_together(element, {path: np.asarray(x, float) for path, x in found.items()})
            except ModelError as error:
                raise ModelError(f"{where} {name!r}: {error}") from None
    check_taken(model, changed, f"{where}: ")


def _with_components(model: Model, concrete: Mapping[str, list[float]], loosened: Iterable[str] = ()) -> Model:
    """Write concrete components; unpin the parameters in `loosened` and those whose pinned values change."""
    if not concrete and not loosened:
        return model
    s = model.structure
    current = model.values()
    loosened = frozenset(loosened)
    parameters, numbers = [], []
    for p in s.parameters:
        c = concrete.get(p.name, None)
        values = c if c is not None else current_components(current, model, p)
        if p.name in loosened or (c is not None and not fits(p.pattern, c)):
            p = replace(p, pattern=(None,) * len(p.pattern))
        parameters.append(p)
        numbers += [v for v, pinned in zip(values, p.pattern, strict=True) if pinned is None]
    traced = any(isinstance(v, jax.Array) for v in numbers)
    flat = jnp.stack([jnp.asarray(v) for v in numbers]) if traced else read_only(numbers)
    if tuple(parameters) != s.parameters:
        s = replace(s, parameters=tuple(parameters))
    return replace(model, numbers=flat, structure=s)


def read_only(numbers: Iterable[float]) -> np.ndarray:
    """The flat vector of a model's numbers. It cannot be written to, so that arrays made from it stay valid."""
    out = np.array(numbers, float)
    out.setflags(write=False)
    return out


def current_components(values: Values, model: Model, p: Parameter) -> tuple[Any, ...]:
    """Components as stored in the flat vector, even if the parameter is overridden."""
    if p.name in model.overrides:
        return Values(model.structure.table, model.numbers, {}, None).components(p.name)
    return values.components(p.name)


__all__ = ["WORLD", "Model", "derivative", "free", "get", "set", "vary"]
