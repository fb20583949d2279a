"""What a file says of a mechanism builds the model that Python builds: loops and constraint elements among it."""

import warnings

import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError, load

FILE = """
[mechanism]
name = "machine"
gravity = [0, 0, -9.81]
bodies = [
    {name = "sled", mass = 2.0, com = [0.1, 0, 0], inertia = [0.1, 0.2, 0.25]},
    {name = "wheel", mass = 1.0, inertia = [0.02, 0.04, 0.02]},
    {name = "crank", mass = 0.5, com = [0.2, 0, 0], inertia = [0.01, 0.02, 0.02]},
    {name = "rod", mass = 0.8, com = [0.3, 0, 0], inertia = [0.01, 0.03, 0.03]},
]
[[mechanism.joints]]
name = "ice"
type = "planar"
parent = "world"
child = "sled"
[[mechanism.joints]]
name = "road"
type = "free"
parent = "world"
child = "wheel"
[[mechanism.joints]]
name = "main"
type = "revolute"
axis = [0, 1, 0]
parent = "sled"
child = "crank"
[[mechanism.joints]]
name = "pin"
type = "revolute"
axis = [0, 1, 0]
parent = "crank"
child = "rod"
parent_pose = {position = [0.4, 0, 0]}
[[mechanism.loops]]
name = "slide"
type = "cylindrical"
axis = [1, 0, 0]
body_a = "sled"
body_b = "rod"
pose_b = {position = [0.6, 0, 0]}
[[mechanism.forces]]
name = "brake"
type = "damper"
joint = "slide"
damping = 3.0
[[mechanism.constraints]]
name = "blade"
type = "knife_edge"
body = "sled"
point = [0.2, 0, 0]
[[mechanism.constraints]]
name = "disc"
type = "rolling_disc"
body = "wheel"
radius = 0.3
"""


def machine():
    mech = mbs.Mechanism("machine", gravity=(0, 0, -9.81))
    mech.add_body("sled", 2.0, (0.1, 0, 0), (0.1, 0.2, 0.25))
    mech.add_body("wheel", 1.0, inertia=(0.02, 0.04, 0.02))
    mech.add_body("crank", 0.5, (0.2, 0, 0), (0.01, 0.02, 0.02))
    mech.add_body("rod", 0.8, (0.3, 0, 0), (0.01, 0.03, 0.03))
    mech.add_joint("ice", mbs.Planar(), "world", "sled")
    mech.add_joint("road", mbs.Free(), "world", "wheel")
    mech.add_joint("main", mbs.Revolute((0, 1, 0)), "sled", "crank")
    mech.add_joint("pin", mbs.Revolute((0, 1, 0)), "crank", "rod", parent_pose=mbs.Pose((0.4, 0, 0)))
    mech.close_loop("slide", mbs.Cylindrical((1, 0, 0)), "sled", "rod", pose_b=mbs.Pose((0.6, 0, 0)))
    mech.add_force("brake", mbs.Damper("slide", damping=3.0))
    mech.add_constraint("blade", mbs.KnifeEdge("sled", point=(0.2, 0, 0)))
    mech.add_constraint("disc", mbs.RollingDisc("wheel", radius=0.3))
    return mech


@pytest.fixture
def file(tmp_path):
    def write(old="", new=""):
        assert old in FILE
        path = tmp_path / "machine.toml"
        path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
        return path

    return write


def test_a_file_with_loops_and_constraints_builds_the_same_model(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        model, want = load(file()), machine().build()
    assert model == want
    assert model.constraint_names == ("slide", "blade", "disc")


@pytest.mark.parametrize(
    ("old", "new", "path", "remedy"),
    [
        ('body_b = "rod"', 'body_b = "rood"', "mechanism", "did you mean 'rod'"),
        ("radius = 0.3", "radius = 0.0", "mechanism.constraints[1].radius", "greater than 0"),
        ("radius = 0.3", "", "mechanism.constraints[1].radius", "missing"),
        ('type = "knife_edge"', 'type = "knife"', "mechanism.constraints[0].type", "knife_edge"),
        ('body = "sled"', 'body = "world"', "mechanism", "no body named 'world'"),
        ("axis = [1, 0, 0]\nbody_a", "axis = [1, 1, 0]\nbody_a", "mechanism.loops[0]", "has length 1.41421, not 1"),
    ],
)
def test_errors_in_loops_and_constraints_have_their_path(file, old, new, path, remedy):
    with pytest.raises(InputError) as error:
        load(file(old, new))
    assert [p for p in error.value.problems if p.path == path and remedy in p.message], error.value
