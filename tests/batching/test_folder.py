"""Where compiled programs are kept."""

from pathlib import Path

import jax
import pytest

from jaxmbs.batching.folder import folder, is_off
from jaxmbs.batching.machine import compiling


@pytest.fixture
def cache(request):
    """Sets the folder of JAX's own cache."""
    before = jax.config.values["jax_compilation_cache_dir"]
    yield lambda path: jax.config.update("jax_compilation_cache_dir", path)
    jax.config.update("jax_compilation_cache_dir", before)


def test_code_is_kept_where_the_user_wants(cache, monkeypatch, tmp_path):
    cache(str(tmp_path))
    monkeypatch.setenv("JAXMBS_CACHE", str(tmp_path / "other"))
    assert folder() == tmp_path and compiling._in_folder("x.o") == tmp_path / "x.o"
    cache("gs://bucket/compiled")
    assert folder() is None and compiling._in_folder("x.o") is None
    cache(None)
    assert folder() == tmp_path / "other" / "compiled"
    for word in ("off", "OFF", "0", "no"):
        monkeypatch.setenv("JAXMBS_CACHE", word)
        assert is_off() and folder() is None and compiling._in_folder("x.o") is None
    monkeypatch.delenv("JAXMBS_CACHE")
    pytest.importorskip("platformdirs")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name, appauthor: str(tmp_path / name))
    assert folder() == Path(tmp_path / "jaxmbs" / "compiled")
