"""Changes of a model's numbers, with the checks of `build`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.building.redundancy import with_rows_for
from jaxmbs.building.taken import check_taken
from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import checked_rows
from jaxmbs.model.fields import check_together
from jaxmbs.model.given import AnyShape, shape_of
from jaxmbs.model.model import Model, get, parameter_named, read_only
from jaxmbs.model.parameters import Parameter, Values, concrete_components, fits, is_traced


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
            checked_rows(parameter_named(model, name, "vary").kind, values[name], f"vary {name!r}")
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


def _changeable(model: Model, name: str, where: str) -> Parameter:
    p = parameter_named(model, name, where)
    if name in model.structure.fixed_by_modes:
        raise ModelError(
            f"{where} {name!r}: the body is flexible, and its modes belong to this value; make another part, and add the "
            "body with it"
        )
    return p


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
        values = c if c is not None else _current_components(current, model, p)
        if p.name in loosened or (c is not None and not fits(p.pattern, c)):
            p = replace(p, pattern=(None,) * len(p.pattern))
        parameters.append(p)
        numbers += [v for v, pinned in zip(values, p.pattern, strict=True) if pinned is None]
    traced = any(isinstance(v, jax.Array) for v in numbers)
    flat = jnp.stack([jnp.asarray(v) for v in numbers]) if traced else read_only(numbers)
    if tuple(parameters) != s.parameters:
        s = replace(s, parameters=tuple(parameters))
    return replace(model, numbers=flat, structure=s)


def _current_components(values: Values, model: Model, p: Parameter) -> tuple[Any, ...]:
    """Components as stored in the flat vector, even if the parameter is overridden."""
    if p.name in model.overrides:
        return Values(model.structure.table, model.numbers, {}, None).components(p.name)
    return values.components(p.name)
