"""FMUs as controllers, against closed forms and against our own motion."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled as compiled_quickly
from jaxmbs.io import fmu_host
from jaxmbs.io.fmu import Law
from tests.cases import relative

fmpy = pytest.importorskip("fmpy", reason="needs pip install 'jaxmbs[fmu]'")
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="makes an FMU for Linux with cc"),
    pytest.mark.filterwarnings("ignore:from_fmu:jaxmbs.ModelWarning"),
]
SOURCE = Path(__file__).with_name("fmu2.c")
DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="{version}" modelName="lag" guid="lag">
  <{kind} modelIdentifier="lag" canGetAndSetFMUstate="{able}" canSerializeFMUstate="{able}"
    canBeInstantiatedOnlyOncePerProcess="{once}"/>
  <ModelVariables>
    {variables}
  </ModelVariables>
  <ModelStructure><Outputs>
    <Unknown index="2"/><Unknown index="6"/><Unknown index="7"/><Unknown index="9"/>
  </Outputs></ModelStructure>
</fmiModelDescription>
"""

VARIABLES = [
    ("u", "input", "continuous", '<Real start="0"/>'), ("x", "output", "continuous", '<Real start="0.25"/>'),
    ("plant.gain", "parameter", "fixed", '<Real start="1"/>'), ("delay", "parameter", "fixed", '<Real start="0.5"/>'),
    ("limit", "parameter", "fixed", '<Real start="1e9"/>'), ("count", "output", "discrete", "<Integer/>"),
    ("high", "output", "discrete", "<Boolean/>"), ("stop", "input", "discrete", '<Boolean start="false"/>'),
    ("label", "output", "discrete", "<String/>"),
]  # fmt: skip


def described(version, kind, able, once):
    """The model description of the FMU of fmu2.c."""
    exact = ' initial="exact"'
    listed = "".join(
        f'<ScalarVariable name="{name}" valueReference="{k}" causality="{causality}" variability="{variability}"'
        f"{exact * (name == 'x')}>{of}</ScalarVariable>"
        for k, (name, causality, variability, of) in enumerate(VARIABLES)
    )
    return DESCRIPTION.format(version=version, kind=kind, able=able, once=once, variables=listed)


@pytest.fixture(scope="module")
def lag(tmp_path_factory):
    """A function that makes the FMU of fmu2.c."""
    folder = tmp_path_factory.mktemp("lag")
    library = folder / "lag.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-lm"], check=True)

    def made(name="lag", kind="CoSimulation", able="true", once="false", version="2.0", system="linux64"):
        path = folder / f"{name}.fmu"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("modelDescription.xml", described(version, kind, able, once))
            archive.write(library, f"binaries/{system}/lag.so")
        return path

    return made


def cart(*controllers):
    """A mass of 2 kg on a rail, pushed by a thruster."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0), thrust=0.0))
    mech.add_sensor("encoder", mbs.Encoder("rail"))
    for k, controller in enumerate(controllers):
        mech.add_controller(f"box{k}" if k else "box", controller)
    return mech.build()


def coupled(x, v, gain, samples, period=0.05, lag=0.5):
    """(x, v, output) at the samples: the mass with a held force is exact, the lag is what the FMU computes."""
    out, y, u = [], 0.25, None
    for k in range(samples + 1):
        if k:
            for _ in range(round(period / 0.01)):
                y += 0.01 * (gain * u - y) / lag
        u = 1.0 - x - 0.5 * v
        out.append((x, v, y))
        x, v = x + v * period + 0.25 * y * period**2, v + 0.5 * y * period
    return np.array(out)


def servo(path, **given):
    """The lag between the error of the place and the force."""
    return mbs.from_fmu(
        path, 0.05, inputs={"u": lambda model, t, q, v, readings: 1.0 - q[0] - 0.5 * v[0]},
        outputs={"x": "push.thrust", "count": ()}, **given,
    )  # fmt: skip


def motion(model, t0):
    """The motion of half a second from t0 on, as a function of its start."""

    def run(x, gain, state, thrust):
        own = mbs.set(model, {"box.plant_gain": gain, "box.state": state, "push.thrust": thrust})
        run = mbs.simulate(own, x[:1], x[1:], t0 + 0.5, dt=0.025, t0=t0)
        return run.q[:, 0], run.v[:, 0], run.states["push.thrust"], run.states["box.state"], run.status

    return run


X, GAINS, NONE = np.array([[0.3, 0.1], [-0.5, 0.0], [0.3, 0.1]]), np.array([1.0, 2.0, 4.0]), np.zeros(6)


def test_a_lag_of_fmi_2_drives_a_mass(lag):
    """A batch, with a parameter by row."""
    run = motion(cart(servo(lag(), parameters={"plant.gain": 1.0})), 0.0)
    q, v, thrust, state, status = compiled_quickly(jax.vmap(run, in_axes=(0, 0, None, None)))(X, GAINS, NONE, 0.0)
    assert not status.any()
    for k, gain in enumerate(GAINS):
        want = coupled(*X[k], gain, 20)
        assert relative(np.stack([q[k, ::2], v[k, ::2]], 1), want[:11, :2]) < 1e-13
        assert relative(thrust[k, :-1:2], want[:10, 2]) < 1e-13
        assert np.array_equal(state[k, :-1:2, 5], 5 * np.arange(10))


def test_an_fmu_has_no_derivatives(lag):
    law, parameters = servo(lag(), parameters={"plant.gain": 1.0}).fn, {"plant_gain": 1.0}
    with pytest.raises(mbs.ModelError, match="an FMU has no derivatives"):
        jax.jvp(lambda x: law(None, 0.0, x[:1], x[1:], jnp.asarray(NONE), {}, parameters), (X[0],), (X[0],))


@pytest.mark.slow
def test_a_run_goes_on_from_the_state_of_its_fmu(lag):
    model = cart(servo(lag(), parameters={"plant.gain": 1.0}))
    run = motion(model, 0.0)
    with pytest.raises(mbs.ModelError, match="an FMU has no derivatives"):
        jax.jvp(lambda x: run(x, 1.0, NONE, 0.0)[0], (X[0],), (X[0],))
    q, v, thrust, state, _ = jax.jit(run)(X[1], 2.0, NONE, 0.0)
    end = jnp.stack([q[-1], v[-1]])
    further = jax.jit(motion(model, 0.5))(end, 2.0, state[-1], thrust[-1])
    assert relative(further[0][::2], coupled(*X[1], 2.0, 20)[10:, 0]) < 1e-13


def host(path, **given):
    """The host of an FMU: the lag with the input u, and one of its rows by steps."""
    law = servo(path, **given).fn
    assert isinstance(law, Law)
    return law.host


ZERO = np.zeros((1, 4))


def walk(unit, inputs, name=ZERO, start=0):
    """The (state, output) after each of these inputs, at 0, 0.05, ... s."""
    out = []
    for k, u in enumerate(inputs, start):
        name, y = unit(np.array([0.05 * k]), name, np.array([[u]]), np.zeros((1, 0)))
        out.append((name, y[0]))
    return out


@pytest.mark.parametrize(("able", "once"), [("true", "false"), ("false", "false"), ("false", "true"), ("true", "true")])
def test_a_state_can_always_be_gone_back_to(lag, monkeypatch, able, once):
    """From states that are kept, from those that are lost, and by instances that cannot keep any; two rows at once."""
    unit = host(lag(f"back_{able}_{once}", able=able, once=once))
    first = walk(unit, [1.0, 2.0, 3.0, 4.0])
    other = walk(unit, [-1.0, 5.0], first[1][0], start=2)
    y = 0.25
    for _ in range(5):
        y += 0.01 * (2.0 - y) / 0.5
    left, right = y, y
    for _ in range(5):
        left, right = left + 0.01 * (3.0 - left) / 0.5, right + 0.01 * (-1.0 - right) / 0.5
    assert first[3][1][0] != other[1][1][0] and first[2][1][0] == other[0][1][0]
    before = walk(unit, [1.0])[0]
    assert np.array_equal(before[0], first[0][0]) and before[1][0] == 0.25
    monkeypatch.setattr(fmu_host, "STATES", 1)
    third = walk(unit, [-1.0, 5.0, 6.0], first[1][0], start=2)
    again = walk(unit, [3.0, 4.0, 7.0], first[1][0], start=2)
    assert np.array_equal(third[1][0], other[1][0]) and np.array_equal(again[1][0], first[3][0])
    for found, u in ((third[2], (2.0, -1.0, 5.0)), (again[2], (2.0, 3.0, 4.0))):
        y = 0.25
        for given in (1.0, *u):
            for _ in range(5):
                y += 0.01 * (given - y) / 0.5
        assert found[1][0] == pytest.approx(y, rel=1e-14)


def test_instants_at_which_nothing_is_due(lag):
    unit = host(lag())
    name, _ = walk(unit, [1.0])[0]
    for t in (0.0, 0.02, 0.0495):
        found, y = unit(np.array([t]), name, np.array([[1.0]]), np.zeros((1, 0)))
        assert np.isnan(found).all() and np.isnan(y).all()
    late, y = unit(np.array([0.15]), name, np.array([[1.0]]), np.zeros((1, 0)))
    assert y[0, 1] == 15 and np.isfinite(late).all()
    single, _ = unit(
        np.array([0.15], np.float32), name.astype(np.float32), np.ones((1, 1), np.float32), np.zeros((1, 0))
    )
    assert single.dtype == np.float32 and np.array_equal(single, late)
    with pytest.raises(mbs.ModelError, match=r"was sampled up to 0\.15 s and cannot go back to 0\.05 s"):
        unit(np.array([0.05]), late, np.array([[1.0]]), np.zeros((1, 0)))
    with pytest.raises(mbs.ModelError, match="a state of it is named that is not kept"):
        unit(np.array([0.05]), np.array([[1.0, 2, 3, 4]]), np.array([[1.0]]), np.zeros((1, 0)))


def test_a_step_that_is_refused_ends_its_row(lag):
    unit = host(lag("limited"), parameters={"limit": 0.3})
    inputs, limits = np.array([[9.0], [0.0]]), np.array([[0.3], [0.3]])
    name, _ = unit(np.zeros(2), np.zeros((2, 4)), inputs, limits)
    name, _ = unit(np.full(2, 0.05), name, inputs, limits)
    with pytest.warns(mbs.ModelWarning, match="fmi2DoStep failed with status 3.*NOT_FINITE"):
        name, y = unit(np.full(2, 0.1), name, inputs, limits)
    assert np.isnan(y[0]).all() and np.isfinite(y[1]).all()


@pytest.mark.slow
def test_the_status_of_a_motion_whose_fmu_refuses(lag):
    model = cart(servo(lag("ends"), parameters={"limit": 0.3}))
    with pytest.warns(mbs.ModelWarning, match="NOT_FINITE"):
        run = mbs.simulate(model, [-3.0], [0.0], 1.0, dt=0.05)
    assert run.status == mbs.Status.NOT_FINITE


@pytest.mark.cpu
@pytest.mark.slow
def test_our_own_fmu_comes_back_as_our_own_motion(tmp_path):
    """A pendulum in an FMU, pulled by a sensor, beside the same pendulum, simulated with the inputs held."""
    pendulum = mbs.library.double_pendulum().build()
    q, v = np.array([0.3, -0.2]), np.array([1.0, 0.5])
    mbs.export(pendulum, (q, v), tmp_path / "pendulum.fmu", kind="fmu", dt=0.01, parameters=["lower.mass"])
    box = mbs.from_fmu(
        tmp_path / "pendulum.fmu", 0.05,
        inputs={"tau.elbow.angle_rate": lambda model, t, q, v, readings: readings["encoder"][1],
                "tau.shoulder.angle_rate": 0.1},
        outputs={"elbow.angle": "push.thrust", "shoulder.angle_rate": []}, reads="encoder",
        parameters={"lower.mass": 3.0, "elbow.angle": -0.3},
    )  # fmt: skip
    run = mbs.simulate(cart(box), [0.1], [0.2], 1.0, dt=0.05)
    own, x, rate = mbs.set(pendulum, {"lower.mass": 3.0}), 0.1, 0.2
    q, pulled = np.array([0.3, -0.3]), None
    for k in range(20):
        if k:
            part = mbs.simulate(own, q, v, 0.05, dt=0.01, tau=np.array([0.1, pulled]))
            q, v = part.q[-1], part.v[-1]
        pulled = rate
        assert relative(run.states["box.state"][k, 4:], np.array([q[1], v[0]])) < 1e-12
        assert relative(np.array([run.q[k, 0], run.v[k, 0]]), np.array([x, rate])) < 1e-12
        x, rate = x + rate * 0.05 + 0.25 * q[1] * 0.05**2, rate + 0.5 * q[1] * 0.05


def test_it_warns_of_the_cost_and_takes_sensors_and_constants(lag):
    with pytest.warns(mbs.ModelWarning, match="it runs on the host.*no derivatives"):
        box = mbs.from_fmu(lag(), 0.1, inputs={"u": "encoder", "stop": 1}, outputs={"high": "push.thrust"}, delay=0.01)
    assert box.reads == ("encoder",) and box.writes == ("push.thrust",) and box.delay == 0.01
    model = cart(box)
    assert model.structure.table["box.state"][0].shape == (5,)
    with pytest.raises(mbs.ModelError, match=r"takes one number and is 'encoder', but .*2 numbers; .*'encoder\[0\]'"):
        mbs.simulate(model, [0.0], [0.0], 0.1, dt=0.05)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"inputs": {"w": 1.0}}, "inputs.w: there is no such variable; inputs: u, stop"),
        ({"inputs": {"x": 1.0}}, "inputs.x: is of causality output; inputs: u, stop"),
        ({"outputs": {"u": ()}}, "outputs.u: is of causality input; outputs: x, count, high"),
        ({"outputs": {"label": ()}}, "outputs.label: is of type String"),
        ({"parameters": {"count": 1}}, "parameters.count: is of causality output"),
        ({"parameters": {"plant.gain": [1.0, 2.0]}}, "the parameter 'plant.gain' is .*; pass one number"),
        ({"inputs": {"u": None}}, "the input 'u' is None; pass a function, a number or the name of a sensor"),
        ({"inputs": {"u": lambda q: q}}, "the input 'u' takes"),
        ({"period": 0.0}, "period is 0.0"),
        ({"kind": "ModelExchange"}, "has no co-simulation"),
        ({"version": "4.0"}, "FMI version: 4.0"),
        ({"system": "win64"}, ".*-linux, but for win64"),
    ],
)
def test_what_cannot_be_used_is_refused(lag, change, says):
    made = {k: v for k, v in change.items() if k in ("kind", "version", "system")}
    given = {"period": 0.1, "outputs": {"x": ()}, **{k: v for k, v in change.items() if k not in made}}
    with pytest.raises(mbs.ModelError, match=says):
        mbs.from_fmu(lag("wrong", **made), given.pop("period"), **given)


def test_files_that_are_no_fmu(tmp_path, lag, monkeypatch):
    (tmp_path / "text.fmu").write_text("text", encoding="utf-8")
    for name, says in (("none.fmu", "there is no such file"), ("text.fmu", "is not an FMU")):
        with pytest.raises(mbs.ModelError, match=says):
            mbs.from_fmu(tmp_path / name, 0.1, outputs={})
    monkeypatch.setitem(sys.modules, "fmpy", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'jaxmbs\[fmu\]'"):
        mbs.from_fmu(lag(), 0.1, outputs={})


def test_parameters_have_names_of_the_model(lag):
    box = mbs.from_fmu(lag(), 0.1, outputs={"x": ()}, parameters={"plant.gain": 2.0, "delay": 0.2, "x": 0.5})
    assert box.parameters == {"plant_gain": 2.0, "delay_": 0.2, "x": 0.5}
