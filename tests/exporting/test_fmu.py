"""FMUs, run by FMPy, against the motion of the library."""

import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative
from tests.exporting.instances import initialized
from tests.exporting.test_programs import latching, needs_compiler, pendulum, pytestmark  # noqa: F401
from tests.simulate.test_controllers import cart

fmpy = pytest.importorskip("fmpy", reason="needs pip install 'jaxmbs[export]'")
START = np.array([0.3, -0.2]), np.array([1.0, 0.5])


def summing(model, t, q, v, state, readings):
    return state + q[0], {"push.thrust": -3.0 * q[0] - v[0] - 0.1 * state[0]}


def sampled():
    """A cart, pushed by a controller that samples and remembers."""
    return cart(mbs.Controller(summing, 0.1, delay=0.05, state=np.zeros(1), writes="push.thrust"))


def made(path, model, start, **given):
    mbs.export(model, start, path, kind="fmu", **given)
    return str(path)


def rows(found, names):
    return np.array([found[name] for name in names]).T


@needs_compiler
@pytest.mark.parametrize(
    ("model", "start"),
    [(pendulum()[0], START), (latching(), (np.zeros(1), np.zeros(1))), (sampled(), (np.ones(1), np.zeros(1)))],
    ids=["pendulum", "event", "controller"],
)
def test_co_simulation_is_our_own_motion(tmp_path, model, start):
    file = made(tmp_path / "it.fmu", model, start, dt=0.01)
    from fmpy.validation import validate_fmu

    assert validate_fmu(file) == []
    names = [x.name for x in (*model.coordinates, *model.speeds)]
    given = {"fmi_type": "CoSimulation", "stop_time": 1.0, "output": names}
    own = mbs.simulate(model, *start, 1.0, dt=0.01)
    found = fmpy.simulate_fmu(file, output_interval=0.01, **given)
    assert relative(rows(found, names), np.concatenate([own.q, own.v], axis=1)) < 1e-12
    coarse = fmpy.simulate_fmu(file, output_interval=0.05, **given)  # five steps of the FMU each
    assert relative(rows(coarse, names), rows(found, names)[::5]) < 1e-12
    given = {"fmi_type": "ModelExchange", "relative_tolerance": 1e-11, "stop_time": 1.0, "output": names}
    exchanged = fmpy.simulate_fmu(file, output_interval=0.05, record_events=False, **given)
    fine = mbs.simulate(model, start[0], start[1], 1.0, dt=1e-3, save_every=50)
    assert relative(rows(exchanged, names), np.concatenate([fine.q, fine.v], axis=1)) < 1e-8


@needs_compiler
def test_model_exchange_parameters_and_start_values(tmp_path):
    model, _, _ = pendulum()
    file = made(tmp_path / "pendulum.fmu", model, START, dt=0.01, parameters=("lower.com", "lower.mass"))
    names = [x.name for x in model.coordinates]
    given = {"fmi_type": "ModelExchange", "solver": "CVode", "relative_tolerance": 1e-10, "stop_time": 1.0}
    changed = {"lower.mass": 3.0, "elbow.angle": 0.5}
    found = fmpy.simulate_fmu(file, output_interval=0.1, output=names, start_values=changed, **given)
    own = mbs.simulate(mbs.set(model, {"lower.mass": 3.0}), [0.3, 0.5], START[1], 1.0, dt=1e-3, save_every=100)
    assert relative(rows(found, names), own.q) < 1e-6
    pushed = np.array([(0.0, 0.3), (1.0, 0.3)], dtype=[("time", float), ("tau.elbow.angle_rate", float)])
    found = fmpy.simulate_fmu(
        file, fmi_type="CoSimulation", stop_time=1.0, output_interval=0.01, output=names, input=pushed
    )
    own = mbs.simulate(model, *START, 1.0, dt=0.01, tau=np.array([0.0, 0.3]))
    assert relative(rows(found, names), own.q) < 1e-12


@pytest.fixture
def instance(tmp_path, request):
    """An instance of the pendulum's FMU, and its value references."""
    model, _, _ = pendulum()
    file = made(tmp_path / "pendulum.fmu", model, START, dt=0.01)
    fmu, said = initialized(file, request.param.capitalize(), tmp_path / "unzipped")
    yield fmu, {v.name: v.valueReference for v in said.modelVariables}, said
    fmu.terminate()
    fmu.freeInstance()


@needs_compiler
@pytest.mark.parametrize("instance", ["model"], indirect=True)
def test_directional_derivatives(instance):
    fmu, references, _ = instance
    names = ["shoulder.angle", "elbow.angle", "shoulder.angle_rate", "elbow.angle_rate"]
    knowns, unknowns = [references[n] for n in names], [references[f"der({n})"] for n in names]
    seed = [0.1, -0.2, 0.3, 0.4]
    found = fmu.getDirectionalDerivative(unknowns, knowns, seed)

    def rates(h):
        fmu.setContinuousStates((np.concatenate(START) + h * np.array(seed)).ctypes.data_as(fmpy.fmi3.POINTER(
            fmpy.fmi3.c_double)), 4)  # fmt: skip
        return np.array(fmu.getFloat64(unknowns))

    assert relative(found, (rates(1e-5) - rates(-1e-5)) / 2e-5) < 1e-8
    force = references["tau.elbow.angle_rate"]
    slope = fmu.getDirectionalDerivative(unknowns, [force], [1.0])
    model, _, _ = pendulum()
    fmu.setContinuousStates(np.concatenate(START).ctypes.data_as(fmpy.fmi3.POINTER(fmpy.fmi3.c_double)), 4)
    slope = fmu.getDirectionalDerivative(unknowns, [force], [1.0])
    assert relative(slope[2:], np.linalg.inv(mbs.mass_matrix(model, START[0]))[:, 1]) < 1e-10


@needs_compiler
@pytest.mark.parametrize("instance", ["slave"], indirect=True)
def test_a_state_can_be_kept_and_set_again(instance):
    fmu, references, _ = instance
    angle = [references["elbow.angle"]]

    def go(t):
        fmu.doStep(t, 0.1)
        return fmu.getFloat64(angle)

    go(0.0)
    state = fmu.getFMUState()
    bytes_ = fmu.serializeFMUState(state)
    first = go(0.1)
    fmu.setFMUState(state)
    assert go(0.1) == first
    again = fmu.deserializeFMUState(bytes_)
    fmu.setFMUState(again)
    assert go(0.1) == first


@needs_compiler
def test_a_run_that_ends_within_a_step(tmp_path):
    """Names that FMI does not structure, and the time of the end."""
    mech = mbs.Mechanism("fall", gravity=(0, 0, -10.0))
    mech.add_body("ball", 1.0, inertia=(1, 1, 1))
    mech.add_joint("left wheel", mbs.Prismatic((0, 0, 1)), "world", "ball")
    mech.add_event("ground", mbs.JointReaches("left wheel", 0.0, direction="down"), mbs.Finish())
    file = made(tmp_path / "fall.fmu", mech.build(), (np.array([1.0]), np.zeros(1)), dt=0.03)
    from fmpy.validation import validate_fmu

    assert validate_fmu(file) == []
    fmu, said = initialized(file, "Slave", tmp_path / "unzipped")
    _, ends, _, reached = fmu.doStep(0.0, 1.0)
    assert ends and reached == pytest.approx(0.2**0.5, abs=1e-12)
    exchanged = fmpy.simulate_fmu(file, fmi_type="ModelExchange", relative_tolerance=1e-10, stop_time=1.0)
    assert exchanged["time"][-1] == pytest.approx(0.2**0.5, abs=1e-8)
    place = next(v.valueReference for v in said.modelVariables if v.name.endswith("displacement"))
    assert abs(fmu.getFloat64([place])[0]) < 1e-12
    fmu.terminate()
    fmu.freeInstance()


@pytest.mark.slow
@needs_compiler
def test_the_solar_array_latches_as_in_a_study(tmp_path):
    study = mbs.study.read("examples/solar_array_deployment.toml")
    model = study.model
    file = made(tmp_path / "array.fmu", model, (study.q0, study.v0), dt=0.01)
    names = [x.name for x in (*model.coordinates, *model.speeds)]
    found = fmpy.simulate_fmu(file, stop_time=20.0, output_interval=0.01, output=names)
    own = mbs.simulate(model, study.q0, study.v0, 20.0, dt=0.01)
    assert own.events.time[0] < 20
    assert relative(rows(found, names), np.concatenate([own.q, own.v], axis=1)) < 1e-12


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fn": np.sin}, "is not a model"),
        ({"args": (np.zeros(3), np.zeros(2))}, r"args have the shapes \[\(3,\), \(2,\)\]; pass \(q, v\)"),
        ({"dt": 0.0}, "dt is 0.0"),
        ({"parameters": ("mass",)}, "the model has no parameter 'mass'"),
        ({"parameters": ("lower.mass", "lower.mass")}, "'lower.mass' is a variable of the FMU already"),
        ({"args": (np.array([np.nan, 0]), np.zeros(2))}, "numbers that are not finite"),
    ],
)
def test_what_makes_no_fmu_is_refused(tmp_path, change, says):
    given = {"fn": pendulum()[0], "args": START, "path": tmp_path / "x.fmu", "kind": "fmu", **change}
    with pytest.raises(mbs.ModelError, match=says):
        mbs.export(**given)
