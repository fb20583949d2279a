"""What CONTRIBUTING.md shows is done here, as it stands there: a joint, a force element, an output and an
integrator of one's own."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.simulate.steppers import METHODS
from jaxmbs.study.outputs.folding import measured
from tests.pages import blocks

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def guide():
    """The names that its blocks define."""
    space = {}
    for block in blocks(GUIDE, "python"):
        exec(compile(block.text, str(GUIDE), "exec"), space)
    return space


def test_the_files_that_it_names_exist():
    """Paths from the project's root, with a word in capitals for any; targets of make; where public names are exported."""
    text = GUIDE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:jaxmbs|tests|docs|examples)/[\w./]*)`", text)
    assert {"jaxmbs/model/joints/public.py", "jaxmbs/model/joints/", "tests/faults/PACKAGE.toml"} <= set(named)
    lost = [name for name in named if not list(ROOT.glob(re.sub(r"\b[A-Z]+\b", "*", name).rstrip("/")))]
    assert not lost, f"no such files: {lost}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lost = [name for name in re.findall(r"^make ([\w-]+)", text, re.MULTILINE) if f"\n{name}:" not in makefile]
    assert not lost, f"no such targets of make: {lost}"
    assert "a name in `METHODS`" in text and METHODS["rk4"].order == 4


def test_an_extension_is_one_line_of_export():
    """One of each kind: the file of its row in the table exports it in one line, and no other file does."""
    text = GUIDE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| [\w ,]+ \| `(jaxmbs/[\w/]+)/` \| `([\w./]+)`", text, re.MULTILINE)
    names = [
        "Revolute",
        "Thruster",
        "Rod",
        "Bounce",
        "Imu",
        "Attitude",
        "Uniform",
        "StaticBalance",
        "Variational",
        "from_usd",
    ]
    texts = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in (ROOT / "jaxmbs").rglob("*.py")}
    for (folder, exports), name in zip(rows, names, strict=False):
        lines = [
            (path, line) for path, text in texts.items() for line in text.splitlines() if f"{name} as {name}" in line
        ]
        assert [path for path, _ in lines] == [exports], name
        assert lines[0][1].startswith(f"from {folder.replace('/', '.')}.")
    assert [exports for _, exports in rows[len(names) :]] == ["jaxmbs/cli/app.py"]


def block_on_a_wedge(guide):
    mech = mbs.Mechanism("block on a wedge", gravity=(0, 0, -10.0))
    mech.add_body("block", mass=2.0)
    mech.add_joint("incline", guide["Wedge"](slope=0.75), "world", "block")
    mech.add_force("wind", guide["Wind"]("block", force=(3.0, 5.0, 1.0)))
    return mech.build()


def test_the_joint_and_the_force_element(guide):
    """m (1 + slope²) a = Fx + slope (Fz - m g); the energy is that of height and wind."""
    model = block_on_a_wedge(guide)
    assert scalar.forward_dynamics(model, [0.4], [0.3]) == pytest.approx([(3 + 0.75 * (1 - 20)) / (2 * 1.5625)])
    kinetic, potential = scalar.energy(model, [0.4], [0.3])
    assert kinetic == pytest.approx(1.5625 * 0.09)
    assert potential == pytest.approx(20 * 0.3 - 3 * 0.4 - 1 * 0.3)
    assert model.coordinates[0].name == "incline.way"
    run = mbs.simulate(model, [0.4], [0.3], t_end=0.1, dt=0.01)
    assert np.abs(run.energy_error).max() < 1e-12
    assert mbs.get(mbs.set(model, {"incline.slope": 0.5}), "incline.slope") == 0.5


def test_the_output(guide):
    model = block_on_a_wedge(guide)
    output = guide["Height"]("block")
    found = measured({"height": output}, model, 0.0, jnp.array([0.4]), jnp.array([0.0]))
    assert float(found["height"][0]) == pytest.approx(0.3) and output.measures({}) == "length"


@pytest.mark.slow
def test_the_integrator(guide):
    """Of order 2: a fourth of the error at half the step, with an event and a free body's quaternion on the way."""
    mech = mbs.Mechanism("stone", gravity=(0.0, 0.0, -9.81))
    mech.add_body("stone", mass=1.0, inertia=(0.1, 0.2, 0.25))
    mech.add_joint("flight", mbs.Free(), "world", "stone")
    mech.add_event("end", when=mbs.Time(0.35), then=mbs.Finish())
    model = mech.build()
    v = jnp.array([1.0, 2.0, -1.0, 0.5, 0.0, 3.0])

    def end(dt, method):
        return mbs.simulate(model, model.neutral(), v, t_end=0.8, dt=dt, method=method, save_every=None).q[-1]

    exact = end(0.01, "dop853")
    errors = [float(jnp.abs(end(dt, guide["Midpoint"]()) - exact).max()) for dt in (0.04, 0.02)]
    assert 3.5 < errors[0] / errors[1] < 4.6
    with pytest.raises(mbs.ModelError, match="takes no tolerance"):
        mbs.simulate(model, model.neutral(), v, t_end=0.8, dt=0.1, method=guide["Midpoint"](), tolerance=1e-6)
