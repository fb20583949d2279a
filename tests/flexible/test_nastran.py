"""Superelements of NASTRAN, from the files that come with the tests of pyYeti: two parts of a space station, which are
joined at four grids, against the modes that NASTRAN printed for the whole."""

import re
from pathlib import Path

import numpy as np
import pandas
import pytest
import scipy.linalg

import jaxmbs as mbs
from jaxmbs.building.float_rows import rows_at
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.flexible_bodies.nastran import _matrices
from tests.cases import relative

with np.printoptions():  # which pyYeti changes
    pyyeti = pytest.importorskip("pyyeti", reason="needs pip install 'jaxmbs[nastran]'")
    pytest.importorskip("pyyeti.nastran")  # or it would be there only once another test has imported it
FILES = Path(pyyeti.__file__).parent / "tests" / "nas2cam_extseout"


def part(name, **given):
    return mbs.Part.from_nastran(FILES / f"{name}.asm", FILES / f"{name}.op4", **given)


def printed():
    """The eigenvalues [1/s²] in the output of the run."""
    text = (FILES / "assemble.out").read_text(encoding="latin-1")
    rows = text[text.index("R E A L   E I G E N V A L U E S") :].splitlines()[3:60]
    return np.array([float(row.split()[2]) for row in rows if re.match(r"\s+\d+\s+\d+\s+-?\d", row)])


@pytest.mark.slow
def test_two_superelements_have_the_modes_of_the_whole():
    """All 48 elastic ones, to the digits that NASTRAN printed; six of a rigid body."""
    mech = mbs.Mechanism("station")
    stiffness = []
    for name in ("inboard", "outboard"):
        mech.add_flexible_body(name, part(name), damping=0.0)
    mech.add_joint("root", mbs.Free(), "world", "inboard")
    mech.add_joint("at_3", mbs.Fixed(), "inboard", "outboard")
    for grid in (11, 19, 27):
        mech.close_loop(f"at_{grid}", mbs.Fixed(), f"inboard_{grid}", f"outboard_{grid}")
    model = mech.build()
    stiffness = np.zeros(model.nv)
    for name in ("inboard", "outboard"):
        stiffness[model.v_slice(name)] = (2 * np.pi * mbs.get(model, f"{name}.frequency")) ** 2
    q = model.neutral().tolist()
    A = np.array(scalar.mass_matrix(model, q), float)
    allowed = scipy.linalg.null_space(rows_at(Tree(model), q)[1])
    found = scipy.linalg.eigh(allowed.T @ (stiffness[:, None] * allowed), allowed.T @ A @ allowed, eigvals_only=True)
    wanted = printed()
    assert len(found) == len(wanted) == 54
    assert np.abs(found[:6]).max() < 1e-12 * found[-1]
    assert relative(found[6:] / wanted[6:], np.ones(48)) < 6e-7  # half a unit of the last of seven digits


def test_units_names_and_what_is_refused(tmp_path):
    own, metric = (
        part("outboard"),
        part("outboard", length=0.0254, mass=175.127, names={"hinge": 19}, frame=11, modes=8),
    )
    assert metric.nodes == ("hinge",) and metric.modes == 8
    assert metric.mass == pytest.approx(own.mass * 175.127)
    assert np.linalg.eigvalsh(metric.inertia) == pytest.approx(np.linalg.eigvalsh(own.inertia) * 175.127 * 0.0254**2)
    assert metric.positions[0] == pytest.approx([0, 0, -300 * 0.0254])
    with pytest.raises(mbs.ModelError, match="'tip' is grid 5; the boundary grids are"):
        part("outboard", names={"tip": 5})
    with pytest.raises(mbs.ModelError, match="cannot be read"):
        mbs.Part.from_nastran(FILES / "outboard.asm", tmp_path / "none.op4")
    with pytest.raises(mbs.ModelError, match="all six of each grid must be in the boundary"):
        part("reduced_bset_notall6")


def test_rows_of_output_transformation_matrices():
    """The first rows of mug1 are those of the boundary grids, in the axes of each; forces of equal energies, 1 J."""
    length, mass = 0.0254, 175.127
    at = [6 * k + c for k in range(4) for c in range(3)]
    given = {"moved": ("mug1", at, "m"), "turned": ("mug1", [k + 3 for k in at], ""), "pull": ("mef1", [1, 0], "N")}
    given |= {"torque": ("MEF1", None, "N m"), "stress": ("mef1", None, "Pa")}
    metric, own = part("outboard", recovery=given, length=length, mass=mass), part("outboard", recovery=given)
    for name, shapes in (("moved", metric.displacements), ("turned", metric.rotations)):
        found, size = metric.recovery[name][0].reshape(shapes.shape), np.linalg.norm(shapes, axis=1)
        assert relative(np.linalg.norm(found, axis=1) / size.max(), size / size.max()) < 1e-9
    units = {"pull": mass * length, "torque": mass * length**2, "stress": mass / length}  # of the file, in SI
    for name, unit in units.items():
        scale = np.abs(own.recovery[name][0]).max()
        same = metric.recovery[name][0] * length * mass**0.5 / unit  # per coordinate in the unit of the file
        assert relative(same / scale, own.recovery[name][0] / scale) < 1e-9
    assert relative(own.recovery["pull"][0], own.recovery["torque"][0][[1, 0]]) < 1e-12
    for rows, says in (
        (("mes1", None, "Pa"), r"has no matrix 'mes1' with 46 columns; those of its .op4 file are kxx"),
        (("mef1", [24], "N"), r"'mef1' has rows 0 to 23, not \[24\]"),
        (("mef1", None, "psi"), "unit 'psi'; choose from 'Pa', 'N'"),
        (("mef1", "N"), "pass .matrix, rows, unit."),
    ):
        with pytest.raises(mbs.ModelError, match=says):
            part("outboard", recovery={"wrong": rows})


def test_matrices_in_punch_files(tmp_path):
    """Written by pyYeti with ten digits, the rows of the stiffness in another order."""
    nastran = pyyeti.nastran
    table, *_ = nastran.asm2uset(str(FILES / "inboard.asm"))
    found = nastran.op4.read(str(FILES / "inboard.op4"))
    K, M = (pandas.DataFrame(found[name], table.index, table.index) for name in ("kxx", "mxx"))
    nastran.wtdmig(str(tmp_path / "inboard.pch"), {"KAAX": K.iloc[::-1, ::-1], "MAAX": M})
    own, whole = mbs.Part.from_nastran(FILES / "inboard.asm", tmp_path / "inboard.pch"), part("inboard")
    assert own.nodes == whole.nodes and own.frequency[:20] == pytest.approx(whole.frequency[:20], rel=1e-6)
    assert own.mass == pytest.approx(whole.mass, rel=1e-8)
    assert relative(own.effective_mass[:10], whole.effective_mass[:10]) < 1e-6
    renamed = M.rename(index={27: 28}, columns={27: 28}, level="id")
    for given, says in (
        (
            {"KAAX": K, "MAAX": renamed},
            "MAAX in .* has grid or scalar point 28, degree of freedom 1, which the assembly lacks",
        ),
        ({"MAAX": M}, "has no matrix KAA or KXX"),
        ({"KAAX": K, "KAAY": K, "MAAX": M}, "has several matrices of stiffness, kaax, kaay"),
    ):
        nastran.wtdmig(str(tmp_path / "bad.pch"), given)
        with pytest.raises(mbs.ModelError, match=says):
            mbs.Part.from_nastran(FILES / "inboard.asm", tmp_path / "bad.pch")


def test_matrices_in_output2_files(monkeypatch):
    """pyYeti comes with a file of DMIG matrices that belong to no body: as they are in the punch file beside it."""
    files = FILES.parent / "nastran_dmig_data"
    names = {"mass": re.compile("m?randm"), "stiffness": re.compile("m?patrn")}
    monkeypatch.setattr("jaxmbs.model.flexible_bodies.nastran.NAMES", names)
    table = pyyeti.nastran.rddmig(str(files / "matrix_factory.pch"))["randm"]
    punched, binary = (_matrices(pyyeti.nastran, files / x, table) for x in ("matrix_factory.pch", "matrix.op2"))
    for name in names:
        assert punched[name].any() and relative(binary[name], punched[name]) < 1e-8


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda M, K, s: (s[:, None] * M * s, K), "does not fit the positions: entries .* differ by 282"),
        (lambda M, K, s: (M, s[:, None] * K * s), "resists the motion of a rigid body"),
        (lambda M, K, s: (M, K * np.where(np.arange(46) == 24, -1, 1)), "has a negative eigenvalue, -"),
        (lambda M, K, s: (M, K * (np.arange(46) != 27)), "leaves 1 free"),
    ],
)  # fmt: skip
def test_matrices_of_no_body_are_refused(tmp_path, change, says):
    """Rotations in other units than displacements, a stiffness that is negative or zero; modes are after 24 at grids."""
    found = pyyeti.nastran.op4.read(str(FILES / "outboard.op4"))
    units = np.where((np.arange(46) < 24) & (np.arange(46) % 6 > 2), 1e3, 1.0)
    M, K = change(found["mxx"], found["kxx"], units)
    pyyeti.nastran.op4.write(str(tmp_path / "bad.op4"), {"mxx": M, "kxx": K})
    with pytest.raises(mbs.ModelError, match=says):
        mbs.Part.from_nastran(FILES / "outboard.asm", tmp_path / "bad.op4")
    with pytest.raises(mbs.ModelError, match="length is 0"):
        part("outboard", length=0.0)
