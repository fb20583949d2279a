"""The benchmarks compare equal things, say what is missing, and lose nothing they measured."""

import numpy as np
import pytest

from benchmarks import peers, suite


@pytest.mark.parametrize("function", [suite.FORWARD, suite.INVERSE, suite.MASS])
def test_peers_agree(function):
    row = suite.measure(suite.Case(function, "arm7", "float64", 3), repeats=7)
    assert row.times["jaxmbs"][0] > 0 and "Pinocchio" in row.errors
    assert ("MuJoCo" in row.errors) == (function == suite.FORWARD)
    assert all(error < 1e-9 for error in row.errors.values())
    assert "brax" in row.absent  # not installed with the tests, or not measured with three instances


def test_a_free_base_in_pinocchio_and_what_it_cannot_do():
    case = suite.Case(suite.FORWARD, "humanoid30", "float64", 2)
    model = suite.robot("humanoid30")
    arrays = suite.inputs(model, case)
    run, as_ours = peers.Pinocchio(model, 1).task(suite.FORWARD, *arrays)
    expected = as_ours(run())
    ours = np.asarray(suite.own(model, case, arrays).run()())
    assert np.abs(ours - expected).max() < 1e-9 * np.abs(expected).max()
    with pytest.raises(peers.Absent, match="no rollout"):
        peers.Pinocchio(model, 1).task(suite.ROLLOUT, *arrays)
    with pytest.raises(peers.Absent, match="another frame"):
        peers.MuJoCo(model, 1).task(suite.FORWARD, *arrays)


def test_results_are_kept_and_merged(tmp_path):
    path = tmp_path / "machine.json"
    first, second = suite.CASES[0], suite.CASES[1]
    row = suite.Row(first, 1.0, {"jaxmbs": (1.0, 0.5, 2.0), "Pinocchio": (3.0, 2.0, 4.0)}, {"Pinocchio": 1e-14})
    suite.keep(path, suite.machine(), {first: row})
    suite.keep(path, suite.machine(), {second: suite.Row(second, 2.0, {"jaxmbs": (5.0, 5.0, 5.0)}, {})})
    kept = suite.kept(path)
    assert list(kept) == [first, second] and kept[first].ratio("Pinocchio") == 3.0


def test_absent_peers_name_the_remedy():
    with pytest.raises(peers.Absent, match=r"no_such_library is not installed \(pip install 'jaxmbs\[bench\]'\)"):
        peers.imported("no_such_library")
