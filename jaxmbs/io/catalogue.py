"""The classes that a file may name by `type`."""

from __future__ import annotations

import functools
from types import ModuleType

from jaxmbs.model import constraints, forces, joints
from jaxmbs.model.fields import Element


@functools.cache
def builtin() -> tuple[type[Element], ...]:
    """Joints, force elements, surfaces and constraints of the library."""
    return tuple(c for module in (joints, forces, constraints) for c in elements_in(module))


def elements_in(module: ModuleType) -> tuple[type[Element], ...]:
    """Classes with declared fields that a module defines or exports."""
    return tuple(
        c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Element) and c is not Element
    )
