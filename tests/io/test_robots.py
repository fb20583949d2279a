"""Every robot of a public collection, where it is installed (`make test-robots`)."""

import pytest

from tests.io.robots import collection, examined

REFUSED = {"ur3.urdf": "has no links", "romeo_laas_small.urdf": "moves no mass"}


@pytest.mark.slow
@pytest.mark.skipif(not collection(), reason="example-robot-data is not installed")
@pytest.mark.parametrize("path", collection(), ids=lambda p: f"{p.parts[-3]}-{p.stem}")
def test_as_pinocchio_reads_it(path):
    _, worst, remarks = examined(path)
    if path.name in REFUSED:
        assert worst is None and REFUSED[path.name] in remarks
    else:
        assert worst is not None and worst.max() < 1e-10, remarks
