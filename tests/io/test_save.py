"""What `save` writes, `load` reads back to the same numbers; what it cannot write it refuses by name."""

import importlib
import importlib.metadata
import sys
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import jaxmbs as mbs
from jaxmbs.elements import Force, element
from jaxmbs.io import InputError, catalogue
from jaxmbs.io.save import toml_text
from jaxmbs.io.toml import parse
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.parameters import concrete_components
from tests.mechanisms import KINDS, build, mechanisms

PLAIN = tuple(k for k in KINDS if k != "General")
EXAMPLES = sorted(p for p in Path("examples").glob("*.toml") if not p.stem.endswith("_designs"))


def returned(model, path, trust=False):
    mbs.save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mbs.load(path, trust=trust)


def same(a, b, patterns=True):
    """Same structure, and every number the same to the last bit."""
    s, t = a.structure, b.structure
    assert (s.links, s.forces, s.loops, s.constraints, s.events, s.held, s.off, s.visuals) == (
        t.links, t.forces, t.loops, t.constraints, t.events, t.held, t.off, t.visuals,
    )  # fmt: skip
    assert sorted(p.name for p in s.parameters) == sorted(p.name for p in t.parameters)
    for p in s.parameters:
        assert p == t.table[p.name][0] or not patterns
        x, y = np.asarray(mbs.get(a, p.name)), np.asarray(mbs.get(b, p.name))
        assert x.shape == y.shape and (x + 0.0).tobytes() == (y + 0.0).tobytes(), p.name


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mechanisms(max_bodies=8, kinds=PLAIN))
def test_random_mechanisms_come_back_bit_for_bit(tmp_path, mechanism):
    model = build(mechanism)
    back = returned(model, tmp_path / "mechanism.toml")
    same(model, back)
    assert returned(back, tmp_path / "again.toml") == back


@pytest.mark.parametrize(
    "path", [p for p in EXAMPLES if "modules" not in p.read_text(encoding="utf-8")], ids=lambda p: p.stem
)
def test_the_mechanisms_of_the_examples_come_back(tmp_path, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        model = mbs.load(path)
    same(model, returned(model, tmp_path / "mechanism.toml"))


def everything():
    """One of all that a file may have, with numbers that are no round ones."""
    third = 1 / 3
    mech = mbs.Mechanism('all of it: "quoted" \\ \u00e9', gravity=(0.1, third, -9.81), held=["slide"], off=["jet"])
    parent = "world"
    for name, joint in (("a", mbs.Revolute((third, 2 / 3, 2 / 3))), ("b", mbs.Helical((0.6, 0.8, 0), 0.1 + 0.2)),
                        ("c", mbs.Spherical()), ("slide", mbs.Prismatic((0, 0, 1))), ("d", mbs.Universal())):  # fmt: skip
        mech.add_body(
            name, 1 + third, (0.1, 0, third), ((0.3, 0.01, 0), (0.01, 0.2, third / 10), (0, third / 10, 0.25))
        )
        pose = mbs.Pose((third, 0, 1), (1, 0.2, 0.3, third))
        mech.add_joint(name, joint, parent, name, pose, mbs.Pose((0, third, 0)), armature=third if name == "a" else 0.0)
        parent = name
    mech.add_body("let", 1.0, inertia=((0.1, 0, 0.01), (0, 0.1, 0), (0.01, 0, 0.1)))
    mech.add_joint("let", mbs.Revolute((0, 0.6, 0.8)), "a", "let", mbs.Pose((1, 2, third)), releasable=True)
    mech.close_loop("cut", mbs.Cylindrical((0, 0.6, 0.8)), "d", "world", pose_a=mbs.Pose((third, 0, 0)))
    mech.add_constraint("gear", mbs.Coupling("b", "a", (0.1, third)))
    mech.add_constraint("blade", mbs.KnifeEdge("c", (0, 0, third)))
    mech.add_force("coil", mbs.TorsionSpring("a", third, 0.1, 0.3))
    mech.add_force("spring", mbs.JointSpring("slide", third, 0.1, 0.3))
    mech.add_force("touch", mbs.Contact("c", (third, 0, 0), mbs.Sphere((0, 0, third), 0.1), "a", stiffness=1e4 / 3))
    mech.add_force("jet", mbs.Thruster("d", thrust=third, times=(0.0, third), values=(0.0, 1.0)))
    mech.add_event("go", when=mbs.Time(third), then=[mbs.Release("let"), mbs.Disable("coil")], armed_from=third / 2)
    mech.add_event(
        "end", when=mbs.JointReaches("a", third, direction="up"), then=mbs.Bounce("a", 0.1), after="go", repeat=True
    )
    mech.add_visual("c", "cylinder", (0.1, third, 1), pose, "#0a0b0c")
    mech.add_visual("world", "mesh", (1, -1, 1), file="/some where/part.stl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mech.build()


def test_everything_that_a_file_may_have_comes_back(tmp_path):
    model = everything()
    back = returned(model, tmp_path / "all.toml", trust=True)  # its mesh is in another folder
    same(model, back)
    assert back.name == model.name and returned(back, tmp_path / "again.toml", trust=True) == back


def test_springs_on_joints_come_back_by_both_names(tmp_path):
    model = returned(everything(), tmp_path / "all.toml", trust=True)
    text = (tmp_path / "all.toml").read_text(encoding="utf-8")
    assert 'type = "torsion_spring"' in text and 'type = "joint_spring"' in text
    assert mbs.get(model, "coil.rest_angle") == mbs.get(model, "spring.rest_coordinate") == 0.3


def test_set_numbers_come_back_and_batches_are_refused(tmp_path):
    model = mbs.set(mbs.library.double_pendulum().build(), {"lower.mass": 0.1 + 0.2, "lower.com": (0.1, 0, -1)})
    same(model, returned(model, tmp_path / "x.toml"), patterns=False)  # set frees all of a com
    batch, _ = mbs.vary(model, {"lower.mass": jnp.array([1.0, 2.0])})
    with pytest.raises(mbs.ModelError, match=r"'lower\.mass' is a batch"):
        mbs.save(batch, tmp_path / "y.toml")
    assert not (tmp_path / "y.toml").exists()


def test_axes_come_back_bit_for_bit():
    """A direction of unit length, but for rounding, stays what it is."""
    for axis in np.random.default_rng(0).normal(size=(500, 3)):
        once = concrete_components(Kind.DIRECTION, axis / np.linalg.norm(axis), "axis")
        assert concrete_components(Kind.DIRECTION, once, "axis") == once


@element
class Wind(Force):
    """A class that no package has as an entry point."""

    def apply(self, p, scene, loads):
        pass


def test_what_no_file_can_hold_is_refused_by_name(tmp_path):
    mech = mbs.library.double_pendulum()
    mech.add_constraint("ratio", mbs.Holonomic(lambda model, t, q, v: q[1] - q[0]))
    mech.add_force("push", mbs.External(lambda model, t, q, v: 0 * q))
    mech.add_force("wind of one", Wind())
    with pytest.raises(mbs.ModelError) as error:
        mbs.save(mech.build(), tmp_path / "x.toml")
    for said in (
        "'ratio' is Holonomic",
        "'push' is External",
        "is Wind, which is neither provided by an installed package",
        "'wind of one' cannot be written",
        'modules=["my_functions.py"]',
    ):
        assert said in str(error.value)


FUNCTIONS = """
import functools
import jax
import jax.numpy as jnp

def curve(q, t): return jnp.stack([q[0], 0 * q[0], 0.3 * q[0] ** 2])
def still(q, t): return jnp.eye(3)
@jax.jit
def drag(model, t, q, v): return -0.1 * v
def _ratio(factor, model, t, q, v): return q[1] - factor * q[0]
ratio = functools.partial(_ratio, 0.5)
def fast(model, t, q, v): return v[0] - 2.0
def near(model, t, q, v): return q[0] - 0.1
def stop(model, t, q, v, beyond): return jnp.where(beyond[0] & beyond[1], -v, 0.0)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of functions, imported as a user does."""
    (tmp_path / "bead_functions.py").write_text(FUNCTIONS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("bead_functions")
    del sys.modules["bead_functions"]


def bead(f):
    """A model with a function wherever one may stand."""
    mech = mbs.Mechanism("bead", gravity=(0, 0, -9.81))
    mech.add_body("bead", 1.0)
    mech.add_body("wheel", 1.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("wire", mbs.General(f.curve, f.still, dof=1), "world", "bead")
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "bead", "wheel")
    mech.add_force("drag", mbs.External(f.drag))
    mech.add_force("stop", mbs.External(f.stop, surfaces=(f.fast, f.near)))
    mech.add_constraint("ratio", mbs.Holonomic(f.ratio))
    mech.add_event("end", when=mbs.When(f.fast), then=mbs.Finish())
    return mech.build()


def test_functions_of_a_module_are_written_by_name_with_the_module_beside(tmp_path, mine):
    model, file = bead(mine), tmp_path / "out" / "bead.toml"
    said = r"whose function z \(curve\) is neither provided by an installed package.*modules="
    with pytest.raises(mbs.ModelError, match=said):
        mbs.save(model, file)
    file.parent.mkdir()
    mbs.save(model, file, modules=[mine])
    assert (
        'fn = "bead_functions.ratio"' in file.read_text(encoding="utf-8")
        and (file.parent / "bead_functions.py").exists()
    )
    with pytest.raises(InputError, match="--trust"):
        mbs.load(file)
    back = mbs.load(file, trust=True)
    for name in ("z", "G"):
        x = jnp.array([0.7])
        one, other = (getattr(m.structure.links[0].joint, name)(x, 0.0) for m in (model, back))
        assert np.array_equal(one, other)
    assert [fn.__name__ for fn in back.structure.forces[1].element.surfaces] == ["fast", "near"]
    # what came from a file goes into another one without a word
    again = tmp_path / "again.toml"
    mbs.save(back, again)
    assert mbs.load(again, trust=True) == back
    (file.parent / "bead_functions.py").write_text(FUNCTIONS + "\n# another\n", encoding="utf-8")
    with pytest.raises(mbs.ModelError, match=r"a different file bead_functions\.py"):
        mbs.save(back, file)
    bad = again.read_text(encoding="utf-8").replace("bead_functions.fast", "bead_functions.fasst")
    again.write_text(bad, encoding="utf-8")
    with pytest.raises(InputError, match=r'no function "bead_functions\.fasst"; did you mean "bead_functions\.fast"'):
        mbs.load(again, trust=True)


def test_functions_of_an_installed_package_need_no_trust(tmp_path, mine, monkeypatch):
    values = {"beads": "bead_functions", "drag": "bead_functions:drag"}
    points = [importlib.metadata.EntryPoint(n, v, catalogue.GROUP) for n, v in values.items()]
    monkeypatch.setattr(catalogue.importlib.metadata, "entry_points", lambda group: points)
    catalogue.installed.cache_clear()
    try:
        model = bead(mine)
        assert returned(model, tmp_path / "bead.toml") == model
        text = (tmp_path / "bead.toml").read_text(encoding="utf-8")
        assert 'z = "beads.curve"' in text and 'fn = "drag"' in text and "modules" not in text
    finally:
        catalogue.installed.cache_clear()


def test_a_function_that_a_module_makes_inside_another_has_no_name(tmp_path, mine):
    model = mbs.library.double_pendulum()
    model.add_force("drag", mbs.External(lambda model, t, q, v: -v))
    with pytest.raises(mbs.ModelError, match=r"function fn \(<lambda>\)"):
        mbs.save(model.build(), tmp_path / "x.toml", modules=[mine])
    assert not (tmp_path / "x.toml").exists() and not (tmp_path / "x").exists()


def test_the_text_is_toml():
    tables = {
        "a": {"x": 1e-300, "s": 'q"\\\n\u00e9', "t": True, "rows": [{"n": [1.0, [2.5]], "part": {"k": -0.0}}], "e": []}
    }
    assert parse(toml_text(tables)) == tables
