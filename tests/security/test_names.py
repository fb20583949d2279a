"""Nobody writes outside a run's folder, and no file names what is outside its own."""

import shutil
import tempfile
import warnings
from pathlib import Path

import pytest

import jaxmbs as mbs
from jaxmbs.errors import ModelWarning
from jaxmbs.io import InputError
from jaxmbs.io.names import fault, within
from jaxmbs.study import read, report, resume
from jaxmbs.study.folder import storage
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.examination import examined
from tests.security.conftest import DATA, MODULE, STUDY, forge, listing, sha

USES = {
    "open": stores.open_folder,
    "verify": lambda folder: examined(folder, trust=True),
    "repair": lambda folder: examined(folder, repair=True, trust=True),
    "resume": lambda folder: resume(folder, trust=True),
    "report": lambda folder: report(folder, trust=True),
}
OUTSIDE = (
    "../x.py",
    "../../x.py",
    "sub/x.py",
    "/jaxmbs-x.py",
    "C:x.py",
    "..\\x.py",
    "..",
    "",
    "a\nb.py",
    "x" * 300 + ".py",
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_no_bare_name(name):
    assert fault(name) and fault(7)
    assert not any(map(fault, ("x.py", "a b.csv", "..x", "study.toml", "\u00fc.py")))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["../x.py", "/jaxmbs-x.py", "sub/../../x.py"])
@pytest.mark.parametrize("kind", [2, 3])
def test_a_forged_record_writes_nothing(folder, tmp_path, use, name, kind):
    """Its digest is right, its copy, too, and the file that it names is missing: it was put back, wherever that was."""
    added = {name: sha("print('hello')")}
    forge(folder, lambda r: r | {"format": kind, "modules": r["modules"] | added}, **{name: "print('hello')"})
    before = listing(tmp_path)
    if use == "verify":
        found = examined(folder, trust=True)
        assert not found.sound and "not a bare file name" in str(found.damage[0])
    else:
        with pytest.raises(InputError, match="not a bare file name"):
            USES[use](folder)
    assert listing(tmp_path) == before and not Path("/jaxmbs-x.py").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("kind", [2, 3])
def test_a_forged_record_at_an_address_writes_nothing_here(folder, tmp_path, monkeypatch, kind):
    """Files of an address are brought to this machine by their names: plain `verify` wrote them anywhere."""
    pytest.importorskip("upath")
    name = "../x.py"
    forge(folder, lambda r: r | {"format": kind, "modules": r["modules"] | {name: sha("1")}})
    place = storage.place("memory://security/run")
    storage.remove(place)
    for path in folder.rglob("*"):
        if path.is_file():
            storage.write_whole(place / path.relative_to(folder).as_posix(), path.read_bytes())
    for there in ("memory://security/x.py", "memory://security/run/x.py"):
        storage.write_whole(storage.place(there), b"1")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert not examined(place, trust=True).sound
    with pytest.raises(InputError, match="not a bare file name"), storage.at_hand(place, [name]):
        pass
    assert not list((tmp_path / "temporary").rglob("*.py"))


@pytest.mark.parametrize(
    "edit",
    [
        {"n": 10**30}, {"n": True}, {"n": "100"}, {"chunk_rows": 0}, {"chunk_rows": 10**9}, {"precision": "object"},
        {"file_sha256": "0"}, {"modules": ["own.py"]}, {"versions": None}, {"device": {}}, {"seed": None}, {"format": "3"},
        {"modules": {"own.py": "../../x"}}, {"origin": []}, {"origin": {"commits": ["0"]}}, {"origin": {"date": {}}},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_that_no_run_has_written_is_refused(folder, edit):
    forge(folder, lambda r: r | edit)
    for use in ("open", "repair", "resume", "report"):
        with pytest.raises(InputError, match=r"is not the record of a run|is a run of jaxmbs|is damaged"):
            USES[use](folder)


# --- what a study file names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in OUTSIDE if n and n != ".."])
def test_modules_and_data_lie_beside_their_study(tmp_path, name):
    text = name.replace("\\", "\\\\").replace("\n", "\\n")
    for old, new, path in (('"own.py"', f'"{text}"', "modules"), ('"lot.csv"', f'"{text}"', "file")):
        (tmp_path / "cart.toml").write_text(STUDY.replace(old, new), encoding="utf-8")
        (tmp_path / "own.py").write_text(MODULE, encoding="utf-8")
        with pytest.raises(InputError) as error:
            read(tmp_path / "cart.toml", trust=True)
        assert path in error.value.problems[0].path and "name" in error.value.problems[0].message


def test_a_link_out_of_the_folder_is_read_for_those_who_trust_the_file(tmp_path):
    (tmp_path / "secret").write_text(DATA, encoding="utf-8")
    here = tmp_path / "study"
    here.mkdir()
    (here / "lot.csv").symlink_to(tmp_path / "secret")
    (here / "cart.toml").write_text(STUDY.replace('modules = ["own.py"]\n', ""), encoding="utf-8")
    with pytest.raises(InputError, match=r"symbolic link that leads out of the folder.*--trust"):
        read(here / "cart.toml")
    assert read(here / "cart.toml", trust=True).files == {"lot.csv": DATA.encode()}
    (here / "lot.csv").unlink()
    (here / "own.csv").write_text(DATA, encoding="utf-8")
    (here / "lot.csv").symlink_to(here / "own.csv")
    assert read(here / "cart.toml").files
    (here / "a").symlink_to(here / "b")
    (here / "b").symlink_to(here / "a")
    assert within(here, "lot.csv") and not within(here, "../secret") and not within(here, "\0")


VISUAL = '[[mechanism.visuals]]\nbody = "cart"\nshape = "mesh"\nfile = "{}"\n'


@pytest.mark.parametrize("file", ["../mesh.stl", "/etc/hostname", "sub/../../mesh.stl", "link.stl"])
def test_meshes_of_other_folders_need_trust(tmp_path, file):
    path = tmp_path / "here" / "cart.toml"
    (path.parent / "sub").mkdir(parents=True)
    (tmp_path / "mesh.stl").write_text("solid", encoding="utf-8")
    (path.parent / "link.stl").symlink_to(tmp_path / "mesh.stl")
    mechanism = STUDY.partition("[mechanism]")[2].partition("[initial.rail]")[0]
    path.write_text("[mechanism]" + mechanism + VISUAL.format(file), encoding="utf-8")
    for load in (mbs.load, lambda path: read(path, need="mechanism").model):
        with pytest.warns(ModelWarning, match=r"meshes outside the file's folder are not drawn .*--trust"):
            assert not load(path).structure.visuals
    assert Path(mbs.load(path, trust=True).structure.visuals[0].file).name == Path(file).name
    path.write_text("[mechanism]" + mechanism + VISUAL.format("meshes/a.stl"), encoding="utf-8")
    assert mbs.load(path).structure.visuals[0].file == str(tmp_path / "here" / "meshes" / "a.stl")


LINK = '<robot name="r"><link name="a"><visual><geometry><mesh filename="{}"/></geometry></visual></link></robot>'


def meshes(path, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ModelWarning)
        model = mbs.from_urdf(path, **options)
    return [v.file for v in model.structure.visuals], " ".join(str(w.message) for w in said)


def test_meshes_of_a_urdf(tmp_path):
    """In its folder; in the ROS package that it is in; elsewhere only with trust."""
    robot = tmp_path / "home" / "robot" / "urdf" / "r.urdf"
    robot.parent.mkdir(parents=True)
    for place in (tmp_path / "home" / "key.stl", tmp_path / "home" / "robot" / "m.stl", robot.parent / "own.stl"):
        place.write_text("solid", encoding="utf-8")
    for name, inside in (
        ("own.stl", True), ("../../key.stl", False), (str(tmp_path / "home" / "key.stl"), False),
        ("package://home/key.stl", False), ("package://robot/m.stl", False), ("file://../m.stl", False),
    ):  # fmt: skip
        robot.write_text(LINK.format(name), encoding="utf-8")
        found, said = meshes(robot)
        assert bool(found) is inside and ("trust" in said) is not inside, name
        assert len(meshes(robot, trust=True)[0]) == 1
    (tmp_path / "home" / "robot" / "package.xml").write_text("<package/>", encoding="utf-8")
    robot.write_text(LINK.format("package://robot/m.stl"), encoding="utf-8")
    assert meshes(robot)[0] == [str(tmp_path / "home" / "robot" / "m.stl")]
    robot.write_text(LINK.format("package://home/key.stl"), encoding="utf-8")
    assert not meshes(robot)[0]


BODY = '<body name="b"><joint/><geom size="0.1" contype="0" conaffinity="0"/></body>'
WORLD = "<mujoco>{}<worldbody>" + BODY + "</worldbody></mujoco>"
MJCF = {
    "include": '<include file="../secret.xml"/>',
    "absolute": '<include file="/etc/hostname"/>',
    "mesh": '<asset><mesh name="m" file="../m.stl"/></asset>',
    "folder of meshes": '<compiler meshdir=".."/><asset><mesh name="m" file="m.stl"/></asset>',
    "texture": '<asset><texture name="m" type="cube" fileright="../m.png"/></asset>',
    "folder of textures": '<compiler texturedir="/etc"/><asset><texture name="t" type="2d" file="m.png"/></asset>',
    "height field": '<asset><hfield name="h" file="../h.bin" size="1 1 1 1"/></asset>',
    "skin": '<deformable><skin name="s" file="../s.skn"/></deformable>',
    "another model": '<asset><model name="other" file="../secret.xml"/></asset>',
    "in what is included": '<include file="part.xml"/>',
    "a link": '<include file="link.xml"/>',
}


@pytest.mark.parametrize("case", MJCF)
def test_mjcf_files_read_their_own_folder_only(tmp_path, case):
    pytest.importorskip("mujoco")
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "secret.xml").write_text("<mujoco/>", encoding="utf-8")
    (here / "part.xml").write_text('<mujoco><asset><mesh name="m" file="../m.stl"/></asset></mujoco>', encoding="utf-8")
    (here / "link.xml").symlink_to(tmp_path / "secret.xml")
    (here / "r.xml").write_text(WORLD.format(MJCF[case]), encoding="utf-8")
    for load in (mbs.from_mjcf, mbs.load):
        with pytest.raises(InputError, match=r"not in the folder of this file.*--trust"):
            load(here / "r.xml")


def test_mjcf_files_include_what_is_beside_them(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "secret.xml").write_text("<mujoco><option/></mujoco>", encoding="utf-8")
    (tmp_path / "parts").mkdir()
    shutil.copy(tmp_path / "secret.xml", tmp_path / "parts" / "own.xml")
    (tmp_path / "r.xml").write_text(WORLD.format('<include file="parts/own.xml"/>'), encoding="utf-8")
    assert mbs.from_mjcf(tmp_path / "r.xml").body_names == ("b",)
    (tmp_path / "parts" / "r.xml").write_text(WORLD.format('<include file="../secret.xml"/>'), encoding="utf-8")
    assert mbs.load(tmp_path / "parts" / "r.xml", trust=True).body_names == ("b",)
