# ruff: noqa: E501
"""Bad files: each error names the key's path, the value and the remedy, before anything is computed."""

import pytest
from pydantic import TypeAdapter

from jaxmbs.io import InputError, load, tables
from jaxmbs.study import read

CASES = {
    "unknown key at the top": ("criteria =", "nonsense = 1\ncriteria =", "nonsense", "allowed keys"),
    "misspelt key": ("mass = 2.0", "mas = 2.0", "mechanism.bodies[0].mas", 'did you mean "mass"?'),
    "key of the top level in a table": ("dt = 1e-3", 'dt = 1e-3\ncriteria = ["a"]', "simulation.criteria", "top level"),
    "missing key": ('parent = "world"\n', "", "mechanism.joints[0].parent", "missing"),
    "unknown method": ("dt = 1e-3", 'dt = 1e-3\nmethod = "rk5"', "simulation.method", "did you mean 'rk4'"),
    "a limit of steps without a tolerance": (
        "dt = 1e-3", "dt = 1e-3\nmax_steps = 900", "simulation.max_steps", "with a tolerance"
    ),
    "a limit of events without any": (
        "dt = 1e-3", "dt = 1e-3\nmax_events = 20", "simulation.max_events", "no event of this model repeats"
    ),
    "tolerance without a method": ("dt = 1e-3", "dt = 1e-3\ntolerance = 1e-6", "simulation.method", "takes no tolerance"),
    "missing type": ('type = "prismatic"\n', "", "mechanism.joints[0].type", "missing"),
    "unknown joint type": ('"prismatic"', '"prismatc"', "mechanism.joints[0].type", 'did you mean "prismatic"?'),
    "unknown force type": ('"linear_spring"', '"linear"', "mechanism.forces[0].type", "linear_spring"),
    "wrong type of value": ("mass = 2.0", 'mass = "heavy"', "mechanism.bodies[0].mass", "got 'heavy'"),
    "true is no number": ("mass = 2.0", "mass = true", "mechanism.bodies[0].mass", "got True"),
    "negative mass": ("mass = 2.0", "mass = -2.0", "mechanism.bodies[0].mass", "got -2.0"),
    "wrong shape": ("com = [0.0, 0.1, 0.0]", "com = [0.0, 0.1]", "mechanism.bodies[0].com", "3 numbers, got"),
    "infinite number": ("com = [0.0, 0.1, 0.0]", "com = [0.0, inf, 0.0]", "mechanism.bodies[0].com", "3 numbers"),
    "inertia of two numbers": ("[0.1, 0.2, 0.25]", "[0.1, 0.2]", "mechanism.bodies[0].inertia", "3x3 matrix"),
    "inertia of no body": ("[0.1, 0.2, 0.25]", "[0.1, 0.2, 0.95]", "mechanism.bodies[0]", "inertia of a body"),
    "axis that is no unit vector": ("[1.0, 0.0, 0.0]\nparent", "[1.0, 1.0, 0.0]\nparent", "mechanism.joints[0]", "not 1"),
    "unknown body in a joint": ('child = "cart"', 'child = "car"', "mechanism", "did you mean 'cart'?"),
    "unknown body in a force": ('body_b = "cart"', 'body_b = "cat"', "mechanism", "did you mean 'cart'?"),
    "unknown joint at the start": ("[initial.rail]", "[initial.rial]", "initial.rial", 'did you mean "rail"?'),
    "too many initial values": ("q = [0.0]", "q = [0.0, 1.0]", "initial.rail.q", "prismatic takes 1"),
    "unknown parameter": ('"spring.stiffness"', '"spring.stifness"', 'dispersions."spring.stifness"', '"spring.stiffness"'),
    "unknown initial value": ('"initial.rail.v"', '"initial.rail.w"', 'dispersions."initial.rail.w"', "initial.rail.v"),
    "unknown distribution": ('"lognormal"', '"log_normal"', 'dispersions."spring.stiffness".distribution', '"lognormal"'),
    "key of another distribution": ("sigma = 0.05", "std = 0.05", 'dispersions."spring.stiffness".std', "allowed keys"),
    "negative width": ("std = 0.02", "std = -0.02", 'dispersions."cart.mass"', "-0.02 is negative"),
    "bounds in the wrong order": ("low = -0.1", "low = 0.2", 'dispersions."initial.rail.v"', "0.2 is above high"),
    "components that do not fit": ("low = -0.1", "low = [0.0, 0.0]", 'dispersions."initial.rail.v"', "has 2 components"),
    "way that does not fit": ("low = -0.1", 'low = -0.1\napply = "tilt"', 'dispersions."initial.rail.v"', '"tilt" is not possible'),
    "unknown way": ("low = -0.1", 'low = -0.1\napply = "ad"', 'dispersions."initial.rail.v".apply', '"add"'),
    "unknown unit": ("low = -0.1", 'low = -0.1\nunit = "mps"', 'dispersions."initial.rail.v"', '"m/s"'),
    "unit of another quantity": ("low = -0.1", 'low = -0.1\nunit = "deg"', 'dispersions."initial.rail.v"', "measures angle"),
    "mass that could vanish": ("std = 0.02", "std = 0.2", 'dispersions."cart.mass"', "negative or zero"),
    "no horizon": ("[simulation]\nt_end = 0.2\ndt = 1e-3\n", "", "simulation", "write [simulation]"),
    "horizon of zero": ("t_end = 0.2", "t_end = 0.0", "simulation.t_end", "got 0.0"),
    "seed that is no number": ("seed = 7", "seed = 7.5", "study.seed", "got 7.5"),
    "unknown output type": ('"joint_velocity"', '"joint_speed"', "outputs.speed.type", "joint_velocity"),
    "unknown joint in an output": ('joint = "rail"\nreduce', 'joint = "real"\nreduce', "outputs.reach.joint", '"rail"'),
    "component out of range": ('reduce = "max"', "component = 1", "outputs.reach.component", "components 0 to 0"),
    "time out of a joint": ('"max"', '"time_out"', "outputs.reach.reduce", "such as a clearance with open = true"),
    "unknown reduction": ('"max"', '"maximum"', "outputs.reach.reduce", '"max"'),
    "name that is no name": ('[dispersions."cart.mass"]', '[dispersions."a/b"]\ntarget = "cart.mass"', 'dispersions."a/b"', "'a/b' is not a name"),
    "unit of an output": ('reduce = "max"', 'reduce = "max"\nunit = "s"', "outputs.reach.unit", "measures time"),
    "criterion of no output": ('"reach > 90 mm"', '"rech > 90 mm"', "criteria[0]", 'did you mean "reach"?'),
    "criterion without a unit": ('"reach > 90 mm"', '"reach > 90"', "criteria[0]", "the unit is missing"),
    "no TOML": ("[simulation]", "[simulation", "", "line"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda name: name.replace(" ", "-"))
def test_error_names_path_and_remedy(cart, case):
    old, new, path, remedy = CASES[case]
    with pytest.raises(InputError) as error:
        read(cart(old, new))
    found = [p for p in error.value.problems if p.path == path]
    assert found, f"no problem at {path!r}: {error.value}"
    assert remedy in found[0].message
    assert error.value.file is not None


def test_all_problems_at_once(cart):
    path = cart("mass = 2.0", "mas = 2.0", "t_end = 0.2", "t_end = -1.0", "seed = 7", "seed = -7")
    with pytest.raises(InputError) as error:
        read(path)
    assert {p.path for p in error.value.problems} == {"mechanism.bodies[0].mas", "simulation.t_end", "study.seed"}


def test_all_bodies_and_joints_that_cannot_be_are_told_at_once(tmp_path):
    bodies = ", ".join(f'{{ name = "b{z}", mass = 1, inertia = [1, 1, {z}] }}' for z in (3, 2, 4))
    joint = '{ name = "j", type = "revolute", axis = [0, 1, 0], parent = "world", child = "world" }'
    (tmp_path / "m.toml").write_text(f"[mechanism]\nbodies = [{bodies}]\njoints = [{joint}]\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        load(tmp_path / "m.toml")
    assert [p.path for p in error.value.problems] == [
        "mechanism.bodies[0]",
        "mechanism.bodies[2]",
        "mechanism.joints[0]",
    ]


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(tmp_path / "nothing.toml")


def test_load_needs_the_mechanism_only(cart):
    model = load(cart("[outputs.reach]", "[outputs.nonsense]"))
    assert model.name == "cart"
    assert model.joint_names == ("rail",)
    with pytest.raises(InputError, match="mas"):
        load(cart("mass = 2.0", "mas = 2.0"))


def test_every_element_of_the_library_can_be_written(tmp_path):
    """Functions of the user, which some need, by name."""
    from jaxmbs.io.catalogue import builtin
    from jaxmbs.io.generated import in_files
    from jaxmbs.model.fields import Element

    known = builtin()
    left_out = {c.__name__ for c in known} - {c.__name__ for c in in_files(Element, known)}
    assert left_out == set()


def test_elements_become_objects_with_the_same_numbers(tmp_path):
    import numpy as np

    import jaxmbs as mbs

    text = """
    [mechanism]
    gravity = [0, 0, -9.81]
    bodies = [{name = "a", mass = 1, inertia = [[1, 0.1, 0], [0.1, 1, 0], [0, 0, 1]]}, {name = "b", mass = 2}]
    [[mechanism.joints]]
    name = "hinge"
    type = "revolute"
    axis = [0, 1, 0]
    parent = "world"
    child = "a"
    parent_pose = {position = [1, 2, 3], rotation = [0, 1, 0, 0]}
    [[mechanism.joints]]
    name = "slide"
    type = "prismatic"
    axis = [0, 0, 1]
    parent = "a"
    child = "b"
    child_pose = {position = [0, 0, 1]}
    [[mechanism.forces]]
    name = "coil"
    type = "torsion_spring"
    joint = "hinge"
    stiffness = 5
    rest_angle = 1.6
    [[mechanism.forces]]
    name = "floor"
    type = "contact"
    body = "b"
    point = [0, 0, 0.5]
    stiffness = 1e4
    surface = {type = "plane", point = [0, 0, -1], normal = [0, 0, 1]}
    [[mechanism.forces]]
    name = "mount"
    type = "bushing"
    body_a = "a"
    body_b = "world"
    pose_a = {position = [0, 0.5, 0]}
    stiffness = [1, 2, 3]
    """
    path = tmp_path / "m.toml"
    path.write_text(text, encoding="utf-8")
    model = load(path)
    assert model.body_names == ("a", "b")
    assert mbs.get(model, "floor.surface.point") == pytest.approx([0, 0, -1])
    assert mbs.get(model, "mount.pose_a.position") == pytest.approx([0, 0.5, 0])
    assert np.asarray(mbs.get(model, "a.inertia"))[0, 1] == pytest.approx(0.1)
    assert mbs.get(model, "hinge.parent_pose.rotation") == pytest.approx(np.diag([1.0, -1.0, -1.0]))
    assert mbs.get(model, "coil.rest_angle") == 1.6


@pytest.mark.parametrize("kind", [tables.Number, tables.Positive, tables.NotNegative])
def test_true_is_no_number_anywhere(kind):
    assert TypeAdapter(kind).validate_python(2.0) == 2.0
    for value in (True, "2.0", float("inf"), float("nan")):
        with pytest.raises(ValueError):
            TypeAdapter(kind).validate_python(value)


def test_zero_is_no_direction():
    assert TypeAdapter(tables.Direction).validate_python([0, 0, 2])
    with pytest.raises(ValueError, match="must not be zero"):
        TypeAdapter(tables.Direction).validate_python([0.0, 0, 0])
