"""Parameters from measured motions, and how well they are known: against SciPy, by coverage, from files."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import curve_fit

import jaxmbs as mbs
from jaxmbs.design import Free, Function, MeasuredMotion, MeasuredTorques, Problem, Status, profile, synthesize
from jaxmbs.design.comparison import Comparison
from jaxmbs.design.file import read
from jaxmbs.design.page import page
from jaxmbs.design.report import as_json
from jaxmbs.io import InputError

T, NOISE = np.linspace(0.05, 3.0, 60), 0.004
TRUTH = {"spring.stiffness": 6.0, "spring.damping": 0.25}


def pendulum():
    mech = mbs.Mechanism("pendulum", gravity=(0.0, 0.0, -9.81))
    mech.add_body("bob", mass=1.2, com=(0, 0, -0.4), inertia=(0.02, 0.02, 0.01))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), parent="world", child="bob")
    mech.add_force("spring", mbs.TorsionSpring("hinge", stiffness=4.0, damping=0.5))
    return mech.build()


def motion(seed=0, gaps=False):
    run = mbs.simulate(mbs.set(pendulum(), TRUTH), [0.8], [0.0], times=np.concatenate([[0.0], T]), dt=0.01)
    rng = np.random.default_rng(seed)
    q, v = np.asarray(run.q[1:, 0]), np.asarray(run.v[1:, 0])
    found = {
        "t": T,
        "hinge.q": q + NOISE * rng.standard_normal(60),
        "hinge.v": v + 10 * NOISE * rng.standard_normal(60),
    }
    if gaps:
        found["hinge.v"][::3] = np.nan
    return found


def wanted(data, **options):
    both = {
        "columns": "hinge.q hinge.v",
        "noise": (NOISE, 10 * NOISE),
        "q0": (0.8,),
        "v0": (0.0,),
        "goal": "least",
    }
    return MeasuredMotion(data, **{**both, **options})


FREE = [Free("spring.stiffness"), Free("spring.damping")]


def test_spring_and_damper_from_a_swing():
    """Gaps left out, the estimates are those of SciPy's weighted fit and near the truth."""
    data = motion(gaps=True)
    design = synthesize(Problem(pendulum(), FREE, [wanted(data)], starts=2))
    assert design.status is Status.LEAST, design.reason
    there = ~np.isnan(data["hinge.v"])

    @jax.jit
    def simulated(k, c):
        run = mbs.simulate(
            mbs.set(pendulum(), {"spring.stiffness": k, "spring.damping": c}),
            [0.8],
            [0.0],
            times=np.append(0.0, T),
            dt=0.01,
        )
        return jnp.concatenate([run.q[1:, 0] / NOISE, run.v[1:, 0][there] / (10 * NOISE)])

    measured = np.concatenate([data["hinge.q"] / NOISE, data["hinge.v"][there] / (10 * NOISE)])
    best, covariance = curve_fit(
        lambda _, k, c: np.asarray(simulated(k, c)), None, measured, p0=(4, 0.5), sigma=np.ones(len(measured)),
        absolute_sigma=True, xtol=1e-12, ftol=1e-12,
    )  # fmt: skip
    for k, name in enumerate(TRUTH):
        own = design.uncertainty[name]
        assert own.value == pytest.approx(best[k], rel=1e-4) and own.std == pytest.approx(
            covariance[k, k] ** 0.5, rel=1e-2
        )
        assert abs(own.value - TRUTH[name]) < 4 * own.std < 0.1 * own.value
    correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert design.uncertainty.correlation[0, 1] == pytest.approx(correlation, abs=0.02)
    assert design.uncertainty.freedom == 60 + there.sum() - 2


@pytest.mark.slow
def test_a_start_that_is_not_known_is_estimated_too():
    """With a start that is wrong by 0.05 rad the stiffness is right only if the start may give way."""
    data, free = motion(), FREE[:1]
    model = mbs.set(pendulum(), {"spring.damping": TRUTH["spring.damping"]})
    problem = Problem(model, free, [wanted(data, q0=(0.85,), start_noise=0.05)], starts=1)
    design = synthesize(problem)
    own = design.uncertainty["spring.stiffness"]
    assert abs(own.value - 6.0) < 4 * own.std
    stiff = synthesize(replace(problem, objectives=[wanted(data, q0=(0.85,))]))
    assert stiff.cost > 10 * design.cost and stiff.uncertainty["spring.stiffness"].std < own.std


FILE = """
[mechanism]
name = "pendulum"
gravity = [0, 0, -9.81]
bodies = [{name = "bob", mass = 1.2, com = [0, 0, -0.4], inertia = [0.02, 0.02, 0.01]}]
joints = [{name = "hinge", type = "revolute", axis = [0, 1, 0], parent = "world", child = "bob"}]
forces = [{name = "spring", type = "torsion_spring", joint = "hinge", stiffness = 4.0, damping = 0.25}]
[initial.hinge]
q = [0.8]
[outputs.rate]
type = "joint_velocity"
joint = "hinge"
[design]
starts = 1
check = 0
[[design.free]]
type = "parameter"
names = ["spring.stiffness"]
[[design.objectives]]
type = "measured_motion"
file = "swing.csv"
columns = "hinge.q rate"
noise = [0.004, 0.04]
goal = "least"
"""


def test_a_measured_motion_in_a_file(tmp_path, monkeypatch):
    """Beside it a CSV with times, a coordinate with a gap, and an output. Reading it starts no backend: the command chooses
    the precision after that."""
    data = motion()
    rows = [f"{t},{q if k != 5 else ''},{v}" for k, (t, q, v) in enumerate(zip(*data.values(), strict=True))]
    (tmp_path / "swing.csv").write_text("\n".join(["t,hinge.q,rate", *rows]), encoding="utf-8")
    path = tmp_path / "swing.toml"
    path.write_text(FILE, encoding="utf-8")
    with monkeypatch.context() as patched:
        for name in ("asarray", "array", "concatenate"):
            patched.setattr(jnp, name, None)
        problem = read(path).problem
    assert np.isnan(problem.objectives[0].measurements["hinge.q"][5])
    design = synthesize(problem)
    own = design.uncertainty["spring.stiffness"]
    assert design.status is Status.LEAST and abs(own.value - 6.0) < 4 * own.std < 0.2
    record = as_json(design, Comparison("", (), {}))
    assert record["estimates"][0]["interval"] == [own.low, own.high] and "95 %" in page(design, Comparison("", (), {}))

    for old, new, message in [
        ("swing.csv", "../swing.csv", "without a path"),
        ("swing.csv", "swng.csv", "cannot be read"),
        ("hinge.q rate", "hinge.q rat", "did you mean 'rate'"),
        ("0.004, 0.04", "0.004, -0.04", "noise must be"),
    ]:
        path.write_text(FILE.replace(old, new), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read(path)


@pytest.mark.slow
def test_measured_torques_in_a_file(tmp_path):
    head = FILE[: FILE.index('type = "measured_motion"')].replace("-9.81", "0")
    text = head + 'type = "measured_torques"\nfile = "hold.csv"\nnoise = 0.01\ngoal = "least"\n'
    (tmp_path / "hold.csv").write_text(
        "hinge.q,hinge.v,hinge.a,hinge.tau\n0.1,0,0,0.6\n-0.2,0,0,\n0.3,0,0,1.8\n", encoding="utf-8"
    )
    path = tmp_path / "hold.toml"
    path.write_text(text, encoding="utf-8")
    design = synthesize(read(path).problem)
    assert design.status is Status.LEAST, design.reason
    assert design.uncertainty["spring.stiffness"].value == pytest.approx(6.0, rel=1e-9)


def decay(data, x):
    """A fit of y = a exp(-b x), by masses a and b of two bodies."""

    def fn(model, q):
        a, b = mbs.get(model, "one.mass"), mbs.get(model, "two.mass")
        return a * jnp.exp(-b * x) - data

    return Function(fn, configurations=1, goal="least")


def masses():
    mech = mbs.Mechanism("numbers")
    for name, mass in (("one", 1.5), ("two", 0.8)):
        mech.add_body(name, mass=mass, inertia=(1, 1, 1))
        mech.add_joint(f"j_{name}", mbs.Revolute(axis=(0, 0, 1)), parent="world", child=name)
    return mech.build()


def fitted(seed, x, sigma):
    data = 2.0 * np.exp(-0.5 * x) + sigma * np.random.default_rng(seed).standard_normal(len(x))
    problem = Problem(masses(), [Free("one.mass"), Free("two.mass")], [decay(data, x)], starts=1)
    return data, synthesize(problem)


def test_deviations_of_a_function_and_its_profile():
    """Of unknown noise, as SciPy's; where the curvature is poor the profile is lopsided, and its ends are where F says."""
    x = np.linspace(0, 4, 15)
    data, design = fitted(0, x, 0.05)
    best, covariance = curve_fit(lambda x, a, b: a * np.exp(-b * x), x, data, p0=(1.5, 0.8), xtol=1e-12)
    for k, name in enumerate(("one.mass", "two.mass")):
        own = design.uncertainty[name]
        assert (
            not own.profiled
            and own.value == pytest.approx(best[k], rel=1e-5)
            and own.std == pytest.approx(covariance[k, k] ** 0.5, rel=1e-3)
        )
    data, design = fitted(1, x[:6], 0.4)
    low, high = profile(design)["two.mass"]
    own = design.uncertainty["two.mass"]
    assert own.std > 0.3 * own.value and own.profiled and (own.low, own.high) == (low, high)
    assert low < own.value < high and abs((high - own.value) - (own.value - low)) > 0.05 * (high - low)

    from scipy.stats import f

    def squares(b):
        e = np.exp(-b * x[:6])
        return np.sum((data - (data @ e) / (e @ e) * e) ** 2)

    allowed = squares(own.value) * (1 + f.ppf(0.95, 1, 4) / 4)
    assert squares(high) == pytest.approx(allowed, rel=1e-3)
    assert low <= 1e-3 or squares(low) == pytest.approx(allowed, rel=1e-3)


def test_deviations_of_a_fit_under_a_condition():
    """Two masses are measured five times each, and their sum is known: what is free is their difference."""
    rng = np.random.default_rng(3)
    first, second = rng.normal(1.5, 0.01, 5), rng.normal(0.8, 0.01, 5)
    both = lambda m: (mbs.get(m, "one.mass"), mbs.get(m, "two.mass"))  # noqa: E731
    data = Function(
        lambda m, q: jnp.concatenate([both(m)[0] - first, both(m)[1] - second]), configurations=1, goal="least"
    )
    total = Function(lambda m, q: jnp.atleast_1d(sum(both(m)) - 2.3), configurations=1)
    free = [Free("one.mass", low=0.1, high=5.0), Free("two.mass", low=0.1, high=5.0)]
    design = synthesize(Problem(masses(), free, [data, total], method="constrained", starts=1))
    one = np.mean(np.concatenate([first, 2.3 - second]))
    r = np.concatenate([one - first, 2.3 - one - second])
    own, other = (design.uncertainty[f"{name}.mass"] for name in ("one", "two"))
    assert own.value == pytest.approx(one, rel=1e-7) and design.uncertainty.freedom == 9
    assert own.std == pytest.approx(np.sqrt(np.sum(r**2) / 9 / 10), rel=1e-5) and other.std == pytest.approx(own.std)
    assert design.uncertainty.correlation[0, 1] == pytest.approx(-1.0, abs=1e-9)
    with pytest.raises(mbs.ModelError, match="a fit with conditions has no profile"):
        profile(design)


def test_what_data_and_conditions_leave_free_is_undetermined():
    known = Function(lambda m, q: jnp.atleast_1d(mbs.get(m, "one.mass") - 1.2), configurations=1, goal="least")
    above = Function(lambda m, q: jnp.atleast_1d(mbs.get(m, "two.mass") - 0.3), configurations=1, at_least=0.0)
    free = [Free("one.mass", low=0.1, high=5.0), Free("two.mass", low=0.1, high=5.0)]
    design = synthesize(Problem(masses(), free, [known, above], method="constrained", starts=1))
    assert design.status is Status.UNDETERMINED and "two.mass" in design.reason


def a_function(seed):
    return fitted(seed, np.linspace(0, 4, 12), 0.05)[1]


def a_motion(seed):
    t, noise = np.linspace(0.1, 2.0, 20), 0.02
    run = mbs.simulate(mbs.set(pendulum(), TRUTH), [0.8], [0.0], times=np.append(0.0, t), dt=0.02)
    q = np.asarray(run.q[1:, 0]) + noise * np.random.default_rng(seed).standard_normal(20)
    fit = wanted({"t": t, "hinge.q": q}, columns="hinge.q", noise=(noise,), dt=0.02)
    return synthesize(Problem(pendulum(), FREE, [fit], starts=1))


def torques(seed):
    k = np.arange(15)[:, None]
    given = {"q": np.linspace(-1, 1, 15)[:, None], "v": np.cos(k), "a": np.sin(2 * k)}
    exact = jax.vmap(lambda *at: mbs.inverse_dynamics(mbs.set(pendulum(), TRUTH), *at))(
        *map(jnp.asarray, given.values())
    )
    tau = np.asarray(exact) + 0.1 * np.random.default_rng(seed).standard_normal((15, 1))
    return synthesize(
        Problem(pendulum(), FREE, [MeasuredTorques(given | {"tau": tau}, noise=0.1, goal="least")], starts=1)
    )


def a_profile(seed):
    """Six points with much noise; where a fit says that its curvature is poor its intervals are profiles."""
    return fitted(seed, np.linspace(0, 4, 15)[:6], 0.25)[1]


@pytest.mark.slow
@pytest.mark.parametrize("fit", [a_function, a_motion, torques, a_profile], ids=lambda fit: fit.__name__)
def test_intervals_cover(fit):
    """95 % of 200 repetitions, within three deviations of such a share."""
    truth = TRUTH | {"one.mass": 2.0, "two.mass": 0.5}
    found = [fit(seed).uncertainty.estimates for seed in range(200)]
    hits = [[e.low < truth[e.name] < e.high for e in estimates] for estimates in found]
    assert np.all(np.abs(np.mean(hits, axis=0) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 200))
    assert sum(e.profiled for estimates in found for e in estimates) > (60 if fit is a_profile else -1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"columns": ""}, "no columns"),
        ({"columns": "hing.q"}, "did you mean 'hinge.q'"),
        ({"noise": (1.0, 1.0, 1.0)}, "noise must be"),
        ({"q0": (0.1, 0.2)}, "q0 needs 1 numbers"),
        ({"measurements": {"t": [1.0, 0.5], "hinge.q": [0, 0], "hinge.v": [0, 0]}}, "increasing times"),
        ({"measurements": {"t": [0.0, 0.5], "hinge.q": [0.0], "hinge.v": [0, 0]}}, "one for each time"),
        ({"measurements": None}, "nothing is measured"),
    ],
)
def test_measurements_that_do_not_fit_are_refused(change, message):
    from jaxmbs.design.problem import Prepared

    with pytest.raises(mbs.ModelError, match=message):
        Prepared(Problem(pendulum(), FREE, [replace(wanted(motion()), **change)]))
