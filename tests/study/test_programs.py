"""What programs of a study with functions of one's own are kept by: whatever these read; what is not known is said."""

from dataclasses import replace

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching import disk_cache
from jaxmbs.batching.content import NotKnownError, digest
from jaxmbs.cli.common import Voice, say_what_is_not_kept
from jaxmbs.study import read
from jaxmbs.study.problem.programs import content
from jaxmbs.study.reliability.rare import limit_state_of
from jaxmbs.study.samples.batch import compiled

OTHER = """
[[mechanism.bodies]]
name = "other"
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[[mechanism.joints]]
name = "second"
type = "prismatic"
axis = [0.0, 1.0, 0.0]
parent = "world"
child = "other"
[[mechanism.constraints]]
name = "bound"
type = "holonomic"
fn = "own.level"
[initial.rail]"""
MODULE = """
import numpy as np
RATIO = 0.5
TABLE = np.loadtxt({data!r}, ndmin=1)

def helper(x):
    return 1.0 * x

def made(factor):
    return lambda x: factor * x

inner = made(1.0)

def level(model, t, q, v, shift=0.0):
    return q[0] - RATIO * helper(inner(q[1])) + TABLE[0] * shift

def stateful(model, t, q, v):
    return q[0] - float(open("number").read()) * q[1]
"""


@pytest.fixture
def study(cart, tmp_path):
    """Function (texts of the module and what is in their place) -> study."""

    def made(*edits, data="1.0", use="own.level"):
        (tmp_path / "data.txt").write_text(data, encoding="utf-8")
        text = MODULE.format(data=str(tmp_path / "data.txt"))
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "own.py").write_text(text, encoding="utf-8")
        file = cart(
            "criteria", 'modules = ["own.py"]\ncriteria', "[initial.rail]", OTHER.replace("own.level", use),
            "v = [0.05]", "v = [0.0]", "t_end = 0.2", "t_end = 0.02", 'low = -0.1\nhigh = 0.1', "low = 0.0\nhigh = 0.0",
        )  # fmt: skip
        return read(file, trust=True)

    return made


def test_whatever_a_function_reads_is_part_of_a_program(study):
    edits = [
        ("RATIO = 0.5", "RATIO = 0.25"),
        ("1.0 * x", "2.0 * x"),
        ("made(1.0)", "made(3.0)"),
        ("shift=0.0", "shift=1.0"),
        ("np.loadtxt", "2 * np.loadtxt"),
    ]
    found, why = content(study())
    several = [found, *(content(study(*edit))[0] for edit in edits)]
    assert why == "" and None not in several and len({tuple(x) for x in several}) == len(several)
    assert content(study())[0] == found


def test_data_that_a_module_reads_when_it_is_imported(study, monkeypatch):
    """One process runs a module once; another one may find other data with the same text."""
    from jaxmbs.io import catalogue

    found = []
    for data in ("1.0", "2.0", "1.0"):
        monkeypatch.setattr(catalogue, "_RUN", {})
        found.append(content(study(data=data))[0])
    assert found[0] == found[2] != found[1]
    assert found[0][:2] == found[1][:2], "the file and its module are the same"


def test_what_is_not_kept_is_said(study, monkeypatch, tmp_path, capsys):
    unknown = study(use="own.stateful")
    assert content(unknown) == (None, "own.stateful: open() depends on more than the code")
    say_what_is_not_kept(unknown, Voice())
    assert capsys.readouterr().err == "", "nothing is kept where there is no folder"
    monkeypatch.setattr(disk_cache, "FOLDER", tmp_path)
    for voice in (Voice(), Voice(quiet=True)):
        say_what_is_not_kept(unknown, voice)
    said = capsys.readouterr().err
    assert said.count("cannot be stored") == 1 and "own.stateful: open()" in said
    say_what_is_not_kept(study(), Voice())
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_programs_with_functions_of_ones_own_are_kept(study, monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache, "FOLDER", tmp_path / "programs")
    monkeypatch.setattr(disk_cache, "COUNT", {"made": 0, "read": 0})
    first = compiled(study(), 64)(0, 1)
    again = compiled(study(), 64)(0, 1)
    assert disk_cache.COUNT == {"made": 2, "read": 2}, "that of the keys, that of the samples"
    assert all(np.array_equal(first[name], again[name], equal_nan=True) for name in first)
    changed = compiled(study("RATIO = 0.5", "RATIO = 0.25"), 64)(0, 1)
    assert disk_cache.COUNT == {"made": 4, "read": 2}
    assert not np.array_equal(first["speed"], changed["speed"])


@pytest.mark.slow
def test_the_program_of_rare_is_kept(cart, monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache, "FOLDER", tmp_path / "programs")
    monkeypatch.setattr(disk_cache, "COUNT", {"made": 0, "read": 0})
    path, u, found = cart("t_end = 0.2", "t_end = 0.02"), np.zeros((2, 3)), []
    for place in (0, 0, 1):
        study = read(path)
        found.append(limit_state_of(study, study.criteria[place])(u))
    assert disk_cache.COUNT == {"made": 2, "read": 4}, "one program for all criteria"
    assert np.array_equal(found[0], found[1])


def test_a_study_whose_parts_were_replaced_is_known_by_its_own_file(study):
    one = study()
    assert digest({"x": one}) == digest({"x": study()}) != digest({"x": one.of_size(7)})
    heavy = replace(one, model=mbs.set(one.model, {"gravity": (0.0, 0.0, -1.0)}))
    longer = replace(one, simulation={"t_end": 0.3})
    assert len({digest({"x": x}) for x in (one, heavy, longer)}) == 3
    assert digest({"x": longer}) == digest({"x": replace(one, simulation={"t_end": 0.3})})
    bounds = replace(one, criteria=[replace(c, bounds=(("<", 1.0),)) for c in one.criteria])
    with pytest.raises(NotKnownError, match="does not agree with its text"):
        digest({"x": bounds})
