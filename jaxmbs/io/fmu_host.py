"""FMUs on the host: instances, called by FMPy, behind a function of states that has no memory itself."""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import tempfile
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmbs.errors import ModelError, ModelWarning

WORDS = 4  # numbers that name a state: 24 bits each, which single precision holds, too
STATES = 1 << 29  # bytes of states that are kept; older ones are computed again
SAMPLES = 500_000  # samples that are remembered
NEAR = {8: 0.01, 4: 0.25}  # by bytes of a number: share of the period within which an instant is that of a sample


class Variable(NamedTuple):
    """A variable of an FMU: kind is its type in the functions of FMI ("Float64"), size how many numbers it has."""

    name: str
    reference: int
    kind: str
    size: int


class Kept(NamedTuple):
    """One sample. before: the name of the state before it, None at the start; start: the time of the first sample [s];
    periods: how many have passed since then; inputs: the numbers that are set at this sample; values: those of the
    parameters, at the start only; outputs: their numbers at this sample."""

    before: bytes | None
    start: float
    periods: int
    inputs: bytes
    values: bytes
    outputs: bytes


class Failed(Exception):
    """A call that an FMU has refused."""


class Host:
    """Instances of an FMU. A state of the FMU is named by what led to it, so that the same name is always the same state:
    the states are kept in their serialized form, or in instances where the FMU cannot do this, and what is no longer there
    is computed again from the start."""

    def __init__(
        self, fmpy: Any, said: Any, name: str, content: bytes, period: float, variables: Sequence[Sequence[Variable]]
    ):  # fmt: skip
        self.fmpy, self.said, self.name, self.content, self.period = fmpy, said, name, content, period
        self.inputs, self.outputs, self.parameters = variables
        self.lock = threading.RLock()
        self.samples: OrderedDict[bytes, Kept] = OrderedDict()
        self.states: OrderedDict[bytes, bytes] = OrderedDict()
        self.held = 0  # bytes of states
        self.live: OrderedDict[bytes, Any] = OrderedDict()  # instances by their state
        self.rows = 1  # of the largest batch
        self.folder: Path | None = None
        self.complaints: set[str] = set()

    @property
    def serializes(self) -> bool:
        """Whether its states can be kept apart from an instance."""
        return bool(self.said.coSimulation.canSerializeFMUstate)

    def __call__(self, t: Any, name: Any, inputs: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """(the names of the states, outputs) after samples, NaN where none is due or where the FMU failed.

        t (...): instants; name (..., WORDS): of the states before; inputs, values (..., n); all have the same leading axes.
        """
        t, name, inputs, values = (np.asarray(x) for x in (t, name, inputs, values))
        rows, near = t.shape, NEAR[t.dtype.itemsize]
        names = np.full((t.size, WORDS), np.nan, t.dtype)
        outputs = np.full((t.size, sum(x.size for x in self.outputs)), np.nan, t.dtype)
        given = [x.reshape(t.size, -1).astype(float) for x in (name, inputs, values)]
        with self.lock:
            self.rows = max(self.rows, t.size)
            for k, instant in enumerate(t.reshape(-1).tolist()):
                own, u, p = (x[k] for x in given)
                if not all(np.isfinite(x).all() for x in (own, u, p)):
                    continue
                try:
                    found = self._sample(instant, own, u, p, near)
                except Failed as error:
                    self._complain(f"{error}; the motion of this row ends with the status NOT_FINITE")
                    continue
                if found is not None:
                    names[k], outputs[k] = _numbers(found), np.frombuffer(self.samples[found].outputs)
        return names.reshape(*rows, -1), outputs.reshape(*rows, -1)

    def _complain(self, text: str) -> None:
        if text not in self.complaints:
            self.complaints.add(text)
            warnings.warn(f"FMU {self.name!r}: {text}", ModelWarning, stacklevel=2)

    def _sample(self, t: float, name: Any, inputs: Any, values: Any, near: float) -> bytes | None:
        """The state after a sample; None if none is due."""
        if not name.any():
            made = Kept(None, t, 0, inputs.tobytes(), values.tobytes(), b"")
        else:
            before = name.astype(np.uint32).tobytes()
            of = self._kept(before)
            since = (t - of.start) / self.period
            count = round(since)
            if abs(since - count) > near or count == of.periods:
                return None
            if count < of.periods:
                raise ModelError(
                    f"FMU {self.name!r}: it was sampled up to {of.start + of.periods * self.period:g} s and cannot go "
                    f"back to {t:g} s; begin with its state at zero"
                )
            made = Kept(before, of.start, count, inputs.tobytes(), b"", b"")
        key = _digest(made)
        if key not in self.samples:
            unit = self._at(made.before)
            outputs = self._advance(unit, made)
            self._keep(key, made._replace(outputs=outputs), unit)
        self.samples.move_to_end(key)
        return key

    def _kept(self, key: bytes) -> Kept:
        if key not in self.samples:
            raise ModelError(
                f"FMU {self.name!r}: a state of it is named that is not kept, of another process or another FMU, or of "
                f"more than {SAMPLES} samples ago; begin with its state at zero"
            )
        self.samples.move_to_end(key)
        return self.samples[key]

    def _at(self, key: bytes | None) -> Any:
        """An instance in the state with this name, a new instance for None; from now on it belongs to the caller."""
        lost, at = [], key
        while at is not None and at not in self.states and at not in self.live:
            lost.append(self._kept(at))
            at = lost[-1].before
        if at in self.states:
            self.states.move_to_end(at)
        if at is None:
            unit = self._new()
        elif at in self.live:
            unit = self.live.pop(at)
        else:
            unit = self.live.popitem()[1] if self.live else self._new()
            with self._guard(unit):
                state = (unit.deserializeFMUState if self.said.fmiMajorVersion > 2 else unit.deSerializeFMUstate)(
                    self.states[at]
                )
                unit.setFMUState(state)
                unit.freeFMUState(state)
        for sample in reversed(lost):
            self._advance(unit, sample)
        return unit

    def _keep(self, key: bytes, made: Kept, unit: Any) -> None:
        """Keep a sample and the state of the instance after it."""
        self.samples[key] = made
        if len(self.samples) > max(SAMPLES, 8 * self.rows):
            self.samples.popitem(last=False)
        if self.serializes:
            with self._guard(unit):
                state = unit.getFMUState()
                whole = (unit.serializeFMUState if self.said.fmiMajorVersion > 2 else unit.serializeFMUstate)(state)
                unit.freeFMUState(state)
            self.states[key] = whole
            self.held += len(whole)
            while self.held > STATES and len(self.states) > 1:
                self.held -= len(self.states.popitem(last=False)[1])
        self.live[key] = unit
        most = 1 if self.serializes or self.said.coSimulation.canBeInstantiatedOnlyOncePerProcess else 2 * self.rows + 8
        while len(self.live) > most:
            _freed(self.live.popitem(last=False)[1])

    def _new(self) -> Any:
        """An instance that is not initialized."""
        if self.said.coSimulation.canBeInstantiatedOnlyOncePerProcess:
            while self.live:
                _freed(self.live.popitem()[1])
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="jaxmbs-fmu-"))
            weakref.finalize(self, _left, self.live, self.folder)
            self.fmpy.extract(io.BytesIO(self.content), str(self.folder))
        version = self.said.fmiMajorVersion
        kind = self.fmpy.fmi3.FMU3Slave if version > 2 else self.fmpy.fmi2.FMU2Slave
        identifier = self.said.coSimulation.modelIdentifier
        try:
            unit = kind(
                guid=self.said.guid,
                unzipDirectory=str(self.folder),
                modelIdentifier=identifier,
                instanceName=identifier,
            )
            unit.instantiate()
        except Exception as error:
            raise ModelError(f"FMU {self.name!r}: it cannot be instantiated: {error}") from None
        return unit

    @contextlib.contextmanager
    def _guard(self, unit: Any) -> Any:
        """Raises Failed for what FMPy raises; an instance that has failed is freed."""
        try:
            yield
        except (self.fmpy.fmi1.FMICallException, ValueError, OverflowError) as error:
            with contextlib.suppress(Exception):
                unit.freeInstance()
            raise Failed(str(error)) from None

    def _advance(self, unit: Any, sample: Kept) -> bytes:
        """Bring an instance from the state before a sample to the one after it; returns the outputs."""
        with self._guard(unit):
            if sample.before is None:
                self._begin(unit, sample)
                return self._outputs(unit)
            for k in range(self.samples[sample.before].periods, sample.periods):
                self._step(unit, sample.start + k * self.period)
            # in this order: FMI 2 knows no outputs between new inputs and the step that uses them
            outputs = self._outputs(unit)
            self._set(unit, self.inputs, sample.inputs)
            return outputs

    def _begin(self, unit: Any, sample: Kept) -> None:
        self._set(unit, self.parameters, sample.values)
        if self.said.fmiMajorVersion > 2:
            unit.enterInitializationMode(startTime=sample.start)
        else:
            unit.setupExperiment(startTime=sample.start)
            unit.enterInitializationMode()
        self._set(unit, self.inputs, sample.inputs)
        unit.exitInitializationMode()

    def _step(self, unit: Any, t: float) -> None:
        """One period from t on."""
        done = unit.doStep(t, self.period)
        if done is not None and (done[1] or done[2]):  # of FMI 3: it ends the simulation, or came back before the end
            unit.freeInstance()
            raise Failed(f"it ended the simulation at {done[3]:g} s")

    def _set(self, unit: Any, variables: Sequence[Variable], numbers: bytes) -> None:
        given, at = np.frombuffer(numbers), 0
        for x in variables:
            own = given[at : at + x.size]
            at += x.size
            whole = own.tolist() if x.kind in FLOATS else (own != 0).tolist() if x.kind == "Boolean" else _whole(own)
            getattr(unit, f"set{x.kind}")([x.reference], whole)

    def _outputs(self, unit: Any) -> bytes:
        found: list[Any] = []
        for x in self.outputs:
            read = getattr(unit, f"get{x.kind}")
            found += read([x.reference]) if x.size == 1 else read([x.reference], nValues=x.size)
        return np.array(found, float).tobytes()


FLOATS = ("Real", "Float64", "Float32")
INTEGERS = ("Integer", *(f"{u}Int{n}" for u in ("", "U") for n in (8, 16, 32, 64)))


def _whole(x: np.ndarray) -> list[int]:
    return [round(v) for v in x.tolist()]


def _digest(sample: Kept) -> bytes:
    """The name of the state after a sample."""
    head = np.array([sample.start, sample.periods]).tobytes()
    found = hashlib.sha256(b"|".join([sample.before or b"", head, sample.inputs, sample.values])).digest()
    words = np.frombuffer(found[: 4 * WORDS], np.uint32) & 0xFFFFFF
    return (words | (~words.any()).astype(np.uint32)).tobytes()  # zeros are the state before the start


def _numbers(key: bytes) -> np.ndarray:
    return np.frombuffer(key, np.uint32).astype(float)


def _freed(unit: Any) -> None:
    with contextlib.suppress(Exception):
        unit.terminate()
    with contextlib.suppress(Exception):
        unit.freeInstance()


def _left(live: OrderedDict[bytes, Any], folder: Path) -> None:
    """Removes the instances and the folder of a host that nobody needs anymore."""
    while live:
        _freed(live.popitem()[1])
    shutil.rmtree(folder, ignore_errors=True)
