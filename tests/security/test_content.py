"""What a file has cannot run anything, and cannot fill the machine: archives, XML, TOML, metadata of results, pages."""

import base64
import io
import json
import pickle
import re
import shutil
import zipfile
from html.parser import HTMLParser

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import read, report, resume, run
from jaxmbs.study.folder.seal import marked
from jaxmbs.study.reports import repeated
from jaxmbs.study.reports.page import closest_approach
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.provenance import salt
from jaxmbs.view.animate import _page
from tests.security.conftest import DATA, STUDY
from tests.security.test_names import USES
from tests.study.conftest import CART

RAN = []


class Harmful:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return RAN.append, (1,)


# --- modules ----------------------------------------------------------------------------------------------------------


def test_modules_run_for_those_who_trust_the_run(whole, tmp_path):
    """A study file and a run alike: nothing of them is run before."""
    for name in ("cart.toml", "lot.csv"):
        shutil.copy(whole.parent / name, tmp_path)
    (tmp_path / "own.py").write_text("raise RuntimeError('it ran')", encoding="utf-8")
    with pytest.raises(InputError, match="--trust"):
        read(tmp_path / "cart.toml")
    with pytest.raises(InputError, match="it ran"):
        read(tmp_path / "cart.toml", trust=True)
    for use in (report, examined, resume):
        with pytest.raises(InputError, match="--trust"):
            use(whole)


def test_an_fmu_is_not_run_without_trust(tmp_path):
    """Not even its description is read."""
    (tmp_path / "box.fmu").write_bytes(b"not even an archive")
    text = CART.replace(
        "\n[initial.rail]", '\n[[mechanism.fmus]]\nname = "box"\nfile = "box.fmu"\nperiod = 0.1\n[initial.rail]'
    )
    (tmp_path / "cart.toml").write_text(text, encoding="utf-8")
    for use in (read, mbs.load):
        with pytest.raises(InputError, match=r'fmus\[0\].file: .*needs to run the FMU "box.fmu".*--trust.*trust=True'):
            use(tmp_path / "cart.toml")


# --- archives ---------------------------------------------------------------------------------------------------------


def kept(folder, content):
    store = stores.open_folder(folder)
    path = folder / "histories.npz"
    path.write_bytes(marked(content, f"{salt(store.provenance):x}", None))
    return repeated._saved(store, np.zeros(1, np.uint64))


def test_histories_hold_numbers_only(folder):
    """An array of objects is a pickle."""
    archive = io.BytesIO()
    np.savez(archive, wanted=np.array([Harmful()], object), t=np.zeros(1))
    assert kept(folder, archive.getvalue()) is None and not RAN
    assert kept(folder, pickle.dumps(Harmful())) is None and not RAN


def test_histories_that_unpack_to_more_than_a_gigabyte_are_not_read(folder, monkeypatch):
    monkeypatch.setattr(repeated, "_MOST_BYTES", 10_000)
    archive = io.BytesIO()
    names = {
        "wanted": np.zeros(1, np.uint64),
        "samples": np.zeros(1, int),
        "of_band": np.array(0),
        "motion": np.zeros(0, np.uint8),
        "closest": np.zeros(0, np.uint8),
    }
    np.savez_compressed(archive, t=np.zeros(5000), **names)
    assert len(archive.getvalue()) < 10_000 and kept(folder, archive.getvalue()) is None
    small = io.BytesIO()
    np.savez_compressed(small, t=np.zeros(5), **names)
    assert kept(folder, small.getvalue()) is not None
    assert zipfile.is_zipfile(folder / "histories.npz"), "other programs read it, too"


def test_what_histories_say_of_the_closest_approach_is_text():
    """Markup in it is shown, not followed; what is not as it was written is left out."""
    harmful = "<script>alert(1)</script>"
    body = (harmful, [[[0, 0], [1, 0], [0, 1]]], 0)
    given = {
        "name": harmful,
        "shown": harmful,
        "said": harmful,
        "ends": [[0, 0], [1, 1]],
        "bodies": [body, ("b", *body[1:])],
    }
    page = closest_approach(json.dumps([given]))
    assert "<svg" in page and "&lt;script" in page and "<script" not in page
    for other in (
        "",
        "[]",
        "no",
        "3",
        "[{}]",
        json.dumps([given | {"ends": harmful}]),
        json.dumps([given | {"bodies": 3}]),
    ):
        assert closest_approach(other) == ""


@pytest.mark.parametrize("codec", ["pickle", "numcodecs.pickle", "blosc", "gzip"])
@pytest.mark.parametrize("how", ["array", "inside", "version", "type"])
def test_numbers_are_unpacked_by_no_other_codec(folder, how, codec):
    path = folder / "results.zarr" / "zarr.json"
    root = json.loads(path.read_bytes())
    own = root["consolidated_metadata"]["metadata"]["reach"]
    if how == "array":
        own["codecs"].append({"name": codec})
    elif how == "inside":
        own["codecs"][0] = {"name": "sharding_indexed", "codecs": [{"name": codec}]}
    elif how == "version":
        root["zarr_format"] = 2
        root["codecs"] = [{"name": codec}]
    else:
        own["data_type"] = codec
    path.write_text(json.dumps(root), encoding="utf-8")
    store = stores.open_folder(folder)
    for use in (store.arrays, store.dataset, store.to_dataframe, store.status):
        with pytest.raises(InputError, match="no run uses to store its numbers"):
            use()
    assert not USES["verify"](folder).sound
    with pytest.raises(InputError, match="metadata"):
        USES["report"](folder)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"consolidated_metadata": 1}', b"[" * 100_000, b"\xff"])
def test_metadata_that_are_none(folder, text):
    path = folder / "results.zarr" / "zarr.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"zarr\.json: cannot be read.*jaxmbs resume"):
        stores.open_folder(folder).status()
    assert not USES["verify"](folder).sound
    (folder / "provenance.json").write_bytes(text)
    with pytest.raises(InputError, match=r"is missing|is damaged|is not the record"):
        USES["repair"](folder)


# --- XML and TOML -----------------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 12))
XML = {
    "a billion laughs": f'<!DOCTYPE robot [<!ENTITY e0 "ha">{LAUGHS}]><robot name="&e11;"/>',
    "a file of the reader": '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r">&x;</robot>',
    "a page elsewhere": '<!DOCTYPE robot [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;]><robot name="r"/>',
    "one long text": f'<!DOCTYPE robot [<!ENTITY x "{"a" * 1000}">]><robot name="{"&x;" * 1000}"/>',
}


@pytest.mark.parametrize("case", XML)
@pytest.mark.parametrize("root", ["robot", "mujoco"])
def test_entities_are_refused(tmp_path, case, root):
    path = tmp_path / "r.xml"
    path.write_text(XML[case].replace("robot", root), encoding="utf-8")
    with pytest.raises(InputError, match=r"declares the entity") as error:
        mbs.load(path)
    assert error.value.file == path


def test_a_document_type_alone_is_read(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text('<!DOCTYPE robot SYSTEM "nowhere.dtd"><robot name="r"><link name="a"/></robot>', encoding="utf-8")
    assert mbs.load(path).body_names == ("a",)


@pytest.mark.parametrize("text", [b"\x00", b"<robot", b'<?xml version="1.0" encoding="none"?><robot/>', b""])
def test_what_is_no_xml(tmp_path, text):
    path = tmp_path / "r.urdf"
    path.write_bytes(text)
    with pytest.raises(InputError, match="not an XML file"):
        mbs.load(path)


def test_tables_that_are_nested_too_deep(tmp_path):
    path = tmp_path / "cart.toml"
    path.write_text("a = " + "[" * 100_000, encoding="utf-8")
    for use in (read, mbs.load):
        with pytest.raises(InputError, match="nested too deep"):
            use(path)


# --- pages ------------------------------------------------------------------------------------------------------------

NAME = '</title><script>alert("{{script}}")</script>{{glb}}&amp;'


class Tags(HTMLParser):
    """Tags of a page, its title and its heading as a reader sees them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.texts = [], None, {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        self.texts[self.inside] = self.texts.get(self.inside, "") + data


def allowed(tags):
    """What the page's policy lets it load."""
    (policy,) = (a["content"] for tag, a in tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    return dict(part.strip().split(" ", 1) for part in policy.split(";"))


def test_the_name_of_a_model_is_text_on_the_page_of_a_motion():
    found = Tags(_page(b"123", NAME))
    assert [tag for tag, _ in found.tags].count("script") == 2, "the motion and the player"
    assert found.texts["title"] == found.texts["h1"] == NAME
    assert found.texts["script"].startswith(base64.b64encode(b"123").decode())
    assert allowed(found.tags)["default-src"] == "'none'" and "connect-src" not in allowed(found.tags)


@pytest.mark.slow
def test_names_are_text_on_a_report(tmp_path):
    text = STUDY.replace('modules = ["own.py"]\n', "").replace('name = "cart"\n[[mech', f"name = '{NAME}'\n[[mech", 1)
    text = text.replace("sigma = 0.05", "sigma = 0.05  # <img src=x onerror=alert(1)>")
    (tmp_path / "cart.toml").write_text(text, encoding="utf-8")
    (tmp_path / "lot.csv").write_text(DATA, encoding="utf-8")
    store = run(read(tmp_path / "cart.toml"), 64, tmp_path / "<img src=x>", 64)
    page = report(store.folder).path.read_text(encoding="utf-8")
    outer = re.sub(r'srcdoc="[^"]*"', "", page)
    found = Tags(outer)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in found.tags)
    assert found.texts["title"].startswith(NAME) and allowed(found.tags)["default-src"] == "'none'"
    frames = [a for tag, a in Tags(page).tags if tag == "iframe"]
    assert all(a["sandbox"] == "allow-scripts" for a in frames), "what moves is apart from the page"
