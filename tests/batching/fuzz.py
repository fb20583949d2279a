"""Random programs for mbs.jit and jax.vmap, to be compared; `python -m tests.batching.fuzz SEED` runs one alone.

A program applies random operations to inputs of all dtypes, with special numbers among their rows, and returns every result
with its name. Results are tamed (bounded, on a coarse grid) before they are used again, so that each one may be asked for
the accuracy of its own operation.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxmbs as mbs

SIZES = (1, 7, 1023, 1024, 1025, 2113, 5000)
ULPS = 32
FLOATS = ("float64", "float32", "float16", "bfloat16")
SIGNED = ("int32", "int8", "int64")
WHOLE = (*SIGNED, "uint8")
COMPLEX = ("complex128", "complex64")

UNARY = {
    FLOATS: ["abs", "neg", "sign", "floor", "ceil", "round", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p",
             "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logistic",
             "erf", "erfc", "erf_inv", "lgamma", "digamma", "square", "is_finite", "stop_gradient", "reciprocal",
             "bessel_i0e", *(["one_minus_square"] if hasattr(lax, "one_minus_square") else [])],
    SIGNED: ["abs"],
    WHOLE: ["neg", "sign", "bitwise_not", "population_count", "clz", "square"],
    ("bool",): ["bitwise_not"],
    COMPLEX: ["neg", "exp", "abs", "real", "imag", "conj", "sin", "square"],
}  # fmt: skip
COMPARED = ["eq", "ne", "lt", "le", "gt", "ge"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
BINARY = {
    FLOATS: ["add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2", "nextafter", *COMPARED],
    WHOLE: ["add", "sub", "mul", "div", "max", "min", "rem", *BITS, *COMPARED, "shift_left", "shift_right_logical",
            "shift_right_arithmetic"],
    ("bool",): [*BITS, *COMPARED, "max", "min"],
    COMPLEX: ["add", "sub", "mul", "eq", "ne"],
}  # fmt: skip
SPECIAL = (
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-40,
    -1e-310,
    1e9,
    -3e20,
    1e300,
    np.pi,
    -np.pi / 2,
    11.0,
)


def numbers(rng, dtype, shape, special=True):
    """Random numbers of a dtype, about a third of them special."""
    dtype = jnp.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        ends = rng.choice([info.min, info.max, 0, 1, 7], shape)
        return np.where(rng.random(shape) < 0.3, ends, rng.integers(0, 9, shape)).astype(dtype)
    x = np.round(rng.normal(size=shape) * 16) / 8
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return (x + 1j * np.round(rng.normal(size=shape) * 16) / 8).astype(dtype)
    with np.errstate(all="ignore"):
        return np.where(special & (rng.random(shape) < 0.3), rng.choice(SPECIAL, shape), x).astype(dtype)


def tamed(x):
    """A number of float64 or float32 that is bounded, not zero, and the same however the last digits were rounded."""
    on_grid = jnp.round(jnp.clip(x, -8, 8) * x.dtype.type(3.7))
    return jnp.where(on_grid == 0, jnp.ones_like(x), on_grid)


def moderate(x):
    """Without finite numbers whose products are not: a fused multiply-add does not round them to infinity, two steps do."""
    return jnp.where(jnp.isfinite(x), jnp.clip(x, -1e15, 1e15), x)


def applied(name, *operands):
    """A primitive. XLA's cube roots of subnormal numbers have the wrong sign, and its angles of two are no numbers: there
    such numbers are zeros before. It simplifies a whole number divided by itself to 1, even
    zero by zero: there the divisor is not zero.
    """
    if name == "div" and operands[0] is operands[1] and operands[0].dtype.kind in "iu":
        operands = [operands[0], jnp.where(operands[1] == 0, jnp.ones_like(operands[1]), operands[1])]
    if name in ("cbrt", "atan2"):
        operands = [jnp.where(jnp.abs(x) < jnp.finfo(x.dtype).tiny, x * 0, x) for x in operands]
    return getattr(lax, name)(*operands)


@jax.custom_jvp
def special_rule(x):
    return jnp.sin(x) * 2


special_rule.defjvp(lambda x, t: (special_rule(*x), 3 * t[0] * x[0]))


@jax.custom_vjp
def reverse_rule(x):
    return x * x


reverse_rule.defvjp(lambda x: (x * x, x), lambda x, g: (5 * g * x,))


def smooth(x):
    return jnp.sum(jnp.sin(x) * x + special_rule(x) * 0.5)


def loop_of(x):
    return lax.scan(lambda c, k: (0.5 * c + jnp.sin(k * c), c[0] * k), x, jnp.arange(3, dtype=x.dtype))


def through_a_ref(x):
    ref = jax.new_ref(jnp.zeros_like(x))
    ref[1] = x[0]
    ref[...] += x
    return ref[...]


def top_two(x):
    """The sign of a NaN, which processors choose for themselves, would decide whether it comes first or last."""
    return lax.top_k(jnp.where(jnp.isnan(x), x.dtype.type(np.nan), x), 2)


VECTORS = {  # of a vector of three numbers, float64 or float32
    "sum": jnp.sum, "prod": jnp.prod, "largest": jnp.max, "smallest": jnp.min, "argmax": jnp.argmax, "argmin": jnp.argmin,
    "sorted": jnp.sort, "argsort": jnp.argsort, "cumsum": jnp.cumsum, "cumprod": jnp.cumprod, "cummax": lax.cummax,
    "lazily kept": lambda x: x * jnp.zeros(3, x.dtype), "norm": lambda x: jnp.sqrt(jnp.sum(x * x)),
    "with the identity": lambda x: jnp.eye(3, dtype=x.dtype) @ x,
    "with zeros": lambda x: jnp.diag(jnp.arange(3.0)).astype(x.dtype) @ x,
    "outer": lambda x: jnp.outer(x, x[::-1]), "dot": lambda x: x @ x, "reversed": lambda x: x[::-1],
    "padded": lambda x: jnp.pad(x, (1, 2), constant_values=3), "rolled": lambda x: jnp.roll(x, 1),
    "set": lambda x: x.at[1].set(4), "added at": lambda x: x.at[jnp.array([0, 0])].add(x[1:]),
    "taken": lambda x: x[jnp.array([2, 0, 5])], "taken where": lambda x: x[jnp.argmax(x)],
    "slice": lambda x: lax.dynamic_slice(x, (jnp.argmin(x),), (2,)),
    "slice put": lambda x: lax.dynamic_update_slice(x, x[:2], (jnp.argmin(x),)),
    "concatenated": lambda x: jnp.concatenate([x, x[:1] * 2]), "stacked": lambda x: jnp.stack([x, -x]).T,
    "where": lambda x: jnp.where(x > 0, x, 1 / x), "clamped": lambda x: lax.clamp(x.dtype.type(-1), x, x.dtype.type(2)),
    "scan": loop_of, "fori": lambda x: lax.fori_loop(0, 4, lambda i, c: c * 0.5 + jnp.cos(c) * i, x),
    "while": lambda x: lax.while_loop(lambda c: jnp.abs(c[0]) < 50, lambda c: c * 3 + jnp.where(c < 0, -1, 1), x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: y * 2, jnp.sqrt, x),
    "switch": lambda x: lax.switch(jnp.argmax(x), [jnp.sin, jnp.cos, jnp.tanh], x),
    "gradient": jax.grad(smooth), "tangent": lambda x: jax.jvp(smooth, (x,), (x[::-1],)),
    "jacobian": jax.jacfwd(lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[2]), x[0]])), "reverse": jax.jacrev(loop_of),
    "hessian": jax.hessian(smooth), "vmap inside": lambda x: jax.vmap(lambda a: a * x)(x),
    "jit inside": jax.jit(lambda x: x / 3), "checkpoint": jax.checkpoint(lambda x: jnp.tanh(x) * x),
    "own rule": special_rule,
    "own reverse rule": jax.grad(lambda x: jnp.sum(reverse_rule(x))), "to a dtype": lambda x: x.astype(jnp.int8),
    "to bytes": lambda x: x.astype(jnp.uint8), "to halves": lambda x: x.astype(jnp.float16),
    "to truth": lambda x: x.astype(bool),
    # not those of NaN, whose sign is the processor's
    "bits": lambda x: jnp.where(x == x, x, 0).view(jnp.int64 if x.dtype == np.float64 else jnp.int32),
    "softplus": jax.nn.softplus,
    "weak": lambda x: (x * 2.5, x + 1, 2.0 * jnp.asarray(1.5)),
    "solution": lambda x: jnp.linalg.solve(jnp.outer(x, x) + 200 * jnp.eye(3, dtype=x.dtype), x),
    "random": lambda x: jax.random.uniform(jax.random.fold_in(jax.random.key(1), jnp.argmax(x)), (2,)),
    "far angle": lambda x: (jnp.sin(x * 1e12), jnp.cos(x * 1e5)), "median": jnp.median,
    "square roots": lambda x: lax.pow(x, x.dtype.type(0.5)),
    "whole power": lambda x: (x**2, x**-3, x**5), "half dot": lambda x: x.astype(jnp.float16) @ x.astype(jnp.float16),
    "truth dot": lambda x: (x > 0) @ (x < 1), "truth prod": lambda x: jnp.prod(x > 0),
    "any": lambda x: (jnp.any(x > 0), jnp.all(x > 0)),
    "ref": through_a_ref, "ints": lambda x: jnp.arange(3) // 2 * jnp.argmax(x), "top": top_two,
    "reduce": lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (0,)),
    "log of zero": lambda x: jnp.eye(3, dtype=x.dtype) @ jnp.log(x),
    "nan to num": jnp.nan_to_num, "copy": jnp.copy, "split": lambda x: jnp.split(x, [1]),
    "precision": lambda x: lax.reduce_precision(x, 5, 10),
    "einsum": lambda x: jnp.einsum("i,j,j->i", x, moderate(x), moderate(x)[::-1]),
}  # fmt: skip


def program(seed, length):
    """(function of one row, arguments, in_axes, names): the function returns a list with a result for each name."""
    rng = np.random.default_rng(seed)
    size = SIZES[seed % len(SIZES)]
    mixed = [*FLOATS, "int32", "int8", "uint8", "int64", "bool", *COMPLEX]
    mapped = [numbers(rng, t, (size, 3)) for t in mixed]
    shared = [numbers(rng, t, (3,)) for t in mixed]
    closed = [numbers(rng, t, (3,)) for t in mixed]
    args = ([jnp.asarray(x) for x in mapped], shared, 2.5)
    table = [("one", name, kinds) for kinds, names in UNARY.items() for name in names]
    table += [("two", name, kinds) for kinds, names in BINARY.items() for name in names]
    table += [("vector", name, FLOATS[:2]) for name in VECTORS]
    order = np.random.default_rng(0).permutation(len(table))  # so that seeds that follow one another take all in turn
    steps = [table[order[(k + seed * length) % len(table)]] for k in rng.permutation(length)]
    names = [f"{name} ({how})" for how, name, _ in steps]
    picks = rng.integers(0, 1 << 30, (length, 4))

    def fn(row, shared, weak):
        made = {t: [x] for t, x in zip(mixed, row, strict=True)}
        results = []
        for (how, name, kinds), (a, b, c, d) in zip(steps, picks, strict=True):
            dtype = kinds[a % len(kinds)]
            x = made[dtype][b % len(made[dtype])]
            if how == "vector":
                result = VECTORS[name](x)
            elif how == "one":
                result = applied(name, x)
            else:
                k = mixed.index(dtype)
                y = [made[dtype][d % len(made[dtype])], shared[k], closed[k]][c % 3]
                result = applied(name, x, jnp.asarray(y))
            results.append(result)
            for y in jax.tree.leaves(result):
                if y.shape == (3,) and y.dtype in (np.float64, np.float32):
                    made[str(y.dtype)].append(tamed(y))
                elif y.shape == (3,) and y.dtype in (np.int32, bool):
                    made[str(y.dtype)].append(y)
        return [*results, weak * row[1], weak + 1.0]

    return fn, args, (0, None, None), [*names, "weak times float32 (end)", "weak (end)"]


def differs(got, want, ulps=ULPS):
    """What is different in two results, or None: dtype, shape, weak type, NaN, infinity, or more than rounding."""
    types = [(x.dtype, x.shape, x.weak_type) for x in (got, want)]
    if types[0] != types[1]:
        return types
    if not jnp.issubdtype(got.dtype, jnp.inexact):
        wrong = np.asarray(got) != np.asarray(want)
    else:
        epsilon, tiny = float(jnp.finfo(got.dtype).eps), float(jnp.finfo(got.dtype).tiny)
        wide = np.complex128 if jnp.issubdtype(got.dtype, jnp.complexfloating) else np.float64
        x, y = np.asarray(got).astype(wide), np.asarray(want).astype(wide)
        with np.errstate(all="ignore"):
            near = np.abs(x - y) <= ulps * (epsilon * np.abs(y) + tiny)
            wrong = ~(near | (x == y) | (np.isnan(x) & np.isnan(y)))
    if not wrong.any():
        return None
    at = tuple(int(k[0]) for k in np.nonzero(wrong))
    return at, np.asarray(got)[at], np.asarray(want)[at], int(wrong.sum())


# sums may cancel, and are added in another order: accurate beside terms below 600
SUMS = {"sum", "dot", "norm", "cumsum", "with zeros", "gradient", "tangent", "hessian", "reverse", "scan", "fori",
        "solution",
        "reduce", "half dot", "einsum", "far angle", "own rule", "jacobian", "digamma", "lgamma", "softplus"}  # fmt: skip


# XLA's own reductions lose NaN on some processors; kernels keep it
LOSE_NAN = {"smallest", "largest"}


def halves():
    """Whether XLA compiles arithmetic of half precision for this processor."""
    try:
        jax.jit(lambda x: jnp.round(x.astype(jnp.float16)).astype(jnp.float32) + 1)(jnp.arange(4.0))
    except jax.errors.JaxRuntimeError:
        return False
    return True


def failures(seed, length=60):
    """The results of the program of a seed that differ, as lines."""
    fn, args, in_axes, names = program(seed, length)
    want = jax.jit(jax.vmap(fn, in_axes))(*args)
    got = mbs.jit(fn, in_axes=in_axes)(*args)
    if jax.tree.structure(got) != jax.tree.structure(want):
        return [f"seed {seed}: {jax.tree.structure(got)} is not {jax.tree.structure(want)}"]
    found = []
    for name, x, y in zip(names, got, want, strict=True):
        for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
            why = differs(a, b)
            if why and name.rsplit(" (", 1)[0] in SUMS and len(why) == 4:
                scale = 600 * float(jnp.finfo(a.dtype).eps) * ULPS
                why = None if abs(float(why[1]) - float(why[2])) <= scale else why
            if why and not (name.rsplit(" (", 1)[0] in LOSE_NAN and np.isnan(why[1]).all()):
                found.append(f"seed {seed}: {name} {b.dtype}{b.shape}: (row and entry, got, wanted, how many) {why}")
    return found


def equations(jaxpr):
    """Those of a jaxpr, and of all within them."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            if hasattr(inner, "eqns"):
                yield from equations(getattr(inner, "jaxpr", inner))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for seed in map(int, sys.argv[1:]):
        print(f"seed {seed}:", *failures(seed), sep="\n", flush=True)
