"""The example script runs and finds both formulations equal."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "absolute_coordinates.py"


@pytest.mark.slow
def test_script(tmp_path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("absolute_coordinates", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    image = tmp_path / "figures" / "picture.png"
    assert module.main(image, 0.05) < 1e-9
    assert image.stat().st_size > 20_000
