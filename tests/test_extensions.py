"""Everything that may be added from outside the package, added from outside: from a module beside a file, or from an
installed package, each with one file and one line of export."""

import importlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from typer.testing import CliRunner

import jaxmbs as mbs
from jaxmbs.cli.app import app
from jaxmbs.design.file import read as read_design
from jaxmbs.elements import Constraint, Kind, element, field
from jaxmbs.io import InputError, catalogue
from jaxmbs.model import ModelError
from jaxmbs.simulate.steppers import METHODS, RungeKutta
from jaxmbs.study.problem.programs import content

PARTS = '''
from typing import Literal

import jax.numpy as jnp
import optax

from jaxmbs.elements import Action, Condition, Constraint, CoordinateRow, Kind, element, field
from jaxmbs.io.tables import Number, Positive, stated
from jaxmbs.simulate.steppers import METHODS, RungeKutta
from jaxmbs.spatial import ZERO3
from jaxmbs.study.distributions import Components, Distribution, named
from jaxmbs.study.outputs import OfRun, OfState


@element
class Below(Condition):
    """A body's origin falls below a height."""

    body: str = field(Kind.BODY, "", "body that falls")
    value: float = field(Kind.NUMBER, "m", "height")

    def guards(self, p, now):
        return (p["value"] - now.point(self.body, ZERO3).z,)


@element
class Jam(Action):
    """A joint locks."""

    locks = True
    joint: str = field(Kind.JOINT, "", "joint that is jammed")


@element
class WholeEnergy(OfState):
    """Kinetic and potential energy of everything."""

    def quantity(self, joints):
        return "energy"

    def of_state(self, state, model, mode):
        from jaxmbs.dynamics import energy

        return sum(energy(model, state.tree.vector(state.q), state.tree.vector(state.v), t=state.t, mode=mode)), True


@element
class Occurred(OfRun):
    """How often an event happened."""

    event: str = field(Kind.TEXT, "", "the event")

    def quantity(self, joints):
        return "number"

    def of_run(self, model, q, v, events):
        return jnp.sum(events.index == model.event_names.index(self.event))


@element
class Differential(Constraint):
    """The angle of the case is a share of the left angle and the rest of the right one, which is bent by a cubic."""

    left: str = field(Kind.JOINT, "", "one shaft")
    right: str = field(Kind.JOINT, "", "other shaft")
    case: str = field(Kind.JOINT, "", "joint of the case")
    share: float = field(Kind.NUMBER, "", "of the left shaft", default=0.5)
    count = 1

    def coordinate_rows(self, p, q, v):
        rest, x = 1 - p["share"], q["right"]
        coefficients = {"left": p["share"], "right": rest * (1 + 3 * x * x), "case": -1}
        drift = 6 * rest * x * (v["right"] * v["right"])
        return (CoordinateRow(coefficients, drift, p["share"] * q["left"] + rest * (x + x * x * x) - q["case"]),)


class LogisticLaw:
    def __init__(self, location, scale):
        self.location, self.scale = location, scale
        self.support, self.middle = (location - 40 * scale, location + 40 * scale), location
        self.spread = 1.8138 * scale

    def quantile(self, s, dtype):
        return jnp.asarray(self.location + self.scale * jnp.log((1 + s) / (1 - s)), dtype)


class Logistic(Distribution):
    """Logistic distribution: location + scale log(p / (1 - p))."""

    distribution: Literal["logistic"] = named()
    location: Number = stated("number", "median")
    scale: Positive = stated("number > 0", "width")

    def components(self, neutral, factor):
        return Components.of_laws([LogisticLaw(self.location * factor, self.scale * factor)] * len(neutral))


def momentum(learning_rate):
    return optax.sgd(learning_rate, momentum=0.5)


def twice(learning_rate):
    return 2 * learning_rate


def too_light(model, q):
    import jaxmbs as mbs

    return mbs.get(model, "ball.mass") - 3.0


METHODS["own_rule"] = RungeKutta("dopri5")
'''
FILE = """
[mechanism]
name = "drop"
gravity = [0.0, 0.0, -10.0]
[[mechanism.bodies]]
name = "ball"
mass = 2.0
[[mechanism.joints]]
name = "fall"
type = "prismatic"
axis = [0.0, 0.0, 1.0]
parent = "world"
child = "ball"
[[mechanism.events]]
name = "low"
when = {type = "below", body = "ball", value = -0.8}
then = [{type = "jam", joint = "fall"}]
[initial.fall]
v = [3.0]
[simulation]
t_end = 1.0
dt = 0.1
method = "own_rule"
[dispersions."ball.mass"]
distribution = "logistic"
location = 2000.0
scale = 30.0
unit = "g"
[outputs.least]
type = "whole_energy"
reduce = "min"
[outputs.low]
type = "event_time"
event = "low"
[outputs.times]
type = "occurred"
event = "low"
[design]
method = "own_parts.momentum"
learning_rate = 0.1
starts = 2
free = [{type = "parameter", names = ["ball.mass"]}]
objectives = [{type = "function", fn = "own_parts.too_light", configurations = 2}]
"""
COMMANDS = '''
from jaxmbs.cli.common import File, speaking


def weigh(file: File) -> None:
    """Say what all bodies of a file weigh."""
    with speaking() as voice:
        import jaxmbs as mbs

        model = mbs.load(file)
        voice.line(f"{sum(float(mbs.get(model, name + '.mass')) for name in model.body_names):g} kg")


def read_stone(path, trust=False, **options):
    """A file *.stone holds the mass of a falling stone."""
    from pathlib import Path

    import jaxmbs as mbs

    mech = mbs.Mechanism("stone")
    mech.add_body("stone", mass=float(Path(path).read_text(encoding="utf-8")), inertia=(1.0, 1.0, 1.0))
    mech.add_joint("flight", mbs.Free(), "world", "stone")
    return mech.build() if "draft" not in options else mech
'''
POINTS = """
[jaxmbs.elements]
own_parts = own_parts
[jaxmbs.commands]
weigh = own_commands:weigh
lost = no_such_package:lost
[jaxmbs.formats]
stone = own_commands:read_stone
dust = no_such_package:read
"""


@pytest.fixture(scope="module", autouse=True)
def no_trace():
    """Other tests know the library's methods only."""
    yield
    METHODS.pop("own_rule", None)


@pytest.fixture
def beside(tmp_path):
    """A study file with its module beside it."""
    (tmp_path / "own_parts.py").write_text(PARTS, encoding="utf-8")
    (tmp_path / "drop.toml").write_text('modules = ["own_parts.py"]' + FILE, encoding="utf-8")
    return tmp_path / "drop.toml"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package, and a study file that names its parts."""
    (tmp_path / "own-1.0.dist-info").mkdir()
    (tmp_path / "own-1.0.dist-info" / "METADATA").write_text("Name: own\nVersion: 1.0\n", encoding="utf-8")
    (tmp_path / "own-1.0.dist-info" / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    (tmp_path / "own_parts.py").write_text(PARTS, encoding="utf-8")
    (tmp_path / "own_commands.py").write_text(COMMANDS, encoding="utf-8")
    (tmp_path / "drop.toml").write_text(FILE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    catalogue.installed.cache_clear()
    yield tmp_path
    catalogue.installed.cache_clear()
    for name in ("own_parts", "own_commands"):
        importlib.sys.modules.pop(name, None)


def check(study):
    """The ball falls below -0.8 m at (3 + 5) / 10 s, where it is jammed; the draw is the logistic one."""
    history = mbs.study.repeat(study)
    assert history.outputs["low"][0] == pytest.approx(0.8, rel=1e-9)
    assert history.outputs["times"][0] == 1.0
    assert history.outputs["least"][0] == pytest.approx(-2.0 * 10 * 0.8, rel=1e-9)
    assert study.model.structure.events[0].when.body == "ball"
    draw = study.dispersions.of_uniform(jnp.array([0.5]), jnp.float64)
    np.testing.assert_allclose(draw, 2.0 + 0.03 * np.log(3.0), rtol=1e-12)
    assert study.simulation.method == "own_rule" and isinstance(METHODS["own_rule"], RungeKutta)


def test_conditions_actions_integrators_outputs_and_distributions_of_a_module(beside):
    with pytest.raises(InputError, match="--trust"):
        mbs.study.read(beside)
    check(mbs.study.read(beside, trust=True))
    told = json.loads(CliRunner().invoke(app, ["info", str(beside), "--trust", "--json"]).output)
    assert told["dispersions"][0]["distribution"] == "logistic, location 2000, scale 30 g"
    assert told["events"][0]["when"]["type"] == "below" and told["outputs"][0]["type"] == "whole_energy"


GEARS = """
modules = ["own_parts.py"]
[mechanism]
name = "gears"
[[mechanism.bodies]]
name = "frame"
mass = 1.0
[[mechanism.joints]]
name = "slide"
type = "prismatic"
axis = [1.0, 0.0, 0.0]
parent = "world"
child = "frame"
"""


def differentials(path, pairs):
    """A file of shafts on a frame that slides, three for each differential."""
    text = [GEARS]
    for k in range(3 * pairs):
        text.append(f"[[mechanism.bodies]]\nname = 's{k}'\nmass = 1.0\ninertia = [0.3, 0.3, {0.1 + 0.01 * k}]\n")
        text.append(f"com = [0.1, 0.0, 0.0]\n[[mechanism.joints]]\nname = 'j{k}'\ntype = 'revolute'\n")
        text.append(f"axis = [0.0, 0.0, 1.0]\nparent = 'frame'\nchild = 's{k}'\n")
    for k in range(pairs):
        text.append(f"[[mechanism.constraints]]\nname = 'd{k}'\ntype = 'differential'\nshare = 0.3\n")
        text.append(f"left = 'j{3 * k}'\nright = 'j{3 * k + 1}'\ncase = 'j{3 * k + 2}'\n")
    path.write_text("".join(text), encoding="utf-8")
    return mbs.load(path, trust=True)


@pytest.mark.parametrize("pairs", [2, 8])
def test_a_constraint_between_three_joints_as_the_same_one_written_as_a_function(beside, pairs):
    """Of a small mechanism and of a large one, whose joints are eliminated one by one; at rest it needs no assembly."""
    with jax.enable_x64():
        model = differentials(beside.parent / "gears.toml", pairs)
        mech = mbs.Mechanism("written", gravity=(0.0, 0.0, -9.81))
        mech.add_body("frame", mass=1.0)
        mech.add_joint("slide", mbs.Prismatic((1, 0, 0)), "world", "frame")
        for k in range(3 * pairs):
            mech.add_body(f"s{k}", 1.0, (0.1, 0, 0), (0.3, 0.3, 0.1 + 0.01 * k))
            mech.add_joint(f"j{k}", mbs.Revolute((0, 0, 1)), "frame", f"s{k}")

        def fn(model, t, q, v):
            left, right, case = q[1:].reshape(-1, 3).T
            return 0.3 * left + 0.7 * (right + right**3) - case

        mech.add_constraint("all", mbs.Holonomic(fn))
        dice = np.random.default_rng(3)
        q, v, tau = dice.normal(size=(3, model.nv))
        (a, multipliers, residual), want = (mbs.constrained_dynamics(m, q, v, tau) for m in (model, mech.build()))
        for own, other in zip((a, multipliers, residual), want, strict=True):
            np.testing.assert_allclose(own, other, rtol=0, atol=1e-11 * np.abs(other).max())
        assert mbs.constraint_rows(model)["d1"] == slice(1, 2)
        reached, _, status, _ = mbs.assemble(model, q, v, fixed=["j0", "j1"])
        assert status == 0 and reached[3] == pytest.approx(0.3 * q[1] + 0.7 * (q[2] + q[2] ** 3), abs=1e-9)


def test_constraints_between_joints_that_depend_on_one_another_are_found(beside):
    text = (differentials(beside.parent / "gears.toml", 1), (beside.parent / "gears.toml").read_text(encoding="utf-8"))[
        1
    ]
    again = text + "[[mechanism.constraints]]" + text.partition("[[mechanism.constraints]]")[2].replace("'d0'", "'d1'")
    (beside.parent / "gears.toml").write_text(again, encoding="utf-8")
    with pytest.warns(mbs.ModelWarning, match="1 of 2 constraint rows"):
        mbs.load(beside.parent / "gears.toml", trust=True)


def test_a_constraint_on_bodies_and_joints_is_refused():
    @element
    class Both(Constraint):
        """Names a body and a joint."""

        body: str = field(Kind.BODY, "", "a body")
        joint: str = field(Kind.JOINT, "", "a joint")

    mech = mbs.library.double_pendulum()
    mech.add_constraint("both", Both("upper", "elbow"))
    with pytest.raises(ModelError, match="'both': Both has fields for bodies and for joints"):
        mech.build()


def test_those_of_a_package(package):
    check(mbs.study.read(package / "drop.toml"))


def test_saved_they_come_back(beside):
    study = mbs.study.read(beside, trust=True)
    parts = {c.__name__: c for c in study.catalogue.classes if c.__module__.startswith("jaxmbs_modules")}
    again = beside.parent / "again" / "drop.toml"
    again.parent.mkdir()
    saved = mbs.study.save(
        study.model, again, simulation={"t_end": 1.0, "dt": 0.1, "method": "own_rule"},
        dispersions={"ball.mass": parts["Logistic"](distribution="logistic", location=2.0, scale=0.03)},
        outputs={"least": parts["WholeEnergy"](reduce="min"), "low": mbs.study.outputs.EventTime("low"),
                 "times": parts["Occurred"]("low")}, v0=[3.0],
    )  # fmt: skip
    assert (again.parent / "own_parts.py").exists()
    check(saved)


def test_programs_are_known_by_the_method_and_the_distribution_too(package, monkeypatch):
    study = mbs.study.read(package / "drop.toml")
    before, why = content(study)
    assert why == "" and before == content(mbs.study.read(package / "drop.toml"))[0]
    with monkeypatch.context() as other:
        other.setitem(METHODS, "own_rule", RungeKutta("dop853"))
        assert content(study)[0] not in (before, None)
    law = importlib.sys.modules["own_parts"].LogisticLaw
    monkeypatch.setattr(law, "quantile", lambda self, s, dtype: jnp.asarray(self.location + s, dtype))
    assert content(study)[0] not in (before, None)
    built_in = [name for name in METHODS if name not in ("own_rule", "rk4")]
    texts = [(FILE.replace("own_rule", name), name) for name in built_in]
    for text, name in texts:
        (package / f"{name}.toml").write_text(text.partition("[dispersions")[0], encoding="utf-8")
        assert content(mbs.study.read(package / f"{name}.toml", need="simulation"))[0] is not None, name


def test_bases_are_no_types_of_a_file(beside):
    bad = beside.read_text(encoding="utf-8").replace('type = "whole_energy"', 'type = "of_state"')
    beside.write_text(bad, encoding="utf-8")
    with pytest.raises(InputError, match=r"outputs\.least\.type"):
        mbs.study.read(beside, trust=True)


@pytest.mark.parametrize(
    "method, mass", [(optax.sgd(0.1, momentum=0.5), 3.0), (optax.lbfgs(), 3.0), (optax.set_to_zero(), 1.0)]
)
def test_optimisers_of_optax(method, mass):
    """The mass that a function asks for, by steps along the slope, by searches along lines, and by no steps at all."""
    model = mbs.library.double_pendulum().build()
    wish = mbs.design.Function(lambda model, q: mbs.get(model, "lower.mass") - 3.0, configurations=2)
    problem = mbs.design.Problem(
        model, [mbs.design.Free("lower.mass")], [wish], starts=1, method=method, max_steps=60, tolerance=1e-6
    )
    with jax.enable_x64():
        found = mbs.design.synthesize(problem)
    assert found.parameters["lower.mass"] == pytest.approx(mass, abs=1e-3)


def test_an_optimiser_in_a_file(beside):
    problem = read_design(beside, trust=True).problem
    assert isinstance(problem.method, optax.GradientTransformation) and problem.learning_rate == 0.1
    text = beside.read_text(encoding="utf-8")
    for name, said in (("own_parts.momentun", r"did you mean .own_parts\.momentum"), ("own_parts.twice", "optax")):
        beside.write_text(text.replace("own_parts.momentum", name), encoding="utf-8")
        with pytest.raises(InputError, match=said):
            read_design(beside, trust=True)
    with pytest.raises(ModelError, match=r"method .*adm"):
        mbs.design.synthesize(mbs.design.Problem(problem.model, problem.free, problem.objectives, method="adm"))


def test_commands_of_a_package(package):
    run = CliRunner()
    done = run.invoke(app, ["weigh", str(package / "drop.toml")])
    assert done.exit_code == 0 and done.output == "2 kg\n"
    told = run.invoke(app, ["--help"]).output
    assert "Say what all bodies" in told and "lost" in told and "simulate" in told
    told = run.invoke(app, ["lost"])
    assert told.exit_code == 1 and "no_such_package:lost" in told.output
    assert run.invoke(app, ["weight"]).exit_code == 1


def test_the_librarys_own_commands_and_files_search_no_packages(package, monkeypatch):
    def searched(**of):
        raise AssertionError(of)

    catalogue.installed()
    monkeypatch.setattr("importlib.metadata.entry_points", searched)
    assert CliRunner().invoke(app, ["new", "--help"]).exit_code == 0
    assert mbs.load(package / "drop.toml").name == "drop"


def test_formats_of_a_package(package):
    stone = package / "pebble.STONE"
    stone.write_text("0.25", encoding="utf-8")
    assert mbs.get(mbs.load(stone), "stone.mass") == 0.25
    told = CliRunner().invoke(app, ["info", str(stone)])
    assert told.exit_code == 0 and "flight" in told.output
    with pytest.raises(InputError, match="must return a Model"):
        mbs.load(stone, draft=True)
    with pytest.raises(InputError, match=r"no_such_package:read.*cannot be loaded"):
        mbs.load(package / "heap.dust")
