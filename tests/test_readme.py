"""The README's Python runs as it stands and does what it says."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar

README = Path(__file__).parent.parent / "README.md"


def blocks():
    """The Python of the README, block by block."""
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_an_element_of_ones_own():
    """Drag of a body that moves at 2 m/s: factor times the square of the speed."""
    space = {}
    exec(compile(blocks()[1], str(README), "exec"), space)
    mech = mbs.Mechanism("drop")
    mech.add_body("drop", mass=4.0)
    mech.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child="drop")
    mech.add_force("air", space["Drag"]("drop", factor=3.0))
    assert scalar.forward_dynamics(mech.build(), [0.0], [2.0]) == [-3.0]


def test_the_ten_lines():
    """With fewer pendulums: each swings by its own mass, and the derivatives are those of the angles."""
    code, _ = blocks()
    assert len([line for line in code.splitlines() if line.strip()]) <= 12 and code.count("1000") == 2
    space = {}
    exec(compile(code.replace("1000", "4"), str(README), "exec"), space)
    angles, slopes = np.asarray(space["angles"]), np.asarray(space["slopes"])
    assert angles.shape == (4,) and slopes.shape == (4, 1)
    assert np.ptp(angles) > 1e-3
    h, model = 1e-4, space["model"]
    ends = [space["swing"](model, jnp.full(1, 0.5 + x)) for x in (-h, h)]
    one = space["jax"].grad(space["swing"], argnums=1)(model, jnp.full(1, 0.5))
    assert abs((ends[1] - ends[0]) / (2 * h) - one[0]) < 1e-6
    assert slopes[0, 0] != slopes[-1, 0] and slopes.min() < one[0] < slopes.max()
