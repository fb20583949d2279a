"""Files of the folder of compiled programs."""

import os

from jaxmbs.batching import sealed


def test_what_is_kept_is_whole(tmp_path):
    path = tmp_path / "new" / "jaxmbs_code.o"
    assert sealed.read(path) is None
    sealed.write(path, b"some code")
    assert sealed.read(path) == b"some code"
    path.write_bytes(path.read_bytes()[:-1])
    assert sealed.read(path) is None
    assert [p.name for p in path.parent.iterdir()] == [path.name], "nothing else is left behind"


def test_what_was_not_used_for_longest_goes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(sealed, "MOST_BYTES", 3000)
    paths = [tmp_path / f"jaxmbs_{k}{end}" for k, end in enumerate((".o", ".program", ".o"))]
    others = tmp_path / "jit_of_another"
    others.write_bytes(bytes(5000))
    for age, path in enumerate(paths):
        sealed.write(path, bytes(900))
        os.utime(path, (1000 + age, 1000 + age))
    sealed.read(paths[0])
    sealed.write(tmp_path / "jaxmbs_more.o", bytes(900))
    assert [p.exists() for p in paths] == [True, False, True], "reading is use"
    assert others.exists(), "what other programs keep there is theirs"
