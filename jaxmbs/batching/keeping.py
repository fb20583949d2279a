"""Jitted functions whose compiled programs are kept, where all that they are made of is known by its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax

from jaxmbs.batching import kept
from jaxmbs.batching.scalars import is_traced


class Keeping:
    """A jitted function of arrays; in the command line another process reads its programs instead of making them.

    made_of: the function, with all else that its programs depend on beside the shapes of the arguments. Where something of
    that is not known by its content (`jaxmbs.batching.content`), the function is compiled as ever.
    """

    def __init__(self, jitted: jax.stages.Wrapped, *made_of: Any):
        self.jitted, self.made_of = jitted, made_of
        self.programs: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        interpreted: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
        if kept.FOLDER is None or interpreted or any(map(is_traced, leaves)):
            return self.jitted(*args)
        shapes = [jax.typeof(x) for x in leaves]
        which = (tree, jax.dtypes.canonicalize_dtype(float), *shapes)
        if which not in self.programs:
            self.programs[which] = self._program(args, tree, [str(x) for x in shapes])
        return self.programs[which](*args)

    def _made_of(self) -> tuple[Any, ...]:
        """For another function that refers to this one, see `jaxmbs.batching.content`."""
        return self.made_of

    def lower(self, *args: Any) -> jax.stages.Lowered:
        """As of the jitted function."""
        return self.jitted.lower(*args)

    def _program(self, args: tuple[Any, ...], tree: Any, shapes: list[str]) -> Callable[..., Any]:
        from jaxmbs.batching.content import NotKnownError, digest

        try:
            content = digest({"function": self.made_of, "nodes": list(_nodes(tree)), "leaves": shapes})
        except NotKnownError:
            return self.jitted
        return kept.kept([content], lambda: self.jitted.lower(*args).compile())


def _nodes(tree: Any) -> Iterator[Any]:
    """Types and static data of a tree's nodes: its text may leave out some of them."""
    yield tree.node_data()
    for child in tree.children():
        yield from _nodes(child)
