"""A study that is made in Python is the study of a file: the same checks, the same record, the same bits."""

import doctest
import importlib
import inspect
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import Designs, Normal, Study, Uniform, outputs, read, report, resume, run, save
from tests.study.conftest import CART

EXAMPLES = sorted(p for p in (Path(__file__).parents[2] / "examples").glob("*.toml") if not p.stem.endswith("_designs"))
DRAWS = {"lower.mass": Normal(apply="multiply", std=0.1)}
SPEED = {"speed": outputs.JointVelocity("elbow", reduce="max")}


@pytest.fixture(scope="module")
def pendulum():
    return mbs.library.double_pendulum().build()


@pytest.fixture
def study(tmp_path):
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    return read(tmp_path / "cart.toml")


def parts(study):
    """The keywords that make a study again."""
    names = ("model", "initial", "simulation", "dispersions", "correlations", "outputs", "criteria", "study")
    return {name: getattr(study, name) for name in names}


@pytest.mark.filterwarnings("ignore::jaxmbs.ModelWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_made_in_python_and_comes_back_from_its_file(path, tmp_path):
    study = read(path, need="mechanism", trust=True)
    made = Study(**parts(study))
    back = save(made, tmp_path / path.name)
    assert made == study == back and made.content == back.content != study.content
    for one, other in zip(study.dispersions.items, back.dispersions.items, strict=True):
        assert one.inputs == other.inputs and one.way.neutral.tobytes() == other.way.neutral.tobytes()
        for array in ("kind", "location", "scale", "low", "high"):
            assert getattr(one.components, array).tobytes() == getattr(other.components, array).tobytes()
    assert save(study, tmp_path / "copy.toml").content == path.read_bytes(), (
        "a file's bytes are kept, with its comments"
    )


def test_a_run_of_it_is_whole_and_the_same_bits_as_that_of_its_file(study, tmp_path):
    """Numbers that `free` has made of structural zeros are pinned again: another program would round otherwise."""
    freed = Study(**parts(study) | {"model": mbs.free(study.model, ["cart.com", "spring.point_a"])})
    assert freed == study and freed.path is None
    stores = [run(s, 64, tmp_path / name, 64) for name, s in (("python", freed), ("file", study))]
    record = json.loads((stores[0].folder / "provenance.json").read_text(encoding="utf-8"))
    assert record["file_sha256"] == freed.sha256 != study.sha256 and "study" not in record["origin"]["commits"]
    assert read(stores[0].folder / "study.toml") == study
    assert resume(stores[0].folder).finished()["samples"] == 64
    assert report(stores[0].folder).path.is_file()
    one, other = (store.arrays() for store in stores)
    for name in ("reach", "speed", "cart.mass", "energy_error"):
        assert np.asarray(one[name][:]).tobytes() == np.asarray(other[name][:]).tobytes(), name


WRONG = [
    (
        {"outputs": {"speed": outputs.JointVelocity("elbo")}},
        r'outputs\.speed\.joint: there is no joint "elbo"; did you',
    ),
    (
        {"outputs": {"speed": outputs.JointVelocity("elbow", reduce="most")}},
        r"outputs\.speed\.reduce: 'most' is not allo",
    ),
    ({"outputs": [outputs.JointVelocity("elbow")]}, r"outputs: Input should be a valid dictionary"),
    (
        {"dispersions": {"lower.mas": Normal(std=1.0)}},
        r'dispersions\."lower\.mas": there is no "lower\.mas" to disperse',
    ),
    ({"dispersions": {"lower.mass": Normal(std=1.0)}}, r"makes lower\.mass negative or zero; use \"truncated_normal\""),
    ({"dispersions": {"lower.mass": {"std": 1.0}}}, r'dispersions\."lower\.mass"\.distribution: this key is missing'),
    ({"criteria": "speed < 3 rad/s"}, r"criteria: Input should be a valid list; got 'speed"),
    ({"criteria": ["sped < 3 rad/s"]}, r'criteria\[0\]: .* there is no output "sped"; did you mean "speed"'),
    ({"initial": {"elbow": {"q": [1.0, 2.0]}}}, r"initial\.elbow\.q: \[1\.0, 2\.0\] has 2 numbers; revolute takes 1"),
    ({"initial": ([0.0], None)}, r"initial: q0 has shape \(1,\); pass \(2,\)"),
    ({"simulation": {"dt": 0.1}}, r"simulation\.t_end: this key is missing"),
    ({"study": {"design": "cube"}}, r"study\.design: 'cube' is not allowed; allowed: random"),
    ({"model": mbs.library.double_pendulum()}, r"model: is of type Mechanism; pass what Mechanism\.build\(\)"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=lambda x: next(iter(x)) if isinstance(x, dict) else "")
def test_what_is_wrong_is_said_with_its_key(pendulum, given, said):
    with pytest.raises(InputError, match=said):
        Study(**{"model": pendulum, "dispersions": DRAWS, "outputs": SPEED} | given)


def test_a_batch_is_refused_and_what_no_run_can_do_without(pendulum):
    batch, _ = mbs.vary(pendulum, {"lower.mass": np.array([1.0, 2.0])})
    with pytest.raises(InputError, match=r"model\.lower\.mass: is a batch; pass one instance"):
        Study(model=batch, dispersions=DRAWS, outputs=SPEED)
    alone = Study(model=pendulum)
    assert alone.simulation.t_end == 1.0 and alone.seed == 0 and not alone.outputs, "a synthesis needs no more"
    with pytest.raises(InputError, match=r"(?s)outputs: a study needs at least one.*dispersions: a study needs"):
        alone.of_size(64)
    with pytest.raises(ValueError, match=r'unknown key .*did you mean "std"'):
        Normal(stdd=0.1)


def test_functions_serve_where_no_file_is_needed_and_runs_need_their_module(pendulum, tmp_path):
    mech = mbs.library.double_pendulum()
    mech.add_force("wind", mbs.External(lambda model, t, q, v: -0.1 * v))
    study = Study(model=mech.build(), dispersions=DRAWS, outputs=SPEED)
    with pytest.raises(
        mbs.ModelError, match=r'this one cannot be written as a file: .*"wind".*modules=|wind.*modules='
    ):
        run(study, 64, tmp_path / "run")
    with pytest.raises(mbs.ModelError, match="modules="):
        save(study, tmp_path / "study.toml")
    assert not list(tmp_path.iterdir())


MINE = """
from jaxmbs.elements import Kind, element, field
from jaxmbs.study.outputs import Output

@element
class Made(Output):
    of: object = field(Kind.FUNCTION, "", "function of the time")

    def quantity(self, joints):
        return "number"

    def measure(self, scene):
        return self.of(0.0), True

def drag(model, t, q, v):
    return -0.1 * v

def half(t):
    return 0.5 + t
"""


def test_functions_and_classes_of_a_module_become_part_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "mine_of_study.py").write_text(MINE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    mine = importlib.import_module("mine_of_study")
    mech = mbs.library.double_pendulum()
    mech.add_force("wind", mbs.External(mine.drag))
    model, found = mech.build(), []
    for made in (mine.Made(mine.half), {"type": "made", "of": "mine_of_study.half"}):
        study = Study(model=model, dispersions=DRAWS, outputs={"made": made}, modules=[mine])
        (tmp_path / str(len(found))).mkdir()
        back = save(study, tmp_path / str(len(found)) / "study.toml")
        assert back == study and study.files == {"mine_of_study.py": MINE.encode()} and not study.file.fault
        assert replace(study, criteria=["made < 1"]).files == study.files
        found.append(study)
    assert found[0] == found[1] and 'of = "mine_of_study.half"' in found[0].content.decode()


def test_other_parts_make_another_study(study):
    heavy = replace(study, model=mbs.set(study.model, {"cart.mass": 5.0}))
    assert heavy.dispersions.items[0].target.nominal == 5.0, "factors are of the model's own mass"
    assert b"mass = 5.0" in heavy.content and study.content == CART.encode()
    changed = {
        "initial": {"rail": {"v": [0.1]}}, "simulation": {"t_end": 0.1}, "criteria": [], "study": {"seed": 8},
        "dispersions": {"cart.mass": {"distribution": "lognormal", "sigma": 0.1, "apply": "multiply"}},
        "outputs": {**study.outputs, "least": outputs.JointPosition("rail", reduce="min")},
        "n": 3,
    }  # fmt: skip
    others = {"model": heavy, **{key: replace(study, **{key: x}) for key, x in changed.items()}}
    assert not [key for key, x in others.items() if x == study]
    assert [key for key, x in others.items() if x.sha256 == study.sha256] == ["n"], "which stands in no file"
    assert replace(study, simulation={"t_end": 0.2, "dt": 1e-3}) == study
    bound = replace(study, criteria=[replace(c, bounds=(("<", 1.0),)) for c in study.criteria])
    assert bound.criteria[0].bound == 1.0
    with pytest.raises(mbs.ModelError, match="a criterion does not agree with its text"):
        bound.sha256  # noqa: B018


def test_measured_values_are_of_the_file_that_was_named(pendulum, tmp_path, monkeypatch):
    for folder, least in (("a", 1.0), ("b", 2.0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "lot.csv").write_text(f"mass\n{least}\n3.0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "a")
    lot = mbs.study.Empirical(file="lot.csv", columns=["mass"])
    study = Study(model=pendulum, dispersions={"lower.mass": lot}, outputs=SPEED)
    monkeypatch.chdir(tmp_path / "b")
    assert study.files == {"lot.csv": b"mass\n1.0\n3.0\n"} == replace(study, criteria=["speed < 3 rad/s"]).files
    assert 'file = "lot.csv"' in study.content.decode(), "beside the study"
    (tmp_path / "c").mkdir()
    assert save(study, tmp_path / "c" / "study.toml") == study
    with pytest.raises(mbs.ModelError, match=r"a different file lot\.csv already exists beside study\.toml"):
        save(study, tmp_path / "b" / "study.toml")
    two = {"lower.mass": lot, "upper.mass": {**lot.model_dump(), "file": str(tmp_path / "a" / "lot.csv")}}
    with pytest.raises(InputError, match=r'"upper\.mass"\.file: two different files are called "lot\.csv"'):
        Study(model=pendulum, dispersions=two, outputs=SPEED)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Normal(stdd=0.5), r'Normal\.stdd: unknown key .*did you mean "std"'),  # pyright: ignore
        (lambda: Normal(std="x"), r"Normal\.std: needs a number or a list of numbers, got 'x'"),  # pyright: ignore
        (lambda: Uniform(low=0.0, hgh=1.0), r"Uniform\.hgh: unknown key(.|\n)*Uniform\.high: this key is missing"),  # pyright: ignore
    ],
)
def test_wrong_fields_of_a_distribution_are_said_by_name(made, said):
    with pytest.raises(InputError, match=said):
        made()


@pytest.mark.parametrize("x", [Study, save, Designs], ids=["Study", "save", "Designs"])
def test_examples_of_the_docstrings_run(x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner, failures = doctest.DocTestRunner(verbose=False), []
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(x), {"mbs": mbs}, x.__name__, None, 0)
    runner.run(example, out=failures.append)
    assert example.examples and not failures, "".join(failures)
