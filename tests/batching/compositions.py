"""Random compositions of JAX's transformations around functions of `mbs.rows`; `python -m tests.batching.compositions SEED`
runs one alone, `... FROM TO` all between.

A seed gives a function of one instance, made of operations that have derivatives, and some transformations. They are
applied one after another to the function as it is and to that of `mbs.rows`: both have to give the same numbers, shapes,
dtypes and weak types.
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxmbs as mbs

from .fuzz import loop_of, numbers, reverse_rule, smooth, special_rule

DIGITS = {"float64": 1e-9, "float32": 2e-3}  # of the largest number of a result; several derivatives may cancel
LARGEST = 400  # entries that an argument may have after further axes


def bounded(x):
    """Between -2 and 2, with a derivative that is nowhere zero for long."""
    return 2 * jnp.sin(0.7 * x + 0.1)


SMOOTH = {  # of two vectors of three numbers
    "add": lambda x, y: x + y, "product": lambda x, y: x * y, "quotient": lambda x, y: x / (2.5 + jnp.sin(y)),
    "sine": lambda x, y: jnp.sin(x), "tanh": lambda x, y: jnp.tanh(x - y), "exponential": lambda x, y: jnp.exp(0.3 * x),
    "root": lambda x, y: jnp.sqrt(x * x + 0.5), "logarithm": lambda x, y: jnp.log(1.5 + x * x), "power": lambda x, y: x**3,
    "angle": lambda x, y: jnp.arctan2(x, 2.5 + jnp.cos(y)), "cumsum": lambda x, y: jnp.cumsum(x),
    "reversed": lambda x, y: x[::-1] * y[0], "rolled": lambda x, y: jnp.roll(x, 1), "dot": lambda x, y: x * (x @ y),
    "outer": lambda x, y: jnp.outer(x, y) @ x, "norm": lambda x, y: x / jnp.sqrt(1 + x @ x),
    "set": lambda x, y: x.at[1].set(y[2]), "added at": lambda x, y: x.at[jnp.array([0, 0])].add(y[1:]),
    "concatenated": lambda x, y: jnp.concatenate([x[1:], y[:1] * 2]), "padded": lambda x, y: jnp.pad(x[:2], (1, 0)) + y,
    "sum": lambda x, y: jnp.sum(x) * y, "einsum": lambda x, y: jnp.einsum("i,j,j->i", x, y, y),
    "where": lambda x, y: jnp.where(x > 0, x * y, y / (1 + x * x)), "taken": lambda x, y: x[jnp.argmax(y)] * y,
    "sorted": lambda x, y: jnp.sort(x), "scan": lambda x, y: loop_of(x)[0], "of a scan": lambda x, y: loop_of(x)[1] + y,
    "fori": lambda x, y: lax.fori_loop(0, 4, lambda i, c: c * 0.5 + jnp.cos(c) * y, x),
    "cond": lambda x, y: lax.cond(x[0] > y[0], lambda z: z * y, jnp.sin, x),
    "switch": lambda x, y: lax.switch(jnp.argmax(x), [jnp.sin, jnp.cos, jnp.tanh], y),
    "gradient": lambda x, y: jax.grad(smooth)(x) + y, "tangent": lambda x, y: jax.jvp(smooth, (x,), (y,))[1] * x,
    "own rule": lambda x, y: special_rule(x) * y, "own reverse rule": lambda x, y: reverse_rule(x) + y,
    "checkpoint": lambda x, y: jax.checkpoint(lambda z: jnp.tanh(z) * y)(x),
    "vmap inside": lambda x, y: jax.vmap(lambda a: a * y)(x) @ x, "jit inside": lambda x, y: jax.jit(jnp.sin)(x) / 3,
    "solution": lambda x, y: jnp.linalg.solve(jnp.outer(x, x) + 9 * jnp.eye(3, dtype=x.dtype), y),
}  # fmt: skip


def function(rng, length):
    """(a function of two vectors of three numbers and an integer, the names of its operations)."""
    names = [str(x) for x in rng.choice(list(SMOOTH), length)]
    picks, ends = rng.integers(0, 1 << 30, (length, 2)), rng.integers(0, 1 << 30, 3)

    def fn(x, s, n):
        made = [x, s]
        for name, (a, b) in zip(names, picks, strict=True):
            made.append(bounded(SMOOTH[name](made[-1 if a % 2 else a % len(made)], made[b % len(made)])))
        one, other = made[-1], made[ends[0] % len(made)]
        results = [one * 1.5, other.sum(), jnp.argmax(one) + n, other[0] > 0, jnp.asarray(2.0) * 3, s]
        return [results[k] for k in sorted({0, *(ends % len(results))})]

    return fn, names


def floats(values):
    """The places of the floating-point ones."""
    return [k for k, x in enumerate(values) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]


def results(f, args):
    """The floating-point results of f, as a list."""
    out = jax.tree.leaves(f(*args))
    return [out[k] for k in floats(out)]


def of_floats(f, args):
    """(the floating-point results of f as a function of its floating-point arguments, these arguments)."""
    places = floats(args)

    def fn(*some):
        whole = list(args)
        for k, x in zip(places, some, strict=True):
            whole[k] = x
        return results(f, whole)

    return fn, [jnp.asarray(args[k]) for k in places]


def step(f, rest, c, k):
    """(the next value that a loop carries, the results of f at this one)."""
    out = jax.tree.leaves(f(c, *rest))
    return jnp.sin(c + k + sum(jnp.mean(out[i]) for i in floats(out))).astype(c.dtype), out


class Composition:
    """Arguments, and the transformations that turn a function of one instance into a function of these arguments."""

    def __init__(self, rng, args, special):
        self.rng, self.args, self.special, self.transformations, self.names = rng, args, special, [], []

    def __call__(self, fn, rows):
        """The transformed function, with `rows` in place of `mbs.rows`."""
        fn = rows(fn)
        for transformation in self.transformations:
            fn = transformation(fn) if transformation else rows(fn)
        return fn

    def nearby(self):
        """The same with floating-point arguments that differ by some units of their last digit."""
        out = Composition(self.rng, list(self.args), self.special)
        for k in floats(out.args):
            out.args[k] = out.args[k] * (1 + 4 * np.finfo(out.args[k].dtype).eps)
        out.transformations, out.names = self.transformations, self.names
        return out

    def _add(self, name, transformation):
        self.names.append(name)
        self.transformations.append(transformation)

    def vmap(self):
        n, axes, args = int(self.rng.integers(1, 4)), [], []
        for x in self.args:
            x = np.asarray(x)
            if x.size * n > LARGEST or self.rng.random() < 0.3:
                axes.append(None)
                args.append(x)
                continue
            axis = int(self.rng.integers(0, x.ndim + 1))
            more = [x + numbers(self.rng, x.dtype, x.shape, self.special) for _ in range(n)]
            axes.append(axis)
            args.append(np.stack(more, axis).astype(x.dtype))
        if all(axis is None for axis in axes):
            axes[0], args[0] = 0, np.stack([args[0]] * n)
        out = int(self.rng.integers(-1, 1))
        self.args = args
        self._add(f"vmap {axes} -> {out}", lambda f: jax.vmap(f, tuple(axes), out))

    def jit(self):
        self._add("jit", jax.jit)

    def rows(self):
        self._add("rows", None)

    def checkpoint(self):
        self._add("checkpoint", jax.checkpoint)

    def grad(self):
        given = floats(self.args)
        wanted = tuple(
            sorted(int(k) for k in self.rng.choice(given, self.rng.integers(1, len(given) + 1), replace=False))
        )

        def gradient(f):
            def loss(*args):
                out = jax.tree.leaves(f(*args))
                return sum(jnp.sum(jnp.sin(out[k].astype(float))) for k in floats(out)), out

            return jax.grad(loss, wanted, has_aux=True)

        self._add(f"grad {wanted}", gradient)

    def vjp(self):
        def pulled(f, *args):
            fn, given = of_floats(f, args)
            out, pull = jax.vjp(fn, *given)
            return out, pull([jnp.cos(x) for x in out])

        self._add("vjp", _around(pulled))

    def jvp(self):
        def pushed(f, *args):
            fn, given = of_floats(f, args)
            return jax.jvp(fn, given, [jnp.cos(x) for x in given])

        self._add("jvp", _around(pushed))

    def linearize(self):
        def along(f, x, *rest):
            x = jnp.asarray(x)
            out, push = jax.linearize(lambda x: results(f, (x, *rest)), x)
            return out, jax.vmap(push)(jnp.stack([x, jnp.ones_like(x)]))

        self._add("linearize", _around(along))

    def jacfwd(self):
        self._add("jacfwd", lambda f: jax.jacfwd(lambda *args: results(f, args)[0]))

    def jacrev(self):
        self._add("jacrev", lambda f: jax.jacrev(lambda *args: results(f, args)[0]))

    def scan(self):
        def loop(f, x, *rest):
            x = jnp.asarray(x)
            return lax.scan(lambda c, k: step(f, rest, c, k), x, jnp.arange(3, dtype=x.dtype))

        self._add("scan", _around(loop))

    def fori(self):
        def loop(f, x, *rest):
            return lax.fori_loop(0, 3, lambda k, c: step(f, rest, c, k)[0], jnp.asarray(x))

        self._add("fori", _around(loop))

    def cond(self):
        def chosen(f, x, *rest):
            def other(*args):
                return jax.tree.map(lambda y: y * 0 + 1 if y.dtype != bool else ~y, f(*args))

            return lax.cond(jnp.sum(x) > 0, f, other, x, *rest)

        self._add("cond", _around(chosen))


def _around(fn):
    """The transformation of f into fn(f, ...)."""
    return lambda f: functools.partial(fn, f)


FORWARD = ("jvp", "linearize", "jacfwd")
FREE = ("vmap", "vmap", "jit", "checkpoint", "scan", "cond", "rows", "fori")
REVERSE = ("grad", "vjp", "jacrev")


def composed(seed):
    """(function of an instance, the names of its operations, composition) of a seed."""
    rng = np.random.default_rng(seed)
    fn, operations = function(rng, int(rng.integers(2, 9)))
    dtype = ("float64", "float64", "float32")[seed % 3]
    values_only = seed % 4 == 3  # with NaN and infinite numbers
    args = [*(numbers(rng, dtype, (3,), values_only) for _ in range(2)), np.int32(2)]
    composition, derivatives = Composition(rng, args, values_only), 0
    for _ in range(int(rng.integers(1, 6))):
        name = str(rng.choice([*FREE, *(REVERSE + FORWARD if derivatives < 2 and not values_only else ())]))
        if name in FORWARD and "own reverse rule" in operations:  # it has no other
            name = "vjp"
        derivatives += name in FORWARD + REVERSE
        getattr(composition, name)()
    return fn, operations, composition


def outcome(composition, fn, rows):
    """The leaves of the result, or the kind of the error with its beginning."""
    try:
        return jax.tree.leaves(composition(fn, rows)(*map(jnp.asarray, composition.args)))
    except Exception as error:
        return type(error).__name__, str(error)[:200]


def failures(seed):
    """What differs for the seed by more than rounding explains, as lines; also if it raises an error without `rows`."""
    fn, operations, composition = composed(seed)
    wanted, got = outcome(composition, fn, lambda f: f), outcome(composition, fn, mbs.rows)
    said = f"seed {seed}: {composition.names} of {operations}: "
    if isinstance(wanted, tuple) or isinstance(got, tuple) or len(got) != len(wanted):
        return [f"{said}{str(got)[:300]}, not {str(wanted)[:300]}"]
    if all(_differs(x, y) is None for x, y in zip(got, wanted, strict=True)):
        return []
    near = outcome(composition.nearby(), fn, lambda f: f)  # derivatives of long compositions magnify rounding
    found = [_differs(*results) for results in zip(got, wanted, near, strict=True)]
    return [f"{said}{why}" for why in found if why]


def _differs(got, want, near=None):
    """What is different in two results, or None; near: the wanted one for arguments that differ by rounding."""
    types = [(x.dtype, x.shape, x.weak_type) for x in map(jnp.asarray, (got, want))]
    if types[0] != types[1]:
        return types
    a, b = np.asarray(got), np.asarray(want)
    if a.dtype.kind != "f":
        return None if np.array_equal(a, b) else (a, b)
    finite = np.isfinite(b)
    allowed = DIGITS[a.dtype.name] * max(1.0, float(np.max(np.abs(b[finite]), initial=0.0)))
    if near is not None:
        allowed += 30 * float(np.max(np.abs(np.asarray(near)[finite] - b[finite]), initial=0.0))
    with np.errstate(invalid="ignore"):
        error = float(np.max(np.abs(a - b), initial=0.0, where=finite))
    same = error <= allowed and np.array_equal(a[~finite], b[~finite], equal_nan=True)
    return None if same else (error, allowed, a, b)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    seeds = list(map(int, sys.argv[1:]))
    for seed in range(*seeds) if len(seeds) == 2 else seeds:
        print(f"seed {seed}:", *(failures(seed) or [composed(seed)[2].names]), sep="\n", flush=True)
