"""Jitted functions whose compiled programs are cached on disk, if everything they depend on is known by its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax

from jaxmbs.batching import disk_cache
from jaxmbs.batching.scalars import is_traced

# JAX settings that a process may change between two calls
SETTINGS = (
    "jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_rank_promotion", "jax_numpy_dtype_promotion",
    "jax_default_device",
)  # fmt: skip


class CachedJit:
    """A jitted function of arrays; if the command line has set a folder (`disk_cache`), its programs are cached there.

    made_of: the function and everything else that its programs depend on, apart from the shapes of the arguments. If
    the content of any of this is not known (`jaxmbs.batching.content`), the function is compiled in every process.
    """

    def __init__(self, jitted: jax.stages.Wrapped, *made_of: Any):
        self.jitted, self.made_of = jitted, made_of
        self.programs: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        if disk_cache.FOLDER is None:
            return self.jitted(*args)
        leaves, tree = jax.tree.flatten(args)
        interpreted: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
        if interpreted or any(is_traced(x) or _elsewhere(x) for x in leaves):
            return self.jitted(*args)
        shapes = [jax.typeof(x) for x in leaves]
        which = (tree, *(jax.config.values[name] for name in SETTINGS), *shapes)
        if which not in self.programs:
            self.programs[which] = self._program(args, tree, [str(x) for x in shapes])
        return self.programs[which](*args)

    def _made_of(self) -> tuple[Any, ...]:
        """What represents this object in the digests of functions that refer to it, see `jaxmbs.batching.content`."""
        return self.made_of

    def lower(self, *args: Any) -> jax.stages.Lowered:
        """The same as `lower` of the jitted function."""
        return self.jitted.lower(*args)

    def _program(self, args: tuple[Any, ...], tree: Any, shapes: list[str]) -> Callable[..., Any]:
        from jaxmbs.batching.content import NotKnownError, digest

        try:
            content = digest({"function": self.made_of, "nodes": list(_nodes(tree)), "leaves": shapes})
        except NotKnownError:
            return self.jitted
        found = disk_cache.cached([content], lambda: self.jitted.lower(*args).compile())
        # static data of equal content may still be different for JAX
        return found if found.in_tree == jax.tree.structure((args, {})) else self.jitted


def _elsewhere(x: Any) -> bool:
    """Whether an argument was placed on another device than the first, or on several."""
    return getattr(x, "committed", False) and x.devices() != {jax.devices()[0]}


def _nodes(tree: Any) -> Iterator[Any]:
    """Type, static data and number of children of each node of a tree: str(tree) may leave some of them out."""
    yield tree.node_data(), len(tree.children())
    for child in tree.children():
        yield from _nodes(child)
