"""How draws act on inertias, directions, attitudes and plain numbers, and that each of the example's has an effect."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.spatial import from_quaternion
from jaxmbs.study import Discrete, Empirical, Lognormal, Mixture, Normal, TruncatedNormal, Uniform, read
from jaxmbs.study.distributions import Distribution, named
from jaxmbs.study.outputs.folding import folded
from jaxmbs.study.problem.words import described
from jaxmbs.study.samples.batch import halves, instances, study_key
from jaxmbs.study.sampling.targets import Numbers, _tilted_rotation, quaternion_times, rotation_of

N = 2000


def numbers(study, n=N, dtype=np.float64):
    d = study.dispersions
    keys = d.keys(study_key(*halves(study.seed)))
    draws = jax.vmap(lambda i: d.draw(keys, i, dtype))(jnp.arange(n, dtype=jnp.uint32))
    applied = jax.vmap(lambda x: d.apply(x, dtype))(draws)
    own = {name: np.asarray(x) for name, x in d.split(draws).items()}
    return own, {k: np.asarray(x) for k, x in applied.parameters.items()}, np.asarray(applied.q), np.asarray(applied.v)


def moments(inertia):
    """Second moments of the mass distribution along its principal axes, (B, 3) ascending."""
    full = inertia if inertia.ndim == 3 else inertia[:, :, None] * np.eye(3)
    return np.linalg.eigvalsh(np.trace(full, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - full)


def test_plain_numbers(cart):
    path = cart(
        'apply = "multiply"\nstd = 0.02',
        'apply = "add"\nstd = 0.02',
        'apply = "multiply"\nsigma',
        "median = 40.0\nsigma",
    )
    study = read(path)
    draws, parameters, _, v = numbers(study)
    assert np.array_equal(parameters["cart.mass"], 2.0 + draws["cart.mass"][:, 0])
    assert np.array_equal(parameters["spring.stiffness"], draws["spring.stiffness"][:, 0])
    assert np.median(parameters["spring.stiffness"]) == pytest.approx(40.0, rel=0.01)
    assert np.array_equal(v, draws["initial.rail.v"])


def test_factor_and_units(cart):
    path = cart("low = -0.1", 'low = -1.0\nunit = "mm/s"\napply = "add"', "high = 0.1", "high = 2.0")
    draws, parameters, _, v = numbers(read(path))
    assert np.array_equal(parameters["cart.mass"], 2.0 * draws["cart.mass"][:, 0])
    assert -1e-3 <= draws["initial.rail.v"].min() < -0.9e-3
    assert 1.9e-3 < draws["initial.rail.v"].max() <= 2e-3
    assert np.allclose(v, 0.05 + draws["initial.rail.v"], rtol=0, atol=1e-16)


def test_several_dispersions_on_one_target_act_in_the_order_of_the_file(cart):
    lot = '[dispersions.lot]\ntarget = "cart.mass"\ndistribution = "normal"\napply = "add"\nstd = 0.1\n'
    draws, parameters, _, _ = numbers(read(cart("[simulation]", lot + "[simulation]")))
    assert np.array_equal(parameters["cart.mass"], 2.0 * draws["cart.mass"][:, 0] + draws["lot"][:, 0])


def test_one_draw_for_all_components(cart):
    added = (
        '[dispersions."cart.com"]\ndistribution = "normal"\napply = "multiply"\nstd = 0.1\ncommon = true\n[simulation]'
    )
    draws, parameters, _, _ = numbers(read(cart("[simulation]", added)))
    assert draws["cart.com"].shape == (N, 1)
    assert np.array_equal(parameters["cart.com"], draws["cart.com"] * [0.0, 0.1, 0.0])


@pytest.mark.parametrize(
    "nominal", ["[0.1, 0.2, 0.25]", "[[0.3, 0.05, 0], [0.05, 0.2, 0.02], [0, 0.02, 0.25]]", "[0.0, 0.2, 0.2]"]
)
@pytest.mark.parametrize("how", ["sigma = 1.0", "sigma = 1.0\ncommon = true", "tilt"])
def test_inertias_stay_physical(cart, nominal, how):
    kind = (
        'distribution = "normal"\napply = "tilt"\nstd = 1.0' if how == "tilt" else f'distribution = "lognormal"\n{how}'
    )
    path = cart(
        "inertia = [0.1, 0.2, 0.25]",
        f"inertia = {nominal}",
        "[simulation]",
        f'[dispersions."cart.inertia"]\n{kind}\n[simulation]',
    )
    study = read(path)
    draws, parameters, _, _ = numbers(study)
    inertia = parameters["cart.inertia"]
    mbs.vary(study.model, {"cart.inertia": inertia})  # raises where one is not the inertia of a body
    G, G0 = moments(inertia), moments(np.asarray(mbs.get(study.model, "cart.inertia"))[None])[0]
    assert np.all(G > -1e-12)
    assert np.std(inertia) > 0
    if how == "tilt":
        assert np.allclose(G, G0, atol=1e-12)
    elif "common" in how:
        assert np.allclose(G, draws["cart.inertia"] * G0, atol=1e-12)
    else:  # the factors belong to the principal axes
        assert np.allclose(np.prod(G, axis=1), np.prod(draws["cart.inertia"], axis=1) * np.prod(G0), atol=1e-12)


def test_a_body_of_which_all_is_dispersed_is_some_body(cart):
    """Its pseudo-inertia, the second moments of its mass with mass and first moments, is positive in every sample; with the
    same factors on the entries of the inertia it is not."""
    added = """
        [dispersions."cart.com"]
        distribution = "normal"
        apply = "add"
        unit = "m"
        std = 0.3
        [dispersions."cart.inertia"]
        distribution = "lognormal"
        sigma = 0.3
        """
    draws, parameters, _, _ = numbers(read(cart("[simulation]", added + "[simulation]")))
    m, c = parameters["cart.mass"], parameters["cart.com"]

    def least(inertia):
        """Least eigenvalue of each pseudo-inertia."""
        own = np.trace(inertia, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - inertia
        second = own + m[:, None, None] * c[:, :, None] * c[:, None, :]
        first = (m[:, None] * c)[:, :, None]
        return np.linalg.eigvalsh(np.block([[second, first], [first.swapaxes(1, 2), m[:, None, None]]]))[:, 0]

    applied = parameters["cart.inertia"]
    assert np.all(least(applied[:, :, None] * np.eye(3) if applied.ndim == 2 else applied) > 0)
    entries = np.array([0.1, 0.2, 0.25]) * draws["cart.inertia"]
    assert 0.05 < np.mean(least(entries[:, :, None] * np.eye(3)) < 0) < 0.95


def test_normal_factors_of_an_inertia_must_not_reach_zero(cart):
    added = '[dispersions."cart.inertia"]\ndistribution = "normal"\nstd = 0.2\n[simulation]'
    with pytest.raises(ValueError, match='negative or zero; use "truncated_normal"'):
        read(cart("[simulation]", added))


def test_directions_tilt_about_both_cross_axes(separation):
    draws, parameters, _, _ = numbers(separation)
    d, angles = parameters["residual.direction"], draws["residual.direction"]
    assert np.allclose(np.linalg.norm(d, axis=1), 1.0, atol=1e-14)
    assert np.allclose(np.arccos(d[:, 0]), np.linalg.norm(angles, axis=1), atol=1e-7)
    off = np.rad2deg(d[:, 1:])
    assert off.std(axis=0) == pytest.approx([0.5, 0.5], rel=0.06)
    assert abs(np.corrcoef(off.T)[0, 1]) < 0.1


def test_placements_of_joints_and_vectors(cart):
    """A joint's frame turned and moved, gravity, a point: what is left out of the example."""
    added = """
[dispersions."rail.parent_pose.rotation"]
distribution = "normal"
unit = "deg"
std = [0.0, 0.0, 2.0]
[dispersions."rail.child_pose.position"]
distribution = "normal"
unit = "mm"
std = [1.0, 0.0, 0.0]
[dispersions."rail.axis"]
distribution = "uniform"
low = -0.1
high = 0.1
[dispersions.gravity]
distribution = "truncated_normal"
std = 0.1
low = [-0.1, -0.2, -0.3]
high = 0.0
[simulation]"""
    study = read(cart("[simulation]", added))
    draws, parameters, _, _ = numbers(study)
    R = parameters["rail.parent_pose.rotation"]
    assert np.allclose(np.rad2deg(np.arctan2(R[:, 1, 0], R[:, 0, 0])).std(), 2.0, rtol=0.06)
    assert np.allclose(R @ R.transpose(0, 2, 1), np.eye(3), atol=1e-14)
    assert np.allclose(parameters["rail.child_pose.position"].std(axis=0), [1e-3, 0, 0], rtol=0.06)
    assert parameters["rail.axis"].shape == (N, 3) and draws["rail.axis"].shape == (N, 2)
    assert np.all(parameters["gravity"] >= [-0.1, -0.2, -0.3]) and np.all(parameters["gravity"] <= 0)
    mbs.vary(study.model, parameters)  # refuses what a model cannot have


def test_rotation_vector_and_quaternion_agree():
    rng = np.random.default_rng(3)
    for size in (0.0, 1e-9, 0.3, np.pi):
        vector = rng.normal(size=3)
        vector *= size / np.linalg.norm(vector)
        R = np.asarray(rotation_of(jnp.asarray(vector)))
        assert np.allclose(R @ R.T, np.eye(3), atol=1e-14)
        assert np.allclose(np.trace(R), 1 + 2 * np.cos(size), atol=1e-14)
        w, x, y, z = np.asarray(quaternion_times(jnp.array([1.0, 0, 0, 0]), jnp.asarray(vector)))
        assert np.allclose(
            [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]], 4 * w * np.array([x, y, z]), atol=1e-14
        )
        q = rng.normal(size=4)
        turned = np.asarray(quaternion_times(jnp.asarray(q / np.linalg.norm(q)), jnp.asarray(vector)))
        assert np.linalg.norm(turned) == pytest.approx(1.0, abs=1e-14)


def test_tilts_turn_about_the_axes_of_what_is_tilted():
    """Of an attitude that is not the identity: the draw is a rotation vector in its own, turned axes."""
    rng = np.random.default_rng(4)
    q, vector = rng.normal(size=4), jnp.asarray(rng.normal(size=3))
    q /= np.linalg.norm(q)
    R, turn = rotation(q), np.asarray(rotation_of(vector))
    assert np.abs(R @ turn - turn @ R).max() > 0.1
    assert np.allclose(rotation(quaternion_times(jnp.asarray(q), vector)), R @ turn, atol=1e-14)
    way = _tilted_rotation("pose")
    tilted = way.act(Numbers({"pose": jnp.asarray(R)}, None, None), vector)
    assert np.allclose(tilted.parameters["pose"], R @ turn, atol=1e-14)


def rotation(q):
    return np.reshape([float(x) for x in from_quaternion([float(x) for x in q])], (3, 3))


def test_attitude_of_a_free_joint(tmp_path, separation):
    added = '[dispersions."initial.interface.q.attitude"]\ndistribution = "normal"\nunit = "deg"\nstd = [1, 2, 3]\n'
    path = tmp_path / "study.toml"
    path.write_text(separation.content.decode().replace("[simulation]", added + "[simulation]"), encoding="utf-8")
    study = read(path)
    draws, _, q, _ = numbers(study)
    attitude = q[:, study.model.q_slice("interface")][:, 3:]
    assert np.allclose(np.linalg.norm(attitude, axis=1), 1.0, atol=1e-14)
    assert np.allclose(2 * attitude[:, 1:], draws["initial.interface.q.attitude"], atol=1e-3)
    assert np.rad2deg(2 * attitude[:, 1:]).std(axis=0) == pytest.approx([1, 2, 3], rel=0.06)


@pytest.fixture(scope="module")
def one_at_a_time(separation):
    """Outputs of the example's nominal motion, and of a sample per dispersion in which only that one is off nominal."""
    items, dtype = separation.dispersions.items, np.float64
    neutral = [np.full(d.k, d.way.neutral[0]) if d.table.common else d.way.neutral for d in items]
    rows = [np.concatenate(neutral)]
    for i, d in enumerate(items):
        # 2 standard deviations away, or at the upper bound: within the support of each
        c = d.components
        away = np.where(c.kind == 0, c.high, c.location + 2 * c.scale)
        away = np.where(c.kind == 2, np.exp(np.where(c.kind == 2, away, 0)), away)
        rows.append(np.concatenate([*neutral[:i], away, *neutral[i + 1 :]]))
    start, fold = folded(separation.outputs, dtype)

    def one(model, q, v):
        run = mbs.simulate(model, q, v, 1.0, 2e-3, save_every=None, fold=(start, fold))
        return {name: output.result(run.folded[name]) for name, output in separation.outputs.items()} | {"v": run.v[-1]}

    def all_rows(draws):
        model, axes, q, v = instances(separation, draws, dtype)
        return jax.vmap(one, in_axes=(axes, 0, 0))(model, q, v)

    return {name: np.asarray(x) for name, x in jax.jit(all_rows)(jnp.asarray(np.stack(rows))).items()}


@pytest.mark.slow
def test_every_dispersion_of_the_example_reaches_the_outputs(separation, one_at_a_time):
    """The negative control of each: what is switched off stays at the nominal value (row 0), what is on does not."""
    silent = []
    for i, d in enumerate(separation.dispersions.items, start=1):
        moved = {name: abs(float(x[i] - x[0])) for name, x in one_at_a_time.items() if x.ndim == 1}
        if not any(change > 1e-7 for change in moved.values()):
            silent.append(d.name)
    assert not silent


def test_the_example_moves_as_mechanics_wants(separation, one_at_a_time):
    """Signs that are known without a simulation."""
    row = {d.name: i for i, d in enumerate(separation.dispersions.items, start=1)}
    speed = one_at_a_time["separation_velocity"] - one_at_a_time["separation_velocity"][0]
    assert speed[row["pusher_1.preload"]] > 0, "more preload, more energy"
    assert speed[row["pusher_1.stiffness"]] < 0, "at the same preload a stiffer spring gives less"
    assert speed[row["payload.mass"]] < 0, "the same energy moves more mass"
    assert speed[row["residual.thrust"]] < 0, "the stage follows"


@pytest.mark.parametrize(("joint", "fits", "other"), [("prismatic", "N/m", "N m/rad"), ("revolute", "N m/rad", "N/m")])
def test_the_unit_of_a_springs_stiffness_is_that_of_its_joint(cart, joint, fits, other):
    spring = 'type = "torsion_spring"\njoint = "rail"\nstiffness = 50.0\n\n[initial.rail]'
    edits = ['"prismatic"', f'"{joint}"', "[initial.rail]", f'[[mechanism.forces]]\nname = "coil"\n{spring}']
    table = '[dispersions."coil.stiffness"]\ndistribution = "normal"\nstd = 1.0\nunit = "{}"\n[simulation]'
    shown = ["< 0.9 m/s", "> -1 rad/s", "> 90 mm", "> 90 deg"] if joint == "revolute" else []
    read(cart(*edits, *shown, "[simulation]", table.format(fits)))
    with pytest.raises(InputError, match=f'"{other}" measures'):
        read(cart(*edits, *shown, "[simulation]", table.format(other)))


class Own(Distribution):
    distribution: str = named()
    width: float = 1.0


@pytest.mark.parametrize(
    ("distribution", "said"),
    [
        (Normal(mean=2.0, std=(0.1, 0.2), unit="mm"), "normal, mean 2, std 0.1, 0.2 mm"),
        (Normal(covariance=[[1.0, 0.5], [0.5, 2.0]]), "normal, covariance [[1.0, 0.5], [0.5, 2.0]]"),
        (TruncatedNormal(std=1.0, low=-2.0, unit="deg", common=True), "truncated normal, std 1 deg, low -2, common"),
        (Uniform(low=0.0, high=1.0, draw="lot"), "uniform, 0 to 1, same draws as all of lot"),
        (Lognormal(sigma=0.2, median=3.0, unit="g", known=True), "lognormal, sigma 0.2, median 3 g, known on the day"),
        (Discrete(values=[1.0, 2.0], weights=[1.0, 3.0], unit="mm"), "one of 1, 2 mm, weights 1, 3"),
        (Empirical(file="a.csv", columns=["x"], between=True), "measured: x of a.csv, and between them"),
        (
            Mixture(parts=[{"weight": w, "of": Uniform(low=0.0, high=w)} for w in (1.0, 2.0)], unit="N"),
            "mixture N: 1 of uniform, 0 to 1; 2 of uniform, 0 to 2",
        ),
        (Own(width=2.0, unit="m"), "own, width 2 m"),
    ],
)
def test_every_distribution_is_described_by_its_class(distribution, said):
    assert described(SimpleNamespace(table=distribution)) == said
