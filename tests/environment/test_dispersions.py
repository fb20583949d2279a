"""Dispersions of the air: measured winds by whole rows, and coefficients that are scaled together."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.study import Empirical, Normal, Study
from jaxmbs.study.samples.batch import draws_of, numbers_of, precision

SOUNDINGS = np.array(
    [[2.0, 10.0, 30.0, 1.0, 5.0, -4.0], [0.0, -3.0, 12.0, 4.0, 4.5, 9.0], [5.0, 8.0, 41.0, -2.0, 0.5, 1.5]]
)


def test_rows_of_a_file_are_winds_at_all_heights(tmp_path):
    path = tmp_path / "soundings.csv"
    np.savetxt(path, SOUNDINGS, delimiter=",", header="e0,e5,e10,n0,n5,n10", comments="", encoding="utf-8")
    mech = mbs.Mechanism("ball", gravity=(0, 0, -9.81))
    mech.add_point_mass("ball", 1.0)
    wind = mbs.Wind(height=(0.0, 5e3, 10e3), east=(1.0, 1.0, 1.0), north=(1.0, 1.0, 1.0))
    mech.set_environment(atmosphere=mbs.StandardAtmosphere(), wind=wind)
    mech.add_force("air", mbs.Aerodynamics("ball", area=0.01, coefficients=mbs.Coefficients(drag=(0.5,))))
    of = {"distribution": "empirical", "file": str(path), "draw": "sounding", "apply": "replace"}
    study = Study(
        model=mech.build(), simulation={"t_end": 0.1, "dt": 0.05},
        dispersions={
            "wind.east": Empirical(**of, columns=["e0", "e5", "e10"]),
            "wind.north": Empirical(**of, columns=["n0", "n5", "n10"]),
        },
        outputs={"height": {"type": "flight", "body": "ball"}},
    )  # fmt: skip
    numbers = numbers_of(study, draws_of(study, range(64), precision()), precision()).parameters
    rows = np.concatenate([numbers["wind.east"], numbers["wind.north"]], axis=1)
    which = [int(np.flatnonzero((row == SOUNDINGS).all(1)).item()) for row in rows]
    assert sorted(set(which)) == list(range(len(SOUNDINGS))), "each row is one sounding, and all of them occur"


@pytest.mark.parametrize("draw", ["", "wind tunnel"])
def test_a_coefficient_of_several_bodies_is_scaled_as_a_whole(draw):
    """Each coefficient is a group of its own; with a name for the draw, both bodies have the same factor."""
    mech, drag = mbs.Mechanism("balls", gravity=(0, 0, -9.81)), (0.4, 0.5, 1.0)
    mech.set_environment(atmosphere=mbs.StandardAtmosphere())
    table = mbs.Coefficients(mach=(0.0, 0.8, 1.2), drag=drag, lift=(0.1, 0.2, 0.1))
    for body in ("a", "b"):
        mech.add_point_mass(body, 1.0)
        mech.add_force(f"air_{body}", mbs.Aerodynamics(body, area=0.01, coefficients=table))
    factor = Normal(mean=1.0, std=0.1, apply="multiply", common=True, draw=draw)
    scattered = {f"air_{body}.coefficients.drag": factor for body in ("a", "b")}
    outputs = {"height": {"type": "flight", "body": "a"}}
    simulation = {"t_end": 1.0, "dt": 0.5}
    study = Study(model=mech.build(), simulation=simulation, dispersions=scattered, outputs=outputs)
    found = numbers_of(study, draws_of(study, range(50), precision()), precision()).parameters
    a, b = (np.asarray(found[name]) for name in scattered)
    assert np.allclose(a / drag, (a / drag)[:, :1], rtol=1e-14) and np.std(a[:, 0]) > 0.02
    assert np.array_equal(a, b) is bool(draw)
    assert set(found) == set(scattered)
