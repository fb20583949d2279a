"""Programs on disk: read by another process's request for the same content, made anew where anything is not as it was."""

from importlib.metadata import PackageNotFoundError, version

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching import disk_cache, over_rows, sealed
from jaxmbs.batching.machine import compiling


def test_programs_are_kept_by_their_content(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXMBS_KERNELS", "machine")  # whatever the caller has chosen
    monkeypatch.setattr(disk_cache, "COUNT", {"made": 0, "read": 0})
    x = jnp.linspace(0.1, 2.0, 80).reshape(40, 2)

    def program(content, factor):
        def make():
            rows = jax.jit(over_rows(lambda r: factor * jnp.sin(r[0]) * r[1]))
            return rows.lower(x).compile()

        return np.asarray(disk_cache.cached(content, make)(x))

    expected = np.sin(x[:, 0]) * x[:, 1]
    np.testing.assert_allclose(program(["a"], 2.0), 2 * expected, rtol=1e-14)
    assert disk_cache.COUNT == {"made": 1, "read": 0} and not list(tmp_path.iterdir()), (
        "nothing is kept where no folder is set"
    )
    monkeypatch.setattr(disk_cache, "FOLDER", tmp_path)
    first = program(["a"], 2.0)
    assert np.array_equal(program(["a"], 5.0), first), "read: it is not looked at what would be made"
    assert disk_cache.COUNT == {"made": 2, "read": 1}
    np.testing.assert_allclose(program(["b"], 3.0), 3 * expected, rtol=1e-14)
    np.testing.assert_allclose(program(None, 4.0), 4 * expected, rtol=1e-14)
    assert disk_cache.COUNT == {"made": 4, "read": 1} and len(list(tmp_path.glob("*.program"))) == 2
    (newer,) = (
        p for p in tmp_path.glob("*.program") if p.stat().st_mtime == max(q.stat().st_mtime for q in tmp_path.iterdir())
    )
    whole = newer.read_bytes()
    newer.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    np.testing.assert_allclose(program(["b"], 6.0), 6 * expected, rtol=1e-14)
    assert disk_cache.COUNT == {"made": 5, "read": 1} and newer.read_bytes() != whole, "damaged: made anew"
    monkeypatch.setattr(compiling, "restored", lambda name, file: False)
    np.testing.assert_allclose(program(["b"], 7.0), 7 * expected, rtol=1e-14)
    assert disk_cache.COUNT["made"] == 6, "without the code of its kernels: made anew"
    monkeypatch.setattr(sealed, "MOST_BYTES", 0)
    program(["c"], 8.0)
    assert not list(tmp_path.glob("*.program")), "no more than that"


def test_a_program_is_of_the_versions_of_all_that_makes_it(monkeypatch):
    """Another version of any of them, or its absence, is another program."""
    here = disk_cache._here()
    for name in ("jax", "jaxlib", "numpy", "scipy", "equinox", "lineax", "optimistix", "llvmlite"):
        assert f"{name} {version(name)}" in here
        for changed in ("0.0.1", PackageNotFoundError(name)):

            def other(package, name=name, changed=changed):
                if package != name:
                    return version(package)
                if isinstance(changed, Exception):
                    raise changed
                return changed

            with monkeypatch.context() as m:
                m.setattr(disk_cache, "version", other)
                disk_cache._version.cache_clear()
                assert disk_cache._here() != here
            disk_cache._version.cache_clear()
    monkeypatch.setattr(disk_cache.platform, "python_version", lambda: "3.99.0")
    assert disk_cache._here() != here
