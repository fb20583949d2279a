"""Jitted functions whose programs another process reads: told apart by all that they are made of."""

import os
import subprocess
import sys
import time
from decimal import Decimal
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxmbs as mbs
from jaxmbs.batching import disk_cache
from jaxmbs.batching.cached_jit import CachedJit
from jaxmbs.batching.compiling import compiled
from jaxmbs.batching.content import MADE_OF, NotKnownError, digest


@pytest.fixture
def count(tmp_path, monkeypatch):
    """Programs made and read, of a folder that was empty."""
    monkeypatch.setattr(disk_cache, "FOLDER", tmp_path)
    monkeypatch.setattr(disk_cache, "COUNT", {"made": 0, "read": 0})
    return disk_cache.COUNT


def scaled(factor, jit=compiled):
    """As another process would make it: a new function each time."""

    def fn(x):
        return {"out": factor * np.pi * x["in"]}

    return jit(fn)


def test_the_same_function_is_read(count):
    x = {"in": np.arange(3.0)}
    first = scaled(2.0)(x)["out"]
    assert count == {"made": 1, "read": 0}
    again = scaled(2.0)
    assert np.array_equal(again(x)["out"], first) and count == {"made": 1, "read": 1}
    again(x)
    assert count == {"made": 1, "read": 1}, "once in a process"
    assert np.array_equal(again({"in": np.ones(2)})["out"], 2.0 * np.pi * np.ones(2)) and count["made"] == 2
    assert np.array_equal(scaled(3.0)(x)["out"], 3.0 * np.pi * x["in"]) and count["made"] == 3
    assert np.array_equal(scaled(np.array([1.0, 2.0, 4.0]))(x)["out"], np.pi * np.array([0.0, 2.0, 8.0]))
    assert count == {"made": 4, "read": 1}
    scaled(2.0, lambda fn: compiled(fn, quick=False))(x)
    assert count["made"] == 5, "compiled in another way"


def test_a_function_of_rows_is_read(count, monkeypatch):
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    x = {"in": np.linspace(0.0, 1.0, 7)}
    first = scaled(2.0, lambda fn: mbs.jit(fn, in_axes=0))(x)["out"]
    again = scaled(2.0, lambda fn: mbs.jit(fn, in_axes=0))(x)["out"]
    assert np.array_equal(first, again) and count == {"made": 1, "read": 1}
    assert np.allclose(first, 2.0 * np.pi * x["in"], rtol=1e-15)


def test_where_no_folder_is_set_nothing_is_kept(count, monkeypatch):
    monkeypatch.setattr(disk_cache, "FOLDER", None)
    scaled(2.0)({"in": np.arange(3.0)})
    assert count == {"made": 0, "read": 0}


def test_what_is_not_known_is_compiled_as_ever(count):
    def fn(x):
        return (2.0 if time.time() > 0 else 3.0) * x

    assert compiled(fn)(np.ones(2)).tolist() == [2.0, 2.0] and count == {"made": 0, "read": 0}


def test_inside_another_function_it_is_a_jitted_one(count):
    def outer(x):
        return scaled(2.0, lambda fn: compiled(fn, quick=False))(x)["out"].sum()

    slope = jax.grad(outer)({"in": np.arange(3.0)})["in"]
    assert np.allclose(slope, 2 * np.pi) and count == {"made": 0, "read": 0}


def test_precision_is_the_processes_own(count):
    """Constants of the function have it, whatever the arguments are."""
    third = compiled(lambda k: jnp.zeros(()) + k)
    assert third(np.int32(1)).dtype == np.float64
    with jax.enable_x64(False):
        assert third(np.int32(1)).dtype == np.float32
    assert count["made"] == 2


def test_what_is_interpreted_is_not_compiled(count):
    with jax.disable_jit():
        assert compiled(lambda x: 2 * x)(np.ones(2)).tolist() == [2.0, 2.0]
    assert count == {"made": 0, "read": 0}


def test_static_data_of_arguments_tell_programs_apart(count):
    """Two mechanisms of the same shapes and other joints."""

    def built(kind):
        mechanism = mbs.Mechanism("one body", gravity=(0, 0, -9.81))
        mechanism.add_body("body", 1.0, (0, 0.5, 0))
        mechanism.add_joint("joint", kind((0, 0, 1)), "world", "body")
        return mechanism.build()

    def mass(model):
        return mbs.mass_matrix(model, np.array([0.3]))

    for kind in (mbs.Revolute, mbs.Prismatic):
        model = built(kind)
        np.testing.assert_allclose(compiled(mass)(model), mass(model), rtol=1e-14)
    assert count["made"] == 2


class Caching:
    """Half of it follows from the rest."""

    def __init__(self, x):
        self.x = x

    @cached_property
    def twice(self):
        return 2 * self.x


class Telling(Caching):
    __module__ = "jaxmbs.somewhere"  # others mean something else by such a name

    def _made_of(self):
        if self.x < 0:
            raise NotKnownError("negative")
        return self.x


class Own(Caching):
    __module__ = "jaxmbs.somewhere"


def test_what_follows_from_the_rest_does_not_count():
    """Of the library's own classes: in others it could be anything."""
    for kind, counts in ((Caching, True), (Own, False)):
        fresh, used = kind(3.0), kind(3.0)
        assert used.twice == 6.0
        assert (digest({"x": fresh}) != digest({"x": used})) == counts
    structure = mbs.library.double_pendulum().build().structure
    before = digest({"x": structure})
    hash(structure)
    assert digest({"x": structure}) == before == digest({"x": mbs.library.double_pendulum().build().structure})


def test_an_object_can_tell_what_it_is_made_of():
    a, b = Telling(3.0), Telling(3.0)
    assert b.twice == 6.0 and digest({"x": a}) == digest({"x": b}) != digest({"x": Telling(4.0)})
    assert hasattr(CachedJit, MADE_OF)
    with pytest.raises(NotKnownError, match="negative"):
        digest({"x": Telling(-1.0)})


READ = """
import jax
import jax.numpy as jnp
import numpy as np
from jaxmbs.batching import disk_cache
from jaxmbs.batching.compiling import compiled

jax.config.update("jax_enable_x64", True)
disk_cache.FOLDER = disk_cache.Path({folder!r})


def solved(x):
    return jax.numpy.linalg.solve(x, jax.numpy.arange(3.0))


print(compiled(solved)(np.diag([1.0, 2.0, 4.0])).round(12).tolist(), disk_cache.COUNT)
"""


def test_another_process_finds_linear_algebra(tmp_path):
    """JAX looks up the functions of LAPACK where it lowers a call of one, which a process that reads does not."""
    run = [sys.executable, "-c", READ.format(folder=str(tmp_path))]
    said = [subprocess.run(run, check=False, capture_output=True, text=True, encoding="utf-8") for _ in range(2)]
    assert [x.stdout for x in said] == [
        f"[0.0, 0.5, 0.5] {{'made': {made}, 'read': {1 - made}}}\n" for made in (1, 0)
    ], said[1].stderr


def test_calls_of_python_are_not_kept(count):
    """The program has an address of the function that it calls, in this process."""

    def fn(x):
        jax.debug.print("{}", x.sum())
        return x

    compiled(fn)(np.ones(2))
    assert count["made"] == 1 and not list(disk_cache.FOLDER.glob("*.program"))


def held(**names):
    """A class with these attributes, whose name says nothing of them."""
    return type("Held", (), names)


def masked(mask):
    numbers = np.ma.array([1.0, 2.0, 4.0], mask=mask)
    return numbers.sum


def outer(base, *inside):
    inner = type("Inner", (), dict(inside[:1]))
    return type("Outer", (base,), {"Inner": inner, **dict(inside[1:])})


def test_what_has_other_numbers_has_another_digest():
    def of(x):
        return digest({"x": x})

    base = type("Base", (), {"b": 3.0})
    one, other = outer(base, ("a", 1.0), ("b", 2.0)), outer(base, ("a", 1.0))
    other.Inner.b = 2.0
    assert of(lambda: one.b) != of(lambda: other.b), "an attribute of the class, and of the one inside it"

    def g(x, n):
        return 2 * x if isinstance(n, int) else 3 * x

    assert of(jax.jit(g)) != of(jax.jit(g, static_argnums=1))
    copied = held(k=1.0)
    before = of(copied)
    copied().__reduce_ex__(4)
    assert of(copied) == before, "that it was pickled once changes nothing"


@pytest.mark.parametrize(
    "unknown",
    [
        masked([0, 0, 1]),
        held(np=np),
        lambda m=np: m.ones(2),
        lambda: vars(np)["loadtxt"]("numbers.txt"),
        lambda: np.__dict__["loadtxt"]("numbers.txt"),
        scipy.stats.norm.rvs,
        lambda: Decimal(1) / Decimal(3),
    ],
    ids=("a masked array", "a module of a class", "of a default", "vars", "its dictionary", "a draw", "a context"),
)
def test_what_depends_on_more_is_not_known(unknown):
    with pytest.raises(NotKnownError):
        digest({"x": unknown})


def test_arguments_of_other_nesting_are_other_programs(count):
    x = np.arange(2.0)
    sums = [compiled(lambda p: sum(y.sum() for y in jax.tree.leaves(p)))(p) for p in (([x, x],), ([x], x))]
    assert sums == [2.0, 2.0] and count["made"] == 2


def test_arguments_on_other_devices_are_left_to_jax(count):
    class There:
        """As an array that was put on another device."""

        committed = True

        def devices(self):
            return {"another"}

    asked = []
    function = CachedJit(asked.append, "made of")  # pyright: ignore[reportArgumentType]
    function(There())
    assert len(asked) == 1 and count == {"made": 0, "read": 0}


def test_nothing_is_kept_of_a_library_that_changes_meanwhile(count, monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache, "_sources", lambda: [tmp_path / "a.py"])
    (tmp_path / "a.py").write_text("", encoding="utf-8")  # later than this process has begun
    x = {"in": np.arange(3.0)}
    scaled(2.0)(x)
    assert count["made"] == 1 and not list(tmp_path.glob("*.program"))
    os.utime(tmp_path / "a.py", (0, 0))
    scaled(2.0)(x)
    assert count["made"] == 2 and len(list(tmp_path.glob("*.program"))) == 1


def test_settings_of_jax_are_part_of_a_program(count):
    def ranks(x):
        return x + jnp.ones((2, 2))

    added = compiled(ranks)
    with jax.numpy_rank_promotion("allow"):
        added(np.ones(2))
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        added(np.ones(2))
    assert count["made"] == 2
