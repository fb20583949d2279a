"""That every seeded fault still applies; `make test-faults` runs them."""

from collections import Counter

import pytest

from tests.faults.catalogue import ROOT, faults, faulty, missing_tests


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_applies_and_names_tests_that_exist(fault):
    _, text = faulty(fault)
    assert text != (ROOT / "jaxmbs" / fault.file).read_text(encoding="utf-8")
    assert bool(fault.tests) != bool(fault.equivalent), "tests that notice it, or the reason why none can"
    assert not missing_tests(fault)


def test_names_are_unique():
    assert [name for name, times in Counter(f.name for f in faults()).items() if times > 1] == []


def test_every_package_has_faults():
    packages = {str(p.parent.relative_to(ROOT / "jaxmbs")) for p in (ROOT / "jaxmbs").rglob("*.py")} - {"."}
    assert packages - {f.package for f in faults()} == set()
