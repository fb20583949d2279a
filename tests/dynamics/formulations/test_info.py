"""What `jaxmbs info` prints."""

import pytest

import jaxmbs as mbs
from jaxmbs.view import info_text


def model():
    mech = mbs.Mechanism("crane", gravity=(0, 0, -9.81))
    for name in ("mast", "boom", "hook", "cabin"):
        mech.add_body(name, 1.0, inertia=(1, 1, 1))
    mech.add_joint("slew", mbs.Revolute((0, 0, 1)), "world", "mast")
    mech.add_joint("luff", mbs.Revolute((0, 1, 0)), "mast", "boom")
    mech.add_joint("rope", mbs.Universal(), "boom", "hook")
    mech.add_joint("bolts", mbs.Fixed(), "mast", "cabin")
    return mech.build()


def test_text():
    text = info_text(model())
    assert text.startswith(
        "crane: 4 bodies, 4 joints, 4 degrees of freedom of the tree (nq = 4, nv = 4), 0 force elements"
    )
    assert "\n".join([
        "world",
        "└─ mast  (slew: Revolute, 1)",
        "   ├─ boom  (luff: Revolute, 1)",
        "   │  └─ hook  (rope: Universal, 2)",
        "   └─ cabin  (bolts: Fixed, 0)",
    ]) in text  # fmt: skip
    assert "3    rope   Universal  2 boom   3 hook   2..3  2..3" in text
    assert "4    bolts  Fixed      1 mast   4 cabin  -     -" in text
    assert "[H]" not in text


def test_coordinates_have_names_and_units():
    mech = mbs.Mechanism("raft")
    mech.add_body("raft", 1.0, inertia=(1, 1, 1))
    mech.add_joint("float", mbs.Free(), "world", "raft")
    text = info_text(mech.build())
    assert text.rstrip().endswith("0..6  0..5  x, y, z [m], qw, qx, qy, qz")
    crane = model()
    assert [c.name for c in crane.coordinates] == ["slew.angle", "luff.angle", "rope.angle_1", "rope.angle_2"]
    assert {c.unit for c in crane.speeds} == {"rad/s"} and crane.speeds[0].name == "slew.angle_rate"


def test_matrices():
    text = info_text(model(), matrices=True)
    assert "S0\n+1  ·  ·  ·\n" in text
    assert "T = S⁻¹\n-1 -1 -1 -1\n · -1 -1  ·\n ·  · -1  ·\n ·  ·  · -1\n" in text
    assert "[I]\n-1 +1  · +1\n · -1 +1  ·\n ·  · -1  ·\n ·  ·  · -1\n" in text and "[H]" in text


@pytest.mark.slow
def test_long_chains_are_drawn():
    text = info_text(mbs.library.chain(1500).build())
    assert "link_1500  (hinge_1500: Revolute, 1)" in text


def test_one_is_singular():
    text = info_text(mbs.library.chain(1).build())
    assert text.startswith("chain of 1: 1 body, 1 joint, 1 degree of freedom of the tree")
    assert info_text(mbs.library.crank_slider().build()).startswith("crank-slider: 3 bodies, 3 joints, 1 cut joint, ")
