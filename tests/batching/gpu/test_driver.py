"""The handler that launches kernels with CUDA's driver, with a driver that runs them on the CPU."""

import ctypes
import itertools
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs.batching import over_rows
from jaxmbs.batching.gpu import PTX, calling, driver
from jaxmbs.batching.machine import compiling
from jaxmbs.errors import ModelError
from tests.batching.gpu.driver import POINTER

EXECUTING, STREAM, FAILURE = 3, 0x57EA, 0xE0


class Call:
    """What XLA passes to a handler: structures of 64-bit words."""

    def __init__(self, given, results, blocks):
        self.kept, self.messages = [], []
        self.stream = ctypes.CFUNCTYPE(POINTER, POINTER)(self._stream)
        self.error = ctypes.CFUNCTYPE(POINTER, POINTER)(self._error)
        api = self.words(*[0] * 6, self._address(self.error), 0, 0, 0, self._address(self.stream), *[0] * 13)
        args = self.words(*map(self.buffer, given))
        rets = self.words(*map(self.buffer, results))
        self.number = np.array([blocks, 0x7FFFFFFF], np.int32)
        attributes = self.words(self.words(4, self.number.ctypes.data))
        self.frame = [
            176, 0, api, 0xC0, EXECUTING, 40, 0, len(given), 0, args, 40, 0, len(results), 0, rets,
            48, 0, 1, 0, 0, attributes, 0,
        ]  # fmt: skip

    def words(self, *xs):
        self.kept.append((ctypes.c_uint64 * max(len(xs), 1))(*xs))
        return ctypes.addressof(self.kept[-1])

    def buffer(self, x):
        return self.words(48, 0, 0, x.ctypes.data, x.ndim, self.words(*x.shape))

    def _address(self, function):
        return ctypes.cast(function, POINTER).value

    def _stream(self, at):
        words = ctypes.cast(at, ctypes.POINTER(ctypes.c_uint64))
        assert (words[0], words[2]) == (32, 0xC0)
        words[3] = STREAM

    def _error(self, at):
        words = ctypes.cast(at, ctypes.POINTER(ctypes.c_uint64))
        self.messages.append((ctypes.string_at(words[2]).decode(), ctypes.c_uint32.from_address(at + 24).value))
        return FAILURE

    def __call__(self, handler):
        return handler(self.words(*self.frame))


@pytest.fixture
def addresses(monkeypatch):
    """Addresses of the handlers that are registered with XLA, by name."""
    found, own = {}, compiling.handler

    def handler(name, platform, text):
        assert platform == "CUDA"
        engine = own(name, platform, text)
        found[name] = ctypes.CFUNCTYPE(POINTER, POINTER)(engine.get_function_address("handler"))
        return engine

    monkeypatch.setattr(compiling, "handler", handler)
    return found


def called(fn, *args):
    """The call that a batched function becomes: (name, blocks, operands as arrays, results)."""
    (eqn,) = (
        e
        for e in jax.make_jaxpr(over_rows(fn, on=PTX))(*args).eqns
        if e.primitive.name == "ffi_call" and "jaxmbs_ptx" in e.params["target_name"]
    )
    return eqn.params["target_name"], dict(eqn.params["attributes"])["blocks"], [v.aval for v in eqn.outvars]


def double(x, y):
    return jnp.sin(x) * 2 + y, x[0] > y


def operands(rows, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, 9)), rng.normal(size=rows)]


def launch(fake, addresses, rows, seed=0):
    """The results of `double`, through the handler."""
    x, y = operands(rows, seed)
    name, blocks, results = called(double, x, y)
    given = [x, y, np.array([rows], np.int64).view(np.int32)]
    made = [np.zeros(r.shape, r.dtype) for r in results]
    for a in given:
        a.flags.writeable = False
    fake.arrays.update({a.ctypes.data: a for a in (*given, *made)})
    call = Call(given, made, int(blocks))
    return call(addresses[name]), call, made, (given, made)


def test_a_kernel_is_launched_on_the_stream_with_all_arrays(fake, addresses, later):
    status, _, made, _ = launch(fake, addresses, 300)
    assert status is None
    assert fake.launches == [(3, calling.emitting.BLOCK, STREAM)]
    for got, want in zip(made, jax.vmap(double)(*operands(300)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-15)


def test_a_kernel_is_loaded_once_for_all_batches_and_threads(fake, addresses, later):
    sizes = [1, 100, 129, 300, 300, 100]
    with ThreadPoolExecutor(len(sizes)) as pool:
        found = list(pool.map(lambda rows, seed: launch(fake, addresses, rows, seed), sizes, itertools.count()))
    assert len(fake.loaded) == len(addresses) == 1
    for rows, seed, (status, _, made, _) in zip(sizes, itertools.count(), found, strict=False):
        assert status is None
        for got, want in zip(made, jax.vmap(double)(*operands(rows, seed)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    ("status", "said"), [(719, "CUDA_ERROR_LAUNCH_FAILED (719)"), (12345, "an unknown error (12345)")]
)
def test_a_launch_that_fails_is_an_error_of_the_call(fake, addresses, later, status, said):
    fake.status = status
    failure, call, _, _ = launch(fake, addresses, 10)
    ((message, code),) = call.messages
    assert failure == FAILURE and code == 13
    assert message.startswith("CUDA could not launch a kernel: ") and message.endswith(said)


def test_a_kernel_that_cannot_be_loaded_is_an_error_before_the_call(fake, later):
    fake.loading = 218
    with pytest.raises(ModelError, match=r"cannot load a kernel: CUDA_ERROR_INVALID_PTX \(218\)"):
        called(double, *operands(10))


def test_without_the_driver_the_error_says_what_to_do(monkeypatch, later):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    driver._driver.cache_clear()
    with pytest.raises(ModelError, match=r"libcuda\.so\.1, was not found: install it"):
        called(double, *operands(10))


def test_xla_is_told_the_interface_and_that_calls_may_be_replayed(fake, addresses, later):
    name, *_ = called(double, *operands(10))
    call = Call([], [np.zeros(1)], 1)
    metadata = (ctypes.c_uint32 * 16)()
    extension = call.words(32, 1, 0, ctypes.addressof(metadata))
    call.frame[1] = extension
    assert call(addresses[name]) is None
    assert tuple(metadata[6:9]) == (0, 1, 1) and not fake.launches
