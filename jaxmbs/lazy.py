"""Packages that import nothing until one of their names is used."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class Lazy(ModuleType):
    """A package whose names come from its file `public.py`, which is imported when one of them is first used."""

    shadowing: frozenset[str]  # public names that take precedence over a file or folder of the same name

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in self.shadowing and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            if name not in self.shadowing and find_spec(f"{self.__name__}.{name}"):
                return import_module(f"{self.__name__}.{name}")
            public = vars(import_module(f"{self.__name__}.public"))
            vars(self).update({k: x for k, x in public.items() if not k.startswith("_")})
            if name in vars(self):
                return vars(self)[name]
            if moved := public.get("__getattr__"):
                return moved(name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        public = vars(import_module(f"{self.__name__}.public"))
        return sorted([n for n in vars(self) if n.startswith("__")] + [n for n in public if not n.startswith("_")])


def lazy(package: str, *shadowing: str) -> None:
    """Make a package lazy while it is being imported."""
    module = sys.modules[package]
    vars(module)["shadowing"] = frozenset(shadowing)
    module.__class__ = Lazy
