"""Every built-in objective: its gradient against differences; what it is for, on a mechanism where that is known."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design import Factor, Free, MassDistribution, Problem, Status, synthesize
from jaxmbs.design.file import read
from jaxmbs.design.objectives.base import weighted
from jaxmbs.design.problem import Prepared
from jaxmbs.design.samples import draws_of, moved, require_effect
from jaxmbs.study import read as read_study
from jaxmbs.study import repeat

EXAMPLES = Path(__file__).parents[2] / "examples"
D = mbs.design


def double(gravity=(0.0, 0.0, -9.81)):
    return mbs.library.double_pendulum(gravity=gravity).build()


def measured(model):
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 6, model.nv))
    return {"q": q, "v": v, "a": a, "tau": np.zeros((6, model.nv))}


def linkage():
    return read(EXAMPLES / "coupler_curve.toml").problem


def wing(**options):
    problem = read(EXAMPLES / "wing_synthesis.toml").problem
    return replace(
        problem, study=replace(problem.study, simulation=problem.study.simulation.model_copy(update=options))
    )


def problems():
    lower = [MassDistribution("lower")]
    yield "configuration_independence", Problem(double(), lower, [D.ConfigurationIndependence(configurations=3)])
    yield "decoupling", Problem(double(), lower, [D.Decoupling(configurations=3)])
    yield "no_base_reaction", Problem(double(), lower, [D.NoBaseReaction("elbow", configurations=3)])
    yield "static_balance", Problem(double(), lower, [D.StaticBalance(configurations=3)])
    yield "measured_torques", Problem(double(), lower, [D.MeasuredTorques(measured(double()), noise=0.1)])
    yield "curve_through_points", linkage()


@pytest.mark.parametrize("name, problem", [pytest.param(n, p, id=n) for n, p in problems()])
def test_gradients(name, problem):
    gradients(replace(problem, starts=2), 1e-6, 1e-6)


def gradients(problem, h, exact):
    """Directional derivative of all residuals against central differences."""
    prepared = Prepared(problem)
    x, data = prepared.starts()[1], prepared.data()
    along = np.random.default_rng(1).standard_normal(len(x))
    both = compiled(lambda x: jax.jvp(lambda x: prepared.residuals(x, data)[0], (x,), (along,)))
    ends = [np.asarray(both(x + s * h * along)[0]) for s in (1, -1)]
    slope = np.asarray(both(x)[1])
    assert np.abs(slope).max() > 1e-6
    assert np.allclose(slope, (ends[0] - ends[1]) / (2 * h), rtol=exact, atol=exact * np.abs(slope).max())


@pytest.mark.slow
def test_gradients_through_events():
    """The time of the last latch and the loads of both."""
    gradients(replace(wing(t_end=30.0, dt=0.1), starts=2, method="constrained"), 1e-5, 1e-4)


@pytest.mark.slow
def test_decoupled_links():
    """A pendulum on a pendulum decouples when the lower one balances about its hinge and has no inertia."""
    model = mbs.set(double((0, 0, 0)), {"lower.inertia": (0.1, 0.1, 0.1)})
    design = synthesize(
        Problem(model, [Free("lower.com", components=(0, 2))], [D.Decoupling(configurations=4)], starts=2)
    )
    assert design.status is Status.INFEASIBLE  # its inertia about the elbow stays in A_12
    constant = synthesize(
        Problem(
            model, [Free("lower.com", components=(0, 2))], [D.ConfigurationIndependence(configurations=4)], starts=2
        )
    )
    assert constant.status is Status.MET and np.abs(constant.parameters["lower.com"]).max() < 1e-10


@pytest.mark.slow
def test_a_satellite_whose_arm_does_not_turn_it():
    """A balanced arm still turns the satellite by its inertia; its centre on the hinge is the best there is."""
    mech = mbs.Mechanism("satellite")
    mech.add_body("bus", mass=10.0, inertia=(1.0, 1.0, 1.0))
    mech.add_body("arm", mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01))
    mech.add_joint("flight", mbs.Planar(), parent="world", child="bus")
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 0, 1)), parent="bus", child="arm", parent_pose=mbs.Pose((0.5, 0, 0)))
    balanced = D.NoBaseReaction("flight", configurations=4)
    design = synthesize(Problem(mech.build(), [Free("arm.com", components=(0, 1))], [balanced], starts=2))
    assert design.status is Status.INFEASIBLE
    A = np.asarray(mbs.mass_matrix(design.model, jnp.array([0.1, 0.2, 0.3, 0.7])))
    assert np.abs(A[:2, 3]).max() < 0.05 and A[2, 3] > 0.005


@pytest.mark.slow
def test_a_factor_finds_a_mass():
    """The torque that holds a horizontal arm tells its mass."""
    model = double()
    q = np.array([[np.pi / 2, 0.0]])
    data = {"q": q, "v": 0 * q, "a": 0 * q}
    heavy = mbs.set(model, {"lower.mass": 2.5 * mbs.get(model, "lower.mass")})
    data["tau"] = np.asarray(mbs.inverse_dynamics(heavy, q[0], 0 * q[0], 0 * q[0]))[None]
    factor = Factor(["lower.mass", "lower.inertia"], low=0.1, high=10.0)
    design = synthesize(Problem(model, [factor], [D.MeasuredTorques(data, noise=0.01)], starts=2))
    assert design.status is Status.MET
    assert np.isclose(design.parameters["lower.mass"], 2.5 * mbs.get(model, "lower.mass"), rtol=1e-9)


@pytest.mark.slow
def test_the_coupler_curve_goes_through_its_points():
    """Assembled: at the angle of the crank that was found the closed loop puts the pen on the point."""
    problem = replace(linkage(), starts=8, max_steps=60)
    design = synthesize(problem)
    assert design.status is Status.MET
    prepared, model = Prepared(problem), design.model
    angles = prepared.own(design.x[design.best])[0]
    for q, x, y in zip(angles, problem.objectives[0].x, problem.objectives[0].y, strict=True):
        closed, _, status, _ = mbs.assemble(model, np.asarray(q), fixed="crank_hinge")
        assert status == mbs.Status.OK
        pen = mbs.body_poses(model, closed).position[model.body_names.index("pen")]
        assert np.allclose(pen, [x, y, 0.0], atol=1e-8)


@pytest.mark.slow
def test_identified_parameters_and_their_confidence():
    """Nine base parameters of the planar arm [T 3], each within four of its standard deviations."""
    spec = importlib.util.spec_from_file_location("identify_arm", EXAMPLES / "identify_arm.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    truth = mbs.library.three_link_arm().build()
    design = example.identified(truth)
    assert design.status is Status.UNDETERMINED and design.findings.rank == 9 and len(design.undetermined) == 18
    real = {}
    for k in (1, 2, 3):
        m, c, I = (np.asarray(mbs.get(truth, f"body_{k}.{f}")) for f in ("mass", "com", "inertia"))
        real |= {f"body_{k}.h_x": m * c[0], f"body_{k}.h_y": m * c[1], f"body_{k}.I_zz": I[2, 2] + m * (c @ c)}
    for r in design.relations:
        miss = abs(r.value - sum(f * real[name] for name, f in r.coefficients.items()))
        assert 0 < miss < 4 * r.std < 0.02


@pytest.mark.slow
def test_the_wing_unfolds_in_time():
    design = synthesize(wing())
    assert design.status is Status.LEAST
    assert max(design.largest[f"event_time_{k}"] for k in (1, 2, 3)) < 1e-6
    loads = [f"latch_load_{k}" for k in (1, 2)]
    assert sum(design.largest[n] ** 2 for n in loads) < 0.5 * sum(design.before[n] ** 2 for n in loads)


@pytest.mark.slow
def test_the_pushers_compensate_an_unbalanced_payload():
    """The rate gets a half or less, the velocity stays, and other samples than those of the search agree."""
    from jaxmbs.design.comparison import compare

    problem = read(EXAMPLES / "separation_synthesis.toml").problem
    design = synthesize(replace(problem, starts=1))
    found = {row.what: (row.before, row.after) for row in compare(design, 2000, problem.study).rows}
    before, after = found["tip_off_rate, median"]
    assert after < 0.5 * before
    before, after = found["probability of tip_off_rate < 1 deg/s"]
    assert before < 0.5 < 0.85 < after
    assert found["separation_velocity, median"][1] > 1.29


CART = """
criteria = ["-1 m < travel < 2 m", "|travel| < 1 m", "travel > 0.5 m"]
[mechanism]
bodies = [{name = "cart", mass = 1.0}]
joints = [{name = "rail", type = "prismatic", axis = [1, 0, 0], parent = "world", child = "cart"}]
[outputs.travel]
type = "joint_position"
joint = "rail"
reduce = "final"
[simulation]
t_end = 0.1
dt = 0.05
"""


@pytest.mark.parametrize("criterion", [0, 1, 2])
def test_the_smoothed_probability_of_failure(criterion, tmp_path):
    """Tends to the share of samples that miss the criterion, whatever its form; its slope is that of fewer failures."""
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study, x = read_study(tmp_path / "cart.toml", need="mechanism"), np.linspace(-2.95, 2.95, 60)

    def smoothed(x, width):
        failure = D.Failure(criterion, width=width)
        return failure.residuals(failure.taken(SimpleNamespace(outputs={"travel": x}), study), None)[0]

    missed = 1 - np.mean(study.criteria[criterion].met(x))
    assert 0.3 < missed < 0.9 and smoothed(x, 1e-4) == pytest.approx(missed, abs=1e-3)
    assert abs(jax.grad(smoothed)(x - 50.0, 0.2).sum()) > 1e-6  # far from every bound it still has a slope
    along = np.random.default_rng(0).normal(size=60)
    ends = [float(smoothed(x + h * along, 0.2)) for h in (1e-5, -1e-5)]
    assert jax.grad(smoothed)(x, 0.2) @ along == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("bound, extreme", [({"at_most": 1.0}, np.max), ({"at_least": 1.0}, np.min)])
def test_the_smooth_worst_is_near_the_worst(bound, extreme):
    """Within ln(samples) over the sharpness, on the safe side of the mean."""
    x = np.random.default_rng(2).normal(3.0, 0.4, 200)
    worst = D.OutputValue("travel", statistic="worst", samples=200, **bound)
    found = float(worst.margins(x[:, None], None)[0])
    exact = float(1.0 - extreme(x)) if "at_most" in bound else float(extreme(x) - 1.0)
    assert 0 <= found - exact < np.log(200) / 20 * x.std()
    assert float(worst.residuals(x[:, None], None)[0]) == pytest.approx(max(-found, 0.0), abs=1e-14)


def test_several_events_count_by_the_latest_and_the_largest():
    motions = SimpleNamespace(
        time={"left": np.array([1.0, 5.0]), "right": np.array([2.0, 3.0])},
        lost={"left": np.array([8.0, 0.5]), "right": np.array([2.0, 0.0])},
    )
    assert np.array_equal(D.EventTime("left right").taken(motions, None), [[2.0], [5.0]])
    loads = D.LatchLoad("left right", stiffness=4.0).taken(motions, None)
    np.testing.assert_allclose(loads, [[8.0], [2.0]], rtol=1e-14)


def test_weights_mean_the_same_whatever_the_number_of_residuals():
    objective = D.StaticBalance(weight=3.0)
    for n in (1, 4, 25):
        assert np.linalg.norm(weighted(objective, 0.1 * np.ones(n))) == pytest.approx(0.3)


def test_a_driver_has_the_given_angles():
    curve = D.CurveThroughPoints("lower", x=(0.3, 0.5), y=(0.0, 0.1), driver="elbow", angles=(0.2, 0.7))
    instances = curve.data(None)
    found = curve.measure(double(), instances[1], jnp.array([0.4, 0.9]))
    assert found[-1] == pytest.approx(0.9 - 0.7)


DISPERSED = CART.replace("dt = 0.05", 'dt = 0.1\nmethod = "dopri5"\ntolerance = 1e-10').replace(
    "[outputs.travel]",
    """forces = [
  {name = "coil", type = "linear_spring", body_a = "world", body_b = "cart", point_a = [-1, 0, 0], stiffness = 2e3},
]
[[mechanism.events]]
name = "gate"
when = {type = "joint_reaches", joint = "rail", value = -0.1}
then = [{type = "disable", name = "coil"}]
[dispersions."cart.mass"]
distribution = "normal"
mean = 1.0
std = 0.1
apply = "multiply"
[outputs.gate]
type = "event_time"
event = "gate"
[outputs.travel]""",
)


@pytest.mark.slow
def test_samples_move_as_in_their_study(tmp_path):
    """By its method, its draws, its outputs, times of events among them."""
    (tmp_path / "cart.toml").write_text(DISPERSED, encoding="utf-8")
    study = read_study(tmp_path / "cart.toml", need="mechanism")
    found = jax.jit(lambda draws: moved(study, study.model, draws))(draws_of(study, 3))
    for name, x in repeat(study, [0, 1, 2]).outputs.items():
        assert np.ptp(x) > 1e-4 and np.allclose(found.outputs[name], x, rtol=1e-12)
    path = tmp_path / "plan.toml"
    path.write_text(DISPERSED + '[study]\ndesign = "sobol"\n', encoding="utf-8")
    with pytest.raises(
        mbs.ModelError, match=('design = "sobol": its samples depend on their number, which a search chooses itself')
    ):
        require_effect(read_study(path, need="mechanism"), [])
