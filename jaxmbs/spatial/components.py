"""A class decorator that registers a class of scalar components as a small pytree."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

import jax

from jaxmbs.spatial.known import NOT_SCALARS, NUMBERS, Known

T = TypeVar("T")


@dataclass_transform(eq_default=False)
def components(cls: type[T]) -> type[T]:
    """Class decorator: the class becomes a slotted dataclass and a pytree, with its fields as children.

    Python numbers among the components become known numbers. They are leaves of the pytree.
    """
    if not hasattr(cls, "__post_init__"):
        cls.__post_init__ = _known_scalars  # type: ignore[attr-defined]
    cls = dataclass(eq=False, slots=True)(cls)  # type: ignore[assignment]
    names = tuple(f.name for f in fields(cls))  # type: ignore[arg-type]

    def flatten(x: Any) -> tuple[tuple[Any, ...], None]:
        return tuple(getattr(x, n) for n in names), None

    def flatten_with_keys(x: Any) -> tuple[tuple[Any, ...], None]:
        return tuple((jax.tree_util.GetAttrKey(n), getattr(x, n)) for n in names), None

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, lambda _, children: cls(*children), flatten)
    NOT_SCALARS.add(cls)
    return cls


def _known_scalars(x: Any) -> None:
    for name in x.__slots__:
        value = getattr(x, name)
        if type(value) in NUMBERS:
            setattr(x, name, Known(value))
