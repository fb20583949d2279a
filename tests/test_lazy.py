"""Packages that import nothing until one of their names is used."""

import subprocess
import sys

import pytest

import jaxmbs
import jaxmbs.study


@pytest.mark.slow
def test_public_names_go_before_files_of_the_same_name():
    code = "from jaxmbs.simulate import Status; from jaxmbs.study.runs.run import run; "
    code += "import jaxmbs as mbs, jaxmbs.study as s; "
    code += "print(callable(mbs.simulate), s.run is run, mbs.study is s, 'Revolute' in dir(mbs))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.split() == ["True"] * 4


def test_importing_the_package_imports_no_jax():
    code = "import jaxmbs, jaxmbs.study, sys; print('jax' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.split() == ["False"] * 2


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="module 'jaxmbs' has no attribute 'nonsense'"):
        _ = jaxmbs.nonsense
    assert "report" in dir(jaxmbs.study)


def test_what_has_moved_is_found_at_its_old_name():
    for old in set(dir(jaxmbs.textbook)) - set(dir(jaxmbs)):
        if old[0] != "_":
            with pytest.warns(DeprecationWarning, match=f"mbs.{old} is deprecated; use mbs.textbook.{old}"):
                assert getattr(jaxmbs, old) is getattr(jaxmbs.textbook, old)


def test_hinge_reactions_are_joint_reactions():
    model = jaxmbs.library.double_pendulum().build()
    with pytest.warns(DeprecationWarning, match="joint_reactions with a method"):
        old = jaxmbs.textbook.hinge_reactions
    assert (old(model, [0.1, 0.2], [0.3, 0.4]) == jaxmbs.joint_reactions(model, [0.1, 0.2], [0.3, 0.4],
                                                                         method="configuration")).all()  # fmt: skip


def test_dir_shows_public_names_alone():
    shown = {name for name in dir(jaxmbs) if not name.startswith("__")}
    assert {"Mechanism", "design", "study", "textbook", "simulate"} <= shown
    assert not shown & {"TYPE_CHECKING", "_lazy", "lazy", "shadowing", "public", "batching", "errors", "write_out"}
