"""Outputs of a part of the motion: from an instant until another, and what is said of those that stay at their start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io.errors import InputError
from jaxmbs.study import read, repeat, report, run
from jaxmbs.study.outputs import Distance
from jaxmbs.study.outputs.folding import folded, results_of
from jaxmbs.study.samples.batch import simulated
from tests.study.conftest import CART

CALM = CART.replace("damping = 0.5", "damping = 0.0")
TRAVEL = """
[outputs.travel]
type = "joint_position"
joint = "rail"
unit = "mm"
"""


def kept(t, x, begin=None, end=None, **said):
    """The output of a history with margins of the conditions of from and until, as a function of x."""
    output = Distance(
        body_a="a", body_b="b", from_=None if begin is None else "", until=None if end is None else "", **said
    )
    state = tuple(jnp.asarray(s) for s in output.start())
    for i, now in enumerate(t):
        margins = tuple(None if m is None else m[i] for m in (begin, end))
        state = output.fold(state, (jnp.asarray(x[i]), jnp.asarray(True)), now, margins)
    return output.result(state)


@pytest.mark.parametrize("inside", [False, True], ids=["at times", "between them"])
def test_a_window_against_the_history_cut_out(inside):
    """Between two times everything goes along a straight line: so the ends of the window do, too."""
    rng = np.random.default_rng(3)
    t = np.cumsum(rng.uniform(0.05, 0.2, 20))
    x = rng.normal(size=20)
    first, last = (0.3 * t[3] + 0.7 * t[4], 0.6 * t[12] + 0.4 * t[13]) if inside else (t[4], t[12])
    own = np.unique([first, *t[(t > first) & (t < last)], last])
    y = np.interp(own, t, x)
    found = {r: float(kept(t, x, t - first, t - last, reduce=r, limit=0.1)) for r in
             ("min", "max", "time_of_min", "mean", "integral", "rms", "final", "time_above")}  # fmt: skip
    assert found["min"] == pytest.approx(y.min()) and found["max"] == pytest.approx(y.max())
    assert found["time_of_min"] == pytest.approx(own[y.argmin()]) and found["final"] == pytest.approx(y[-1])
    assert found["integral"] == pytest.approx(np.trapezoid(y, own))
    assert found["mean"] == pytest.approx(np.trapezoid(y, own) / (last - first))
    fine = np.linspace(first, last, 2_000_001)
    assert found["rms"] == pytest.approx(np.sqrt((np.interp(fine, t, x) ** 2).mean()), abs=1e-5)
    assert found["time_above"] == pytest.approx((np.interp(fine, t, x) > 0.1).mean() * (last - first), abs=1e-5)
    assert float(kept(t, x, t - first, None, reduce="min")) == pytest.approx(min(y[0], x[t > first].min()))
    assert float(kept(t, x, None, t - last, reduce="max")) == pytest.approx(max(y[-1], x[t < last].max()))


def test_a_window_that_has_nothing():
    t, x = np.arange(4.0), np.array([1.0, 3.0, 7.0, 8.0])
    for reduce in ("min", "mean", "final", "integral", "time_of_max"):
        assert np.isnan(kept(t, x, t - 9, None, reduce=reduce)), "it never begins"
        assert np.isnan(kept(t, x, t - 1.5, t - 0.5, reduce=reduce)), "it ends before"
        assert np.isnan(kept(t, x, t - 1.7, t - 1.3, reduce=reduce)), "in one step"
        assert np.isnan(kept(t, x, None, t + 1, reduce=reduce)), "from the start"
    assert float(kept(t, x, t - 1.3, t - 1.7, reduce="max")) == pytest.approx(3 + 0.7 * 4), "within one step"
    again = np.array([-1.0, 1.0, -1.0, 1.0])
    assert float(kept(t, x, again, None, reduce="max")) == 8.0, "it began once and for all"


@pytest.mark.slow
def test_derivatives_of_a_window():
    t, x = np.arange(5.0), np.array([1.0, 3.0, 7.0, 8.0, 2.0])

    def least(a):
        return kept(t, jnp.asarray(x) * a, jnp.asarray(t) - a, None, reduce="min", limit=None) + kept(
            t, jnp.asarray(x) * a, jnp.asarray(t) - a, jnp.asarray(t) - 2.3 * a, reduce="integral"
        )

    forward, back = jax.jacfwd(least)(1.3), jax.grad(least)(1.3)
    assert float(back) == pytest.approx(float(forward), rel=1e-12)
    assert float(back) == pytest.approx((float(least(1.3 + 1e-6)) - float(least(1.3 - 1e-6))) / 2e-6, rel=1e-6)


def output(name, reduce, **instants):
    said = "".join(f"{k} = {v!r}\n" if isinstance(v, float) else f'{k} = "{v}"\n' for k, v in instants.items())
    return f'[outputs.{name}]\ntype = "joint_velocity"\njoint = "rail"\nreduce = "{reduce}"\n{said}'


LATCH = """
[[mechanism.events]]
name = "latch"
when = {type = "joint_reaches", joint = "rail", value = 0.02, direction = "up"}
then = [{type = "bounce", joint = "rail", restitution = 0.5}]
"""
WINDOWS = (
    output("late", "min", **{"from": 0.1})
    + output("far", "min", **{"from": "travel > 5 mm", "until": "t > 0.15 s"})
    + output("own", "time_of_min", **{"from": "own > 0.2 m/s"})
    + output("before", "max", until="event latch")
    + output("after", "max", **{"from": "event latch"})
    + output("back", "integral", **{"from": "latch", "until": 0.16})
    + TRAVEL
)


@pytest.fixture(scope="module")
def bounced(tmp_path_factory):
    path = tmp_path_factory.mktemp("windows") / "cart.toml"
    path.write_text(CALM.replace('"reach > 90 mm", "speed < 0.9 m/s"', "") + LATCH + WINDOWS, encoding="utf-8")
    return read(path)


@pytest.fixture(scope="module")
def data(bounced, tmp_path_factory):
    return run(bounced, 64, tmp_path_factory.mktemp("windows") / "run", 64).dataset().load()


def test_windows_of_a_study_against_closed_forms(bounced, data):
    """A spring, 0.2 m short of its rest length, drives a cart to 20 mm, where it bounces back with half its speed."""
    assert (data["status"] == 0).all()
    omega = np.sqrt(50.0 * data["spring.stiffness"].values / (2.0 * data["cart.mass"].values))
    v0 = data["initial.rail.v"].values

    def speed(x):
        return np.sqrt(v0**2 + omega**2 * (0.04 - (0.2 - x) ** 2))

    def at(t, x, v):  # seconds after it was at x with speed v
        return 0.2 - (0.2 - x) * np.cos(omega * t) + v / omega * np.sin(omega * t), v * np.cos(omega * t) + omega * (
            0.2 - x
        ) * np.sin(omega * t)

    hit = speed(0.02)
    then = (np.arctan2(hit / omega, 0.18) - np.arctan2(v0 / omega, 0.2)) / omega
    assert np.abs(np.asarray(bounced.simulation.dt) / then).max() < 0.1
    assert data["before"].values == pytest.approx(hit, rel=1e-9)
    assert data["after"].values == pytest.approx(np.maximum(-hit / 2, at(0.2 - then, 0.02, -hit / 2)[1]), rel=1e-9)
    assert data["back"].values == pytest.approx(at(0.16 - then, 0.02, -hit / 2)[0] - 0.02, abs=2e-6)
    one_step = 1.01e-3 * 0.2 * omega.max() ** 2  # what takes no notice of events sees the bounce at the next time
    assert data["late"].values[then > 0.101] == pytest.approx((-hit / 2)[then > 0.101], abs=one_step)
    assert data["far"].values == pytest.approx(-hit / 2, abs=one_step)
    assert np.all((data["own"].values >= then) & (data["own"].values <= then + 1.01e-3))


@pytest.mark.slow
def test_histories_and_samples_agree(bounced, data):
    again = repeat(bounced, [5, 3])
    for name in bounced.outputs:
        assert again.outputs[name] == pytest.approx(data[name].values[[5, 3]], rel=1e-9, nan_ok=True), name


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('from = "event ltach"', r'outputs\.x\.from: there is no event "ltach"; did you mean "latch"'),
        ('from = "travle > 5 mm"', r'outputs\.x\.from: .*did you mean "travel"'),
        ('until = "5 mm"', r'outputs\.x\.until: "mm" measures length, not time'),
        ('until = "0.1"', r'outputs\.x\.until: "0.1" has no unit; write "0.1 s"'),
        ("from = 0.5", r"outputs\.x\.from: 0\.5 s is not before the motion ends, 0\.2 s"),
        ('from = 0.1\nuntil = "50 ms"', r"outputs\.x\.until: 0\.05 s is not after from, 0\.1 s"),
        ('from = "event latch"\nuntil = "event latch"', r"outputs\.x\.until: is the same instant as from"),
        ('reduce = "at"\nwhen = "t > 0.1 s"\nfrom = 0.1', r"outputs\.x\.from: at takes its instant from when"),
        ("from = true", r"outputs\.x\.from: .*needs seconds, such as 0\.5"),
    ],
)
def test_instants_that_mean_nothing_are_told(tmp_path, said, why):
    path = tmp_path / "cart.toml"
    text = f'[outputs.x]\ntype = "joint_velocity"\njoint = "rail"\n{said}\n'
    path.write_text(CALM + LATCH + TRAVEL + text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        read(path)


def test_what_stays_at_its_start_is_said(tmp_path):
    """The cart moves away from the wall: the least gap is that of t = 0, in every sample but of no interest."""
    gap = '[outputs.gap]\ntype = "joint_position"\njoint = "rail"\nreduce = "min"\n'
    path, text = tmp_path / "cart.toml", CALM.replace("low = -0.1", "low = 0.02")
    path.write_text(text + gap + gap.replace("gap]", "meant]") + "from = 0\n", encoding="utf-8")
    written = report(run(read(path), 64, tmp_path / "run", 64).folder)
    assert written.document["at_start"] == {"reach": 0.0, "gap": 1.0}
    from rich.console import Console

    with Console(width=300, record=True) as console:
        console.print(written.table)
    page, said = written.path.read_text(encoding="utf-8"), "gap.min is the value at t = 0 in 100 % of the samples"
    assert said in console.export_text() and said in page and "reach.max" not in page


@pytest.mark.slow
def test_derivatives_through_events_and_crossings(bounced):
    """Of all outputs with respect to the spring and the initial speed, forwards and back, against differences."""
    start, fold = folded(bounced.outputs, jnp.zeros(()).dtype)
    names = ["far", "before", "after", "back"]

    def outputs(x):
        model = mbs.set(bounced.model, {"spring.stiffness": x[0]})
        v = jnp.asarray(bounced.v0).at[0].set(x[1])
        q = jnp.asarray(bounced.q0)
        motion = simulated(bounced.simulation, model, q, v, save_every=None, fold=(start, fold))
        found = results_of(bounced.outputs, motion.folded, motion.events, model, q, v)
        return jnp.stack([found[n] for n in names])

    x, h = jnp.array([50.0, 0.05]), jnp.array([1e-3, 1e-6])
    forward, back = (np.asarray(jax.jit(of(outputs))(x)) for of in (jax.jacfwd, jax.jacrev))
    steps = np.asarray(jax.jit(jax.vmap(outputs))(x[None] + jnp.concatenate([jnp.diag(h), -jnp.diag(h)])))
    assert back == pytest.approx(forward, rel=1e-9, abs=1e-12)
    differences = ((steps[:2] - steps[2:]) / (2 * np.asarray(h)[:, None])).T
    for k, name in enumerate(names):
        assert forward[k] == pytest.approx(differences[k], rel=2e-5, abs=1e-9), name


def test_windows_are_saved_as_they_were_read(bounced, tmp_path):
    again = mbs.study.save(
        bounced.model, tmp_path / "again.toml", outputs=bounced.outputs, simulation=bounced.simulation,
        dispersions={d.name: d.table for d in bounced.dispersions.items},
    )  # fmt: skip
    assert {n: (o.from_, o.until) for n, o in again.outputs.items()} == {
        n: (o.from_, o.until) for n, o in bounced.outputs.items()
    }
    assert mbs.study.outputs.JointVelocity("rail", from_=0.1, until="event latch").from_ == 0.1
