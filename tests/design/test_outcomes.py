"""How searches end: met, infeasible, escaping, bound; the same optimum as SciPy's; kept and gone on with."""

from dataclasses import replace
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares, minimize

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design import Factor, Free, MassDistribution, Problem, Status, synthesize
from jaxmbs.design.certificate import Envelope, certificate, distance, on_a_ball
from jaxmbs.design.problem import _PROCESS, Prepared
from jaxmbs.design.search import search
from jaxmbs.design.synthesize import best_start, plain
from jaxmbs.model import ModelError
from jaxmbs.study import read
from tests.study.conftest import CART

WEIGHTLESS = {"gravity": (0.0, 0.0, 0.0)}
INDEPENDENT = mbs.design.ConfigurationIndependence(configurations=8)


def arm():
    return mbs.set(mbs.library.three_link_arm().build(), WEIGHTLESS)


def bodies(*numbers, **options):
    return [MassDistribution(f"body_{k}", **options) for k in numbers]


def static_moments(model):
    """Of body 3 about its hinge, and of both outer bodies about that of body 2, in the plane [T 5]."""
    m2, m3 = (mbs.get(model, f"body_{k}.mass") for k in (2, 3))
    c2, c3 = (mbs.get(model, f"body_{k}.com")[:2] for k in (2, 3))
    return np.array([m3 * c3, m2 * c2 + m3 * mbs.get(model, "q_3.parent_pose.position")[:2]])


@pytest.fixture(scope="module")
def planar():
    return synthesize(Problem(arm(), bodies(2, 3), [INDEPENDENT], starts=4, spread=0.3))


def test_planar_arms_are_always_possible(planar):
    assert planar.status is Status.MET and np.all(planar.statuses == 0)
    assert np.abs(static_moments(planar.model)).max() < 1e-10
    assert planar.before["configuration_independence"] > 0.1 > 1e-10 > planar.largest["configuration_independence"]
    said = [r.text for r in planar.relations]
    assert "body_2.h_x = -body_3.mass q_3.parent_pose.position.x" in said and len(said) == 4


def test_parameters_that_are_not_free_stay(planar):
    names = set(planar.problem.model.parameter_names) - set(planar.parameters)
    assert names and all(np.array_equal(mbs.get(planar.model, n), mbs.get(arm(), n)) for n in names)
    assert set(planar.parameters) == {f"body_{k}.{f}" for k in (2, 3) for f in ("com", "inertia")}


@pytest.mark.slow
def test_inside_an_envelope_it_may_be_impossible():
    """Body 2 would need its centre of mass at (-0.25, -0.0625) m: half-axes of 0.1 m end before, and that is what binds."""
    free = [*bodies(2, center=(0.2, 0.05, 0.0), half_axes=(0.1, 0.1, 0.1)), *bodies(3)]
    design = synthesize(Problem(arm(), free, [INDEPENDENT], starts=2, max_steps=400))
    assert design.status is Status.IMPOSSIBLE and not design.status.success and design.findings is None
    proved = (
        f"no bodies inside the envelopes meet the conditions, whose norm is at least {design.certificate:.2g} (proved)"
    )
    assert design.reason.startswith(proved) and design.certificate > 1e-3
    assert "body_2 fills its envelope" in design.reason and "max_steps" not in design.reason
    com = design.parameters["body_2.com"]
    assert np.linalg.norm((com - [0.2, 0.05, 0.0]) / 0.1) < 1


def test_what_is_impossible_stays_so_whatever_else_is_wanted():
    """Lightness beside the conditions: these alone prove it."""
    free = [*bodies(2, center=(0.2, 0.05, 0.0), half_axes=(0.1, 0.1, 0.1), mass=(0.5, 2.0))]
    light = mbs.design.Function(lambda m, q: jnp.atleast_1d(mbs.get(m, "body_2.mass")), configurations=1, goal="lowest")
    options = {"starts": 1, "max_steps": 20}
    alone = synthesize(Problem(arm(), free, [INDEPENDENT], **options))
    both = synthesize(Problem(arm(), free, [INDEPENDENT, light], method="constrained", **options))
    assert alone.status is both.status is Status.IMPOSSIBLE
    assert both.certificate == pytest.approx(alone.certificate, rel=1e-3)


def test_an_inertia_that_vanishes_is_still_one():
    """Of rounding alone, as a design finds it whose bodies become points: a model takes it."""
    found = plain([[6.9e-17, 0.0, -1.4e-25], [1e-30, 4.2e-17, 2.8e-17], [-1.4e-25, 2.8e-17, 1.4e-17]])
    mbs.set(arm(), {"body_2.inertia": found})
    assert np.array_equal(found, found.T) and np.abs(found).max() < 1e-16
    proper = np.array([[0.2, 0.01, 0.0], [0.01, 0.3, 0.0], [0.0, 0.0, 0.4]])
    assert np.array_equal(plain(proper), proper)


def test_nothing_is_proved_where_an_envelope_lets_the_conditions_hold():
    """What is proved grows with the way from the envelope to where the conditions hold, and is nothing within."""
    static = np.array([-0.25, -0.0625])  # where the centre of mass of body 2 has to be

    def found(center, half):
        # of a body without envelope nothing is taken as given, wherever its moments are counted from
        free = [*bodies(2, center=(*center, 0.0), half_axes=half), *bodies(3, pole=(0.1, 0.2, 0.0))]
        prepared = Prepared(Problem(arm(), free, [INDEPENDENT], starts=1))
        return certificate(prepared, prepared.variables.nominal)

    near, far = found((-0.1, -0.0625), (0.1, 0.1, 0.1)), found((0.05, -0.0625), (0.1, 0.1, 0.1))
    assert found(static, (0.1, 0.1, 0.1)) is None and found((-0.1, -0.0625), (0.16, 0.1, 0.1)) is None
    assert near > 0.1 and far / near == pytest.approx(0.2 / 0.05, rel=1e-2)


@pytest.mark.parametrize("seed", range(8))
def test_the_least_distance_is_that_of_scipy(seed):
    """Conditions on the first moments of a body of 2 kg: over its centre of mass, in an ellipsoid."""
    rng, mass = np.random.default_rng(seed), 2.0
    J, r0 = np.zeros((4, 9)), rng.normal(size=4)
    J[:, 6:] = rng.normal(size=(4, 3))
    center, half = rng.normal(size=3), rng.uniform(0.1, 1.0, 3)

    def missed(s):
        return np.sum((J[:, 6:] @ (mass * (center + half * s)) + r0) ** 2)

    inside = {"type": "ineq", "fun": lambda s: 1 - s @ s}
    found = minimize(missed, np.zeros(3), method="SLSQP", constraints=[inside], options={"ftol": 1e-14})
    proved = distance(J, r0, [Envelope(slice(0, 9), center, half, (mass, mass), False)])
    assert proved == pytest.approx(np.sqrt(found.fun), rel=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_the_least_of_a_quadratic_function_on_a_ball(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 3)) * rng.choice([0.0, 1e-3, 1.0]), rng.normal(size=3) * rng.choice([0.0, 1e-6, 1.0])
    A = A + A.T
    dual, s = on_a_ball(A, b)
    points = rng.normal(size=(2000, 3))
    points *= (rng.random(2000) ** (1 / 3) / np.linalg.norm(points, axis=1))[:, None]
    values = np.einsum("ni,ij,nj->n", points, A, points) + points @ b
    assert np.linalg.norm(s) <= 1 + 1e-12 and dual <= values.min() + 1e-12
    assert s @ A @ s + b @ s == pytest.approx(dual, abs=1e-9)


def test_names_share_one_value():
    part = Free(["body_2.com", "body_3.com"], components=(0, 2)).part(arm())
    found = part.values(np.array([0.25, -0.5]), None)
    y = np.asarray(mbs.get(arm(), "body_2.com"))[1]
    assert list(found) == ["body_2.com", "body_3.com"]
    assert all(np.array_equal(x, [0.25, y, -0.5]) for x in found.values())


def test_of_several_successes_the_nearest_to_the_nominal_values_is_best():
    """Whatever their cost is to rounding; a failure that is cheaper is none."""
    prepared = SimpleNamespace(variables=SimpleNamespace(size=2, nominal=np.zeros(2)))
    x = np.array([[3.0, 0.0, 9.0], [1.0, 1.0, 9.0], [0.1, 0.0, 9.0], [2.0, 0.0, 0.0]])
    status = np.array([Status.MET, Status.MET, Status.INFEASIBLE, Status.MET]).astype(int)
    state = SimpleNamespace(x=x, status=status, cost=np.array([1e-25, 1e-22, 0.0, 1e-30]))
    assert best_start(prepared, state) == 1
    state.status = np.full(4, int(Status.LEAST))
    assert best_start(prepared, state) == 2


def test_bounds_bind_and_are_named():
    free = [Free("body_3.com", components=(0, 1), low=(0.05, -1.0), high=(0.5, 1.0))]
    design = synthesize(Problem(arm(), free, [replace(INDEPENDENT, rows="q_3")], starts=3))
    assert design.status is Status.INFEASIBLE
    assert "body_3.com is at its lower bound" in design.reason and "configuration_independence" in design.reason
    x, y, z = design.parameters["body_3.com"]
    assert abs(x - 0.05) < 1e-12 and abs(y) < 0.02 and z == 0


def test_the_cheat_is_refused():
    """Variation over the trace gets small as an inertia escapes; the built-in objective gains nothing by that."""

    def over_trace(A):
        return ((A - A.mean(axis=0)[None]) / jnp.trace(A.mean(axis=0).reshape(3, 3))).reshape(-1)

    cheat = mbs.design.Function(mbs.mass_matrix, configurations=8, together=over_trace)
    free = bodies(1)  # whose inertia adds to A_11 alone and can balance nothing
    design = synthesize(Problem(arm(), free, [cheat], starts=2))
    assert design.status is Status.RUNAWAY and "body_1" in design.reason and design.findings is None
    honest = synthesize(Problem(arm(), free, [replace(INDEPENDENT, rows="q_1")], starts=2))
    assert not honest.status.success and honest.status is not Status.RUNAWAY
    assert honest.largest["configuration_independence"] > 0.1


def test_the_same_optimum_as_scipy():
    """A least squares problem that has no zero: bounds keep the arm from balance."""
    free = [Free(f"body_{k}.com", low=-0.05, high=0.4, components=(0, 1)) for k in (2, 3)]
    prepared = Prepared(Problem(arm(), free, [INDEPENDENT], starts=4))
    state, history, _ = search(prepared)
    data = prepared.data()
    residuals = compiled(lambda x: prepared.residuals(x, data)[0])
    other = least_squares(
        lambda x: np.asarray(residuals(x)), state.x[1] * 0, bounds=(prepared.low, prepared.high), xtol=1e-12
    )
    assert abs(np.min(state.cost) - other.cost) < 1e-7 * other.cost and other.cost > 1e-6
    assert np.all(np.diff(history, axis=0) <= 0)
    assert np.abs(state.x[np.argmin(state.cost)] - other.x).max() < 1e-3


def test_a_stopped_search_goes_on_to_the_same_bits(tmp_path):
    problem = Problem(arm(), bodies(2, 3), [INDEPENDENT], starts=4, seed=5)
    whole = synthesize(problem)

    class Stop(Exception):
        pass

    def stop(steps, running, cost):
        if steps == 4:
            raise Stop

    import jaxmbs.design.search as loop

    pace, loop.KEEP = loop.KEEP, 0.0
    try:
        with pytest.raises(Stop):
            synthesize(problem, tmp_path / "kept.npz", stop)
        again = synthesize(problem, tmp_path / "kept.npz")
    finally:
        loop.KEEP = pace
    assert np.array_equal(whole.x, again.x) and np.array_equal(whole.history, again.history)
    assert again.before == whole.before and again.history.shape[0] > 4
    with pytest.raises(ModelError, match="another problem"):
        synthesize(replace(problem, seed=6), tmp_path / "kept.npz")


def test_a_checkpoint_knows_its_samples_and_long_measurements(tmp_path):
    """The dispersions and the time of the study are part of the problem, and so is every number of a long array."""
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study, model = read(tmp_path / "cart.toml"), mbs.library.double_pendulum().build()
    (tmp_path / "longer.toml").write_text(CART.replace("t_end = 0.2", "t_end = 0.3"), encoding="utf-8")
    longer = read(tmp_path / "longer.toml")
    assert longer.simulation.t_end != study.simulation.t_end
    wanted = mbs.design.Function(lambda model, q: mbs.energy(model, q, [0.0, 0.0])[1])

    def digest(objective, study=None):
        prepared = Prepared(Problem(model, [mbs.design.Free("lower.com")], [objective]))
        prepared.problem = replace(prepared.problem, study=study)
        return prepared.digest()

    def measured(k):
        x = np.zeros((2000, 2))
        x[k] = 1.0
        return mbs.design.MeasuredTorques({"q": x, "v": x, "a": x, "tau": x}, noise=1.0, goal="least")

    assert digest(wanted) == digest(wanted) and digest(wanted, study) == digest(wanted, study)
    others = (digest(wanted, study), digest(wanted, longer), digest(measured(7)), digest(measured(8)))
    assert len({digest(wanted), *others}) == 5
    (tmp_path / "aim.txt").write_text("0.5", encoding="utf-8")
    of_file = mbs.design.Function(lambda model, q: q[0] - float(np.loadtxt(tmp_path / "aim.txt")))
    assert digest(of_file).startswith(_PROCESS) and not digest(wanted).startswith(_PROCESS)


@pytest.mark.slow
def test_static_balance_and_its_springs():
    """A counterweight's place balances a pendulum under gravity; so does nothing else that is free."""
    mech = mbs.Mechanism("balance", gravity=(0, 0, -9.81))
    mech.add_body("beam", mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    mech.add_body("weight", mass=3.0)
    mech.add_joint("pivot", mbs.Revolute(axis=(0, 1, 0)), parent="world", child="beam")
    mech.add_joint("clamp", mbs.Fixed(), parent="beam", child="weight", parent_pose=mbs.Pose((-0.1, 0, 0)))
    place = Free("clamp.parent_pose.position", components=(0,))
    problem = Problem(mech.build(), [place], [mbs.design.StaticBalance(configurations=4)], starts=2)
    design = synthesize(problem)
    assert design.status is Status.MET
    assert np.allclose(design.parameters["clamp.parent_pose.position"], [-0.2, 0, 0], atol=1e-10)
    # and Adam, which meets other configurations in every step, comes near
    near = synthesize(replace(problem, method="adam", max_steps=80, learning_rate=0.06, tolerance=0.1))
    assert np.allclose(near.parameters["clamp.parent_pose.position"], [-0.2, 0, 0], atol=1e-2)
    assert near.status.success and near.history.shape[0] > 40


def test_groups_share_and_mirror():
    model = mbs.library.planar_two_arm_robot().build()
    both = MassDistribution("body_2", mirrored=("body_4",), across="y", half_axes=(0.5, 0.5, 0.5))
    v = Prepared(Problem(model, [both, Factor(["body_3.mass", "body_3.inertia"])], [INDEPENDENT])).variables
    x = v.starts(3, 0, 0.5)[2]
    values = v.values(v.coordinates_at(x))
    assert np.allclose(values["body_4.com"], values["body_2.com"] * [1, -1, 1])
    flip = np.diag([1.0, -1.0, 1.0])
    assert np.allclose(values["body_4.inertia"], flip @ values["body_2.inertia"] @ flip)
    assert np.allclose(values["body_3.inertia"] / values["body_3.mass"], mbs.get(model, "body_3.inertia") / 2.0)
    mbs.set(model, {n: np.asarray(y) for n, y in values.items()})  # which refuses what no body has


@pytest.mark.parametrize("envelope", [None, (0.2, 0.3, 0.1)])
def test_every_vector_is_a_body_and_every_body_a_vector(envelope):
    """Whatever the optimiser does; inside the envelope a cloud of points can be found that has these moments."""
    model, rng = arm(), np.random.default_rng(3)
    v = Prepared(Problem(model, bodies(2, half_axes=envelope), [INDEPENDENT])).variables
    for x in rng.normal(0, 3, (12, 9)):
        values = {n: np.asarray(y) for n, y in v.values(v.coordinates_at(x)).items()}
        changed = mbs.set(model, values)
        if envelope:
            c, I = values["body_2.com"], values["body_2.inertia"] / mbs.get(model, "body_2.mass")
            second = np.trace(I) / 2 * np.eye(3) - I + np.outer(c, c)
            assert np.trace(second / np.outer(envelope, envelope)) < 1 + 1e-9
        elif envelope is None and np.abs(x).max() < 4:
            back = Prepared(Problem(changed, bodies(2), [INDEPENDENT])).variables
            again = back.values(back.coordinates_at(back.nominal))
            assert np.allclose(
                again["body_2.inertia"],
                values["body_2.inertia"],
                rtol=1e-4,
                atol=1e-5 * np.trace(values["body_2.inertia"]),
            )


@pytest.mark.parametrize(
    "change, message",
    [
        ({"free": []}, "nothing is free"),
        ({"objectives": []}, "no objective"),
        ({"free": [Free("body_2.mas")]}, "did you mean 'body_2.mass'"),
        ({"free": [Free("body_2.inertia")]}, "MassDistribution"),
        ({"free": [Free("body_2.mass", low=3.0, high=1.0)]}, "exchange them"),
        ({"free": [Free(["body_2.mass", "body_2.com"])]}, "differ in shape"),
        ({"free": [Free("body_2.com", components=(0, 3))]}, r"components \[0, 3\] of 'body_2.com'; it has 3"),
        ({"free": [Factor(["body_2.mass"], low=0.0)]}, "more than zero"),
        ({"free": [Free("body_2.com"), *bodies(2)]}, "set by both"),
        ({"free": [MassDistribution("bodi_2")]}, "did you mean 'body_2'"),
        ({"free": [MassDistribution("body_2", mass=(2.0, 1.0))]}, "0 < low <= high"),
        ({"method": "newton"}, "no method named 'newton'"),
        ({"starts": 0}, "give 1 or more"),
        ({"objectives": [replace(INDEPENDENT, rows="q_9")]}, "no joint named 'q_9'"),
        ({"objectives": [mbs.design.NoBaseReaction("q_9")]}, "no joint named"),
        ({"objectives": [mbs.design.StaticBalance()]}, "no gravity"),
        ({"objectives": [INDEPENDENT, mbs.design.Decoupling(goal="least")]}, "constrained"),
        ({"objectives": [mbs.design.OutputValue("rate")]}, "need a study"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_for_is_said_at_once(change, message):
    problem = Problem(arm(), bodies(2), [INDEPENDENT])
    with pytest.raises(ModelError, match=message):
        Prepared(replace(problem, **change))


@pytest.mark.slow
def test_a_value_without_a_derivative_is_said():
    """The square root of nothing has no slope."""
    model = mbs.library.double_pendulum().build()

    def root(model, q):
        return jnp.sqrt(jnp.abs(mbs.get(model, "lower.mass") - 1.0))

    design = synthesize(Problem(model, [Free("lower.mass")], [mbs.design.Function(root, goal="least")], starts=1))
    assert design.status is Status.NOT_FINITE and design.largest == {"function": 0.0}
    assert design.reason.startswith("the objective is finite here, its derivatives are not")

    def gone(model, q):
        return jnp.log(mbs.get(model, "lower.mass") - 1.0)

    design = synthesize(Problem(model, [Free("lower.mass")], [mbs.design.Function(gone, goal="least")], starts=1))
    assert design.reason.endswith("not finite: function")


def test_functions_say_what_is_asked_of_them():
    def mass(model, q):
        return mbs.get(model, "lower.mass")

    asked = [{}, {"goal": "least"}, {"goal": "lowest"}, {"at_most": 2.5}, {"at_least": 1.0}]
    said = [mbs.design.Function(mass, **x).describe(None) for x in asked]
    assert said == [
        "residuals of mass vanish", "residuals of mass as small as they can be",
        "residuals of mass as low as they can be on average", "values of mass at most 2.5", "values of mass at least 1",
    ]  # fmt: skip
