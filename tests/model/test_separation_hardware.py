"""Connectors with measured forces, and cables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import read
from tests.cases import relative
from tests.study.conftest import CART

EXTENSIONS, FORCES = (0.0, 0.1, 0.3), (50.0, -10.0, -20.0)


def slider(element, mass=2.0):
    mech = mbs.Mechanism("slider", gravity=(0.0, 0.0, 0.0))
    mech.add_body("b", mass, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), "world", "b")
    mech.add_force("element", element)
    return mech.build()


def plug(extensions=EXTENSIONS, forces=FORCES, **ends):
    return mbs.Connector("world", "b", (0, 0, 0), (0, 0, 0), (1, 0, 0), extensions, forces, **ends)


def force(model, x, v=0.0):
    return -float(mbs.bias_forces(model, np.array([x]), np.array([v]))[0])


def test_a_connector_follows_its_table():
    model = slider(plug())
    for x in (-0.2, 0.0, 0.04, 0.1, 0.25, 0.2999):
        assert force(model, x) == pytest.approx(np.interp(x, EXTENSIONS, FORCES), rel=1e-12)
    assert force(model, 0.3) == 0 == force(model, 2.0)


def test_a_connector_stores_the_work_that_it_still_does():
    model = slider(plug())
    for x in (-0.2, 0.0, 0.04, 0.1, 0.25, 0.31):
        grid = np.unique([x, *(s for s in EXTENSIONS if s > x), max(x, 0.3)])
        work = np.trapezoid(np.interp(grid, EXTENSIONS, FORCES), grid)
        assert float(mbs.energy(model, np.array([x]), np.zeros(1))[1]) == pytest.approx(work, rel=1e-12, abs=1e-12)


def test_the_speed_after_a_connector_and_its_derivatives():
    """By the work of the table, whose numbers count with the weights of the trapezoidal rule."""
    model = slider(plug())

    def speed(forces):
        run = mbs.simulate(mbs.set(model, {"element.forces": forces}), [-0.05], [1.0], t_end=0.6, dt=2e-3)
        return run.v[-1, 0]

    forces = jnp.array(FORCES)
    weights = np.array([0.05 + 0.05, 0.05 + 0.1, 0.1])
    want = np.sqrt(1.0 + weights @ np.array(FORCES))  # m v^2 / 2 with m = 2
    value, slope = jax.value_and_grad(speed)(forces)
    assert float(value) == pytest.approx(want, rel=1e-8)
    np.testing.assert_allclose(slope, weights / (2 * want), rtol=1e-7)
    np.testing.assert_allclose(jax.jacfwd(speed)(forces), slope, rtol=1e-10)


def test_a_connector_needs_an_increasing_table():
    with pytest.raises(mbs.ModelError, match="forces has 3 numbers, extensions has 2"):
        slider(plug(extensions=(0.0, 0.1)))
    with pytest.raises(mbs.ModelError, match="extensions: the numbers must increase"):
        slider(plug(extensions=(0.0, 0.2, 0.1)))


def test_a_cable_pulls_and_never_pushes():
    model = slider(mbs.Cable("world", "b", stiffness=200.0, rest_length=1.0, damping=4.0))
    assert force(model, 0.9, 5.0) == 0 == force(model, -0.9, -5.0)
    assert force(model, 1.1) == pytest.approx(-20.0) and force(model, -1.1) == pytest.approx(20.0)
    assert force(model, 1.1, 2.0) == pytest.approx(-28.0)
    assert force(model, 1.1, -6.0) == 0  # its damper would push
    assert np.isfinite(jax.jacfwd(lambda q: mbs.forward_dynamics(model, q, jnp.zeros(1)))(jnp.zeros(1))).all()


def test_a_load_rebounds_from_a_cable():
    """Half a period of the spring: it comes back as fast as it came, and the time tells the stiffness."""
    model = slider(mbs.Cable("world", "b", stiffness=200.0, rest_length=1.0))

    def end(stiffness):
        run = mbs.simulate(mbs.set(model, {"element.stiffness": stiffness}), [0.5], [1.0], t_end=1.2, dt=2e-3)
        return jnp.array([run.q[-1, 0], run.v[-1, 0]])

    def closed(stiffness):
        return jnp.array([1.0 - (1.2 - 0.5 - np.pi * jnp.sqrt(2.0 / stiffness)), -1.0])

    np.testing.assert_allclose(end(200.0), closed(200.0), rtol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(end)(200.0)[0], jax.jacfwd(closed)(200.0)[0], rtol=1e-7)
    np.testing.assert_allclose(jax.jacrev(end)(200.0)[0], jax.jacfwd(closed)(200.0)[0], rtol=1e-7)


def test_a_damped_cable_takes_energy_out_and_lets_go_early():
    model = slider(mbs.Cable("world", "b", stiffness=200.0, rest_length=1.0, damping=15.0))
    run = mbs.simulate(model, [0.5], [1.0], t_end=1.2, dt=2e-3)
    assert -0.9 < run.v[-1, 0] < -0.2 and np.abs(run.energy_error).max() < 1e-8
    tension = np.array([force(model, x, v) for x, v in zip(run.q[:, 0], run.v[:, 0], strict=True)])
    assert (tension <= 0).all() and tension.min() < -10
    assert ((tension == 0) & (run.q[:, 0] > 1.0)).any()  # still long, but already slack


TABLE = "extension_mm, force\n0, 50\n100, -10\n300, -20\n"
PLUG = """
[[mechanism.forces]]
name = "plug"
type = "connector"
body_a = "world"
body_b = "cart"
point_a = [0.0, 0.0, 0.0]
point_b = [0.0, 0.0, 0.0]
direction = [1.0, 0.0, 0.0]
extensions = { file = "plug.csv", column = "extension_mm", factor = 0.001 }
forces = { file = "plug.csv", column = "force" }
"""


def written(folder, old="", new=""):
    (folder / "plug.csv").write_text(TABLE, encoding="utf-8")
    path, text = folder / "cart.toml", CART.replace("\n[initial.rail]", PLUG + "\n[initial.rail]")
    assert old in text and PLUG in text
    path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return path


def test_a_column_of_a_file_in_place_of_a_list(tmp_path):
    model = mbs.load(written(tmp_path))
    np.testing.assert_allclose(mbs.get(model, "plug.extensions"), EXTENSIONS)
    np.testing.assert_allclose(mbs.get(model, "plug.forces"), FORCES)
    mbs.save(model, tmp_path / "whole.toml")
    assert mbs.load(tmp_path / "whole.toml") == model


def test_units_of_columns(tmp_path):
    """Every quantity that a table can have: lengths, forces, times, angles; numbers without a unit stay as they are."""
    (tmp_path / "data.csv").write_text(
        "x_mm,x_inch,t_ms,f_kN,a_deg,one\n0,0,0,2,-30,1\n50.8,2,250,-1,60,0.5\n", encoding="utf-8"
    )
    tables = f"""{CART[: CART.index("[initial.rail]")]}
[[mechanism.forces]]
name = "plug"
type = "tabulated_spring"
body_a = "world"
body_b = "cart"
lengths = {{ file = "data.csv", column = "COLUMN", unit = "UNIT" }}
forces = {{ file = "data.csv", column = "f_kN", unit = "kN" }}
[[mechanism.forces]]
name = "motor"
type = "thruster"
body = "cart"
thrust = 1.0
times = {{ file = "data.csv", column = "t_ms", unit = "ms" }}
values = {{ file = "data.csv", column = "one", unit = "1" }}
[[mechanism.sensors]]
name = "encoder"
type = "encoder"
joint = "rail"
[[mechanism.controllers]]
name = "law"
fn = "laws.gain_table"
period = 0.1
reads = "encoder"
writes = "motor.thrust"
parameters = {{ times = [0.0], gains = {{ file = "data.csv", column = "a_deg", unit = "deg" }} }}
"""
    for column, unit in (("x_mm", "mm"), ("x_inch", "inch")):
        (tmp_path / "m.toml").write_text(tables.replace("COLUMN", column).replace("UNIT", unit), encoding="utf-8")
        model = mbs.load(tmp_path / "m.toml")
        wanted = {"plug.lengths": [0.0, 0.0508], "plug.forces": [2e3, -1e3], "motor.times": [0.0, 0.25],
                  "motor.values": [1.0, 0.5], "law.gains": [-np.pi / 6, np.pi / 3]}  # fmt: skip
        for name, numbers in wanted.items():
            np.testing.assert_allclose(mbs.get(model, name), numbers, rtol=1e-14)


def test_the_file_belongs_to_the_study(tmp_path):
    study = read(written(tmp_path))
    assert study.files == {"plug.csv": TABLE.encode()}
    other = tmp_path / "elsewhere"
    other.mkdir()
    mbs.study.save(study, other / "study.toml")
    assert read(other / "study.toml") == study
    (other / "plug.csv").write_text(TABLE.replace("50", "51"), encoding="utf-8")
    assert read(other / "study.toml").hashes != study.hashes


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('column = "force"', 'column = "forces"', r'mechanism\.forces\[1\]\.forces: "plug\.csv" has no column "forces"'),
        ("factor = 0.001", "scale = 0.001", r"extensions\.scale: unknown key .*; allowed keys: file, column, unit, factor"),
        ("factor = 0.001", 'factor = "mm"', r"extensions\.factor: needs one number, got 'mm'"),
        ("factor = 0.001", 'factor = 1.0, unit = "mm"', r"\.extensions: unit and factor both convert .* leave one of the"),
        ("factor = 0.001", 'unit = "kN"', r"\.extensions: \"kN\" measures force, not length; use one of: m, mm, .*, inch"),
        ("factor = 0.001", 'unit = "deg"', r"\.extensions: \"deg\" measures angle, not length"),
        ("factor = 0.001", 'unit = "in"', r'\.extensions: "in" is not a unit; write "inch"'),
        ("factor = 0.001", 'unit = "degC"', r'\.extensions: "degC" is not a unit; its zero is not that of SI; write the'),
        ("factor = 0.001", 'unit = "milimeter"', r'\.extensions: "milimeter" is not a unit; '),
        ("factor = 0.001", "unit = 2", r"\.extensions\.unit: .*a valid string"),
        ('column = "force"', "column = 2", r"forces\.column: .*a valid string"),
        ('forces = { file = "plug.csv"', 'forces = { file = "plag.csv"', "cannot be read from the folder of the file"),
        ('forces = { file = "plug.csv"', 'forces = { file = "../plug.csv"', "forces.file: .* is not a bare file name"),
        ('column = "force" }', 'colum = "force" }', "or a table with the keys `file` and `column`"),
    ],
)  # fmt: skip
def test_a_wrong_column_is_an_error_with_its_path(old, new, said, tmp_path):
    with pytest.raises(InputError, match=said):
        mbs.load(written(tmp_path, old, new))


def test_a_tabulated_spring_follows_its_table():
    """With an affine table it is a linear spring; the energy is kept beyond both ends of a table with corners."""
    at = {"point_a": (0.1, 0.0, 0.0), "point_b": (1.0, 0.5, 0.0)}
    table = {"lengths": (0.2, 3.0), "forces": (40.0 * (0.2 - 0.7), 40.0 * (3.0 - 0.7))}
    straps = (
        mbs.TabulatedSpring("a", "world", **at, damping=3.0, **table),
        mbs.LinearSpring("a", "world", **at, damping=3.0, stiffness=40.0, rest_length=0.7),
    )
    found = []
    for strap in straps:
        mech = mbs.Mechanism("pair", gravity=(0.0, 0.0, 0.0))
        mech.add_body("a", mass=2.0, inertia=(0.1, 0.1, 0.1))
        mech.add_joint("flight", mbs.Free(), "world", "a")
        mech.add_force("strap", strap)
        found.append(mbs.forward_dynamics(mech.build(), [0, 0.1, 0, 0.9, 0.1, 0.2, 0.3], [0.3, 0, 0.5, 0.2, 0.0, 1.0]))
    assert relative(*found) < 1e-13
    strap = mbs.TabulatedSpring("b", "world", point_b=(0, 0.7, 0), lengths=(0.8, 1.0, 1.2), forces=(-10.0, 0.0, 30.0))
    run = mbs.simulate(slider(strap), [0.0], [3.0], t_end=1.5, dt=0.005)
    assert run.status == mbs.Status.OK and np.abs(run.energy_error).max() < 1e-6
    length = np.sqrt(np.asarray(run.q)[:, 0] ** 2 + 0.49)
    assert length.min() < 0.75 and length.max() > 1.3


def test_a_unit_of_numbers_without_one_is_told_as_a_factor(tmp_path):
    """Such as the column of a thrust curve, which is multiplied by the field `thrust`."""
    (tmp_path / "motor.csv").write_text("t,kN\n0,1\n1,2\n", encoding="utf-8")
    motor = """
[[mechanism.forces]]
name = "motor"
type = "thruster"
body = "cart"
thrust = 1.0
times = { file = "motor.csv", column = "t" }
values = { file = "motor.csv", column = "kN", unit = "kN" }
"""
    path = tmp_path / "m.toml"
    path.write_text(CART[: CART.index("[initial.rail]")] + motor, encoding="utf-8")
    with pytest.raises(
        InputError, match=r'\.values: "kN" measures force, but .* write factor = 1000\.0 in place of the'
    ):
        mbs.load(path)
    path.write_text(path.read_text(encoding="utf-8").replace('unit = "kN"', "factor = 1000.0"), encoding="utf-8")
    np.testing.assert_allclose(mbs.get(mbs.load(path), "motor.values"), [1e3, 2e3])
