"""Derivatives of the equation `rows` in both modes, also with checkpoints, and the removal of unused results."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.interpreters import ad
from jax.interpreters import partial_eval as pe

from jaxmbs.batching.repeated import Repeat
from jaxmbs.batching.row_programs.equation import bind, halves, rows_p
from jaxmbs.batching.row_programs.instance import VALUES, Mode, backward, is_real, program, pruned
from jaxmbs.batching.row_programs.stored import backward_from_stored, stored


def _jvp(primals: Any, tangents: Any, *, jaxpr: Any, mapped: Any, rows: Any, mode: Mode) -> tuple[Any, Any]:
    """One equation for results and tangents; operands without a tangent cost nothing."""
    f, moving = program(jaxpr, mode), tuple(type(t) is not ad.Zero for t in tangents)
    given = [t for t, moves in zip(tangents, moving, strict=True) if moves]
    both = mapped + tuple(m for m, moves in zip(mapped, moving, strict=True) if moves)
    out = bind(*primals, *given, jaxpr=f, mapped=both, rows=rows, mode=Mode(True, True, moving))
    y, slopes = out[: len(f.out_avals)], iter(out[len(f.out_avals) :])
    return y, [next(slopes) if is_real(x) else ad.Zero(jax.typeof(x).to_tangent_aval()) for x in y]


def _is_split(params: dict[str, Any], unknown: Any) -> bool:
    """Whether an equation has values and slopes, and only the slopes need operands that are not known yet."""
    n, mode = len(params["jaxpr"].in_avals), params["mode"]
    return mode.values and mode.slopes and not any(unknown[:n]) and any(unknown)


def _partial_eval(trace: Any, *tracers: Any, **params: Any) -> Any:
    """Values are computed at once where their operands are known; reverse mode stores the operands and the results of long
    loops (`stored`)."""
    if not _is_split(params, [not t.is_known() for t in tracers]):
        return trace.default_process_primitive(rows_p, tracers, params)
    values, slopes = halves(params)
    f, mode, mapped, n = params["jaxpr"], params["mode"], params["mapped"], len(params["jaxpr"].in_avals)
    kept = stored(f, mode.moving, params["rows"])
    if kept is not None:
        values = {**values, "jaxpr": kept.forward}
        slopes = {
            **slopes,
            "mode": slopes["mode"]._replace(stored=kept.avals),
            "mapped": mapped + (True,) * len(kept.avals),
        }
    found = bind(*(t.pval.get_known() for t in tracers[:n]), **values)
    y, more = found[: len(f.out_avals)], map(trace.new_const, found[len(f.out_avals) :])
    return [*y, *trace.default_process_primitive(rows_p, [*tracers, *more], slopes)]


def _partial_eval_of_jaxpr(saveable: Any, unknown: Any, instantiated: Any, eqn: Any) -> Any:
    """The same rule for `jax.checkpoint`, whose policy decides whether results are saved or computed again later.

    Returns (equation for now, equation for later, which results are unknown now, which the later one computes,
    operands that have to be stored for it).
    """
    params, outs = eqn.params, len(eqn.outvars)
    missing = [
        x for x, there in zip(eqn.invars, instantiated, strict=True) if not there and not isinstance(x, core.Literal)
    ]
    if not any(unknown):
        kept = saveable(rows_p, *(x.aval for x in eqn.invars), **params)
        if kept is True or type(kept).__name__ == "SaveableType":
            return eqn, None, [False] * outs, [False] * outs, []
        return eqn, eqn, [False] * outs, [True] * outs, missing
    if not _is_split(params, unknown):
        return None, eqn, [True] * outs, [True] * outs, missing
    values, _ = halves(params)
    n, m = len(params["jaxpr"].in_avals), len(params["jaxpr"].out_avals)
    now = eqn.replace(invars=eqn.invars[:n], outvars=eqn.outvars[:m], params=values)
    return now, eqn, [False] * m + [True] * (outs - m), [True] * outs, missing


def _transpose(cotangents: Any, *xs: Any, jaxpr: Any, mapped: Any, rows: Any, mode: Mode) -> list[Any]:
    """One equation computes all cotangents. The linear operands are tangents (`mode.slopes`) or, in a transpose that
    the user takes (`jax.linear_transpose`), operands of the function itself."""
    n, linear = len(jaxpr.in_avals), [ad.is_undefined_primal(x) for x in xs]
    if mode.slopes:
        of_tangent = [k for k, moves in enumerate(mode.moving) if moves]
        moving = [k for k, on in zip(of_tangent, linear[n:], strict=False) if on]
        results = [k for k, a in enumerate(jaxpr.out_avals) if is_real(a)]
        given, cotangents = list(xs[:n]), cotangents[len(cotangents) - len(results) :]
    else:
        moving, results = [k for k in range(n) if linear[k]], list(range(len(cotangents)))
        given = [jnp.zeros(x.aval.shape, x.aval.dtype) if on else x for x, on in zip(xs, linear, strict=True)]
    there = [(k, ct) for k, ct in zip(results, cotangents, strict=True) if type(ct) is not ad.Zero]
    if not there or not moving:
        return [ad.Zero(x.aval) if on else None for x, on in zip(xs, linear, strict=True)]
    wanted, of, m = tuple(moving), tuple(k for k, _ in there), len(mode.stored)
    if m:
        back = backward_from_stored(jaxpr, mode.moving, wanted, of)
        given += xs[len(xs) - m :]
    else:
        back = backward(jaxpr, wanted, of)
    # operands that are not needed are dropped: if they were computed for this equation alone, that is saved, too
    back, keep = pruned(back, (True,) * len(wanted))
    now = mapped[:n] + mapped[len(mapped) - m :] + (rows is not None,) * len(there)
    every = zip([*given, *(ct for _, ct in there)], now, strict=True)
    operands = [x for x, on in zip(every, keep, strict=True) if on]
    found = bind(*(x for x, _ in operands), jaxpr=back, mapped=tuple(on for _, on in operands), rows=rows, mode=VALUES)
    # the cotangent of an operand that rows share is the sum over these rows
    each = iter([x if rows is None else _of_operand(x, mapped[k]) for k, x in zip(moving, found, strict=True)])
    return [next(each) if on else None for on in linear]


def _of_operand(x: Any, m: bool | Repeat) -> Any:
    """The cotangent of an operand from the cotangents of all rows."""
    return m.summed(x) if isinstance(m, Repeat) else x if m else x.sum(0)


def _without_unused(used: Any, *rest: Any) -> tuple[list[bool], Any]:
    """Remove from the instance the results that are not used, and then the operands that are not needed."""
    eqn = rest[-1]  # JAX 0.12 has one more argument before it
    f, mode, count = eqn.params["jaxpr"], eqn.params["mode"], len(eqn.invars)
    if not any(used):
        return [False] * count, None
    if mode.stored:  # these arrays belong to the whole function
        return [True] * count, eqn
    m = len(f.out_avals)
    real, values = [k for k, a in enumerate(f.out_avals) if is_real(a)], m if mode.values else 0
    kept_values = {k for k in range(values) if used[k]}
    kept_slopes = {k for k, on in zip(real, used[values:], strict=False) if on}
    wanted = tuple(k in kept_values or k in kept_slopes for k in range(m))
    f, kept = pruned(f, wanted)
    moving = tuple(moves for moves, on in zip(mode.moving, kept, strict=True) if on) if kept_slopes else ()
    if (kept_slopes and not any(moving)) or not any(kept):
        return [True] * count, eqn
    moved = [k for k, moves in enumerate(mode.moving) if moves]
    keep = [*kept, *(bool(kept_slopes) and kept[k] for k in moved)]
    results = [x for k, x in enumerate(eqn.outvars[:values]) if kept_values and wanted[k]]
    results += [x for k, x in zip(real, eqn.outvars[values:], strict=False) if kept_slopes and wanted[k]]
    params = {
        **eqn.params,
        "jaxpr": f,
        "mode": Mode(bool(kept_values), bool(kept_slopes), moving),
        "mapped": tuple(x for x, on in zip(eqn.params["mapped"], keep, strict=True) if on),
    }
    operands = [x for x, on in zip(eqn.invars, keep, strict=True) if on]
    return keep, eqn.replace(invars=operands, outvars=results, params=params)


ad.primitive_jvps[rows_p] = _jvp
ad.primitive_transposes[rows_p] = _transpose
pe.custom_partial_eval_rules[rows_p] = _partial_eval
pe.partial_eval_jaxpr_custom_rules[rows_p] = _partial_eval_of_jaxpr
pe.dce_rules[rows_p] = _without_unused
