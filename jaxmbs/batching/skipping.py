"""A choice between a costly branch and a cheap one, as a loop with one iteration or none.

In machine code, a row cannot leave out what the other rows of its group compute, so that a `cond` is a selection between the
results of both branches. A loop ends when no row of the group needs it any more: if one branch is much work, such as the
sample of a controller, the results of the other one are what the loop begins with, and groups without need skip it.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxmbs.batching.separable import jaxprs_of

MUCH = 100  # fewest operations of a branch that is worth a loop
RATIO = 4  # how many times as many operations as the other branch it has at least


def skipping(eqn: Any) -> core.ClosedJaxpr | None:
    """The function of the operands of a `cond` as such a loop; None unless it has two branches, of which one alone is much
    work."""
    branches = eqn.params["branches"]
    if len(branches) != 2:
        return None
    cheap, costly = sorted((0, 1), key=lambda k: work(branches[k].jaxpr))
    most = work(branches[costly].jaxpr)
    if most < max(MUCH, RATIO * work(branches[cheap].jaxpr)):
        return None
    usual, seldom = core.jaxpr_as_fun(branches[cheap]), core.jaxpr_as_fun(branches[costly])

    def loop(index: Any, *operands: Any) -> Any:
        needed = (index > 0) == (costly == 1)
        start = needed, tuple(usual(*operands))
        return jax.lax.while_loop(lambda x: x[0], lambda _: (jnp.zeros((), bool), tuple(seldom(*operands))), start)[1]

    return jax.make_jaxpr(loop)(*(v.aval for v in eqn.invars))


def work(jaxpr: Any) -> int:
    """About how many operations on numbers a jaxpr takes."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = jaxprs_of(eqn)
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        total += times * sum(map(work, inner)) if inner else sum(math.prod(v.aval.shape) for v in eqn.outvars)
    return total
