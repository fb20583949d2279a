"""Control laws: functions for `Controller`, whose gains are its `parameters`. A file names them "laws.<name>".

Each is called as fn(model, t, q, v, state, readings, parameters) and uses the readings of the sensors in the order of
`reads`; the commands are for the parameters in `writes`, in their order. Gains with a default may be left out, and so may
the state of a law that has one. Gains of other names are refused when the controller is added to a mechanism, and sensors
that give something else when the mechanism is built.

>>> mech = mbs.library.double_pendulum()
>>> mech.add_force("motor", mbs.Actuator("shoulder", lag=0.01))
>>> mech.add_sensor("encoder", mbs.Encoder("shoulder"))
>>> gains = {"stiffness": 80.0, "damping": 20.0}
>>> law = mbs.Controller(mbs.laws.proportional_derivative, 0.01, reads="encoder", writes="motor.command", parameters=gains)
>>> mech.add_controller("hold", law)
>>> run = mbs.simulate(mech.build(), [0.3, 0.0], [0.0, 0.0], t_end=5.0, dt=0.01)
>>> print(abs(run.q[-1, 0]) < 0.01)
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.model.control.needs import LIST, NUMBER, Gain, Needs, Reading, declares
from jaxmbs.model.errors import ModelError

Parameters = Mapping[str, Any]

_DEMAND = {"stiffness": Gain(), "damping": Gain(), "target": Gain(0.0), "dead_band": Gain(0.0, least=0.0)}
_COORDINATE = Reading(
    "a coordinate and its rate (2 numbers), as from an Encoder of a joint with one degree of freedom (laws.gain_table takes "
    "any sensors)",
    (2,),
)
_ATTITUDE = Reading("an attitude (4 numbers), as from a StarTracker", (4,))
_TURNING = Reading("an angular velocity (3 or 6 numbers), as from an Imu", (3, 6))

_HOLD = Needs("laws.proportional_derivative", _DEMAND, (_COORDINATE,))


@declares(_HOLD)
def proportional_derivative(
    model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Parameters
) -> tuple[Any, Any]:
    """One command from a reading (coordinate, rate), such as that of an Encoder: -stiffness e - damping rate, where e is the
    difference of the coordinate from `target` (0), reduced by a `dead_band` (0) on either side."""
    [(place, rate)] = _HOLD.seen(readings)
    gains = _HOLD.complete(parameters)
    error = _dead_band(place - gains["target"], gains["dead_band"])
    return state, -gains["stiffness"] * error - gains["damping"] * rate


def _turns(p: Parameters) -> Parameters:
    """What must hold of the target and the axes of `quaternion_feedback`."""
    found, axes = {}, p.get("axes", np.zeros(0))
    if "target" in p:
        found["target: pass a quaternion that is not zero"] = (p["target"] * p["target"]).sum(-1) > 0
    found["axes: pass three numbers for each command"] = axes.shape[-1] % 3 == 0
    if axes.shape[-1] and axes.shape[-1] % 3 == 0:
        rows = axes.reshape(*axes.shape[:-1], -1, 3)
        found["axes: one must not be zero, two not parallel, three or more not in one plane"] = _independent(rows)
    return found


def _independent(rows: Any) -> Any:
    """Whether n directions (..., n, 3) are independent, or three of them if n is more; from the determinant by which
    `_solved` divides."""
    n = min(rows.shape[-2], 3)
    left, right = (rows[..., :, None, :], rows[..., None, :, :]) if n < 3 else (rows[..., :, None], rows[..., None, :])
    A = (left * right).sum(-1 if n < 3 else -3)
    most = A[..., 0, 0]
    if n == 1:
        return most > 0
    det, most = most * A[..., 1, 1] - A[..., 0, 1] ** 2, most * A[..., 1, 1]
    if n == 3:
        b, c, d = A[..., 0, 1], A[..., 0, 2], A[..., 1, 2]
        det, most = A[..., 2, 2] * det + 2 * b * c * d - A[..., 0, 0] * d**2 - A[..., 1, 1] * c**2, most * A[..., 2, 2]
    return det > 1e-12 * most


_TURN = Needs(
    "laws.quaternion_feedback",
    {
        "stiffness": Gain(shapes=(NUMBER, (3,))),
        "damping": Gain(shapes=(NUMBER, (3,))),
        "target": Gain((1.0, 0.0, 0.0, 0.0), shapes=((4,),)),
        "axes": Gain((), shapes=(LIST,)),
    },
    (_ATTITUDE, _TURNING),
    together=_turns,
)


@declares(_TURN)
def quaternion_feedback(
    model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Parameters
) -> tuple[Any, Any]:
    """Torques that turn a body to an attitude, from readings of a StarTracker and then of an Imu, in body axes:
    -stiffness e - damping w [Wie 1998, 7.3], where e is twice the vector part of the quaternion from the body to the
    `target` (1, 0, 0, 0), on the shorter way, and w the angular velocity.

    stiffness and damping are one number each, or three, by axis. axes: the torque on the body for a command of 1, three
    numbers for each command, by default the three body axes. More than three commands are those of least norm; fewer come as
    close to the torque as they can (least squares). A single axis must not be zero, two must not be parallel, and three or
    more must not all lie in one plane. The command of a reaction wheel is the torque on the wheel, so that its numbers are
    minus its axis; those of a gimbal are thrust times lever.
    """
    attitude, turning = _TURN.seen(readings)
    gains = _TURN.complete(parameters)
    target = jnp.asarray(gains["target"], attitude.dtype)
    a, b, c, d = target / jnp.sqrt(jnp.sum(target * target))
    w, x, y, z = attitude
    whole = a * w + b * x + c * y + d * z
    vector = jnp.stack([a * x - b * w - c * z + d * y, a * y - c * w - d * x + b * z, a * z - d * w - b * y + c * x])
    error = 2 * jnp.where(whole < 0, -vector, vector)
    torque = -gains["stiffness"] * error - gains["damping"] * turning[:3]
    if "axes" not in parameters:
        return state, tuple(torque)
    axes = jnp.asarray(parameters["axes"]).reshape(-1, 3)
    if len(axes) < 3:
        return state, tuple(_solved(axes @ axes.T, axes @ torque))
    return state, tuple(axes @ _solved(axes.T @ axes, torque))


_TABLE = Needs(
    "laws.gain_table",
    {"times": Gain(shapes=(NUMBER, LIST)), "gains": Gain(shapes=(NUMBER, LIST))},
    together=lambda p: {
        "times: a time must not be less than the one before": (p["times"][..., 1:] >= p["times"][..., :-1]).all(-1)
    },
)


@declares(_TABLE)
def gain_table(
    model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Parameters
) -> tuple[Any, Any]:
    """Commands -K x, where x are the readings of all sensors, one after another, and K is interpolated linearly between the
    `times` and constant outside; at a time that is given twice, it jumps. gains has the matrices at these times, row by
    row, one row for each command."""
    x = jnp.concatenate([jnp.ravel(r) for r in readings.values()])
    gains = _TABLE.complete(parameters)
    times, table = jnp.atleast_1d(gains["times"]), jnp.atleast_1d(gains["gains"])
    if table.size % (times.size * x.size):
        raise ModelError(
            f"gain_table: {table.size} gains for {times.size} times and {x.size} readings; give a whole number of rows of "
            f"{x.size} for every time"
        )
    table = table.reshape(times.size, -1, x.size)
    if times.size == 1:
        return state, tuple(-table[0] @ x)
    width = jnp.diff(times)  # of each interval; where a time is given twice, the gains jump
    share = (t - times[:-1]) / jnp.where(width > 0, width, 1.0)
    passed = jnp.where(width > 0, jnp.clip(share, 0.0, 1.0), jnp.where(share < 0, 0.0, 1.0))
    return state, tuple(-(table[0] + jnp.tensordot(passed, jnp.diff(table, axis=0), 1)) @ x)


_PULSES = Needs("laws.pulse_width", {**_DEMAND, "full": Gain(above=0.0)}, (_COORDINATE,), state=4)


@declares(_PULSES)
def pulse_width(
    model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Parameters
) -> tuple[Any, Any]:
    """Pulses of two opposite PulsedThrusters, for writes = ("plus.start", "plus.width", "minus.start", "minus.width").

    The demand is that of `proportional_derivative`, as a share of `full`, the torque or force of a thruster that fires all
    the time; the pulse lasts this share of the controller's period, and begins with the controller's delay after the sample.
    If the pulse before lasted the whole period, it goes on: it keeps its start and becomes longer. The next command cuts off
    what remains of a thruster's `fall`.
    state: start and width of the last pulses, zero at the start.
    """
    state = _PULSES.remembered(state)
    _, demand = proportional_derivative(model, t, q, v, state, readings, parameters)
    gains = _PULSES.complete(parameters, "period", "delay")
    period, begin = gains["period"], t + gains["delay"]
    share = jnp.clip(demand / gains["full"], -1.0, 1.0)
    out = []
    for side, (start, width) in zip((share, -share), jnp.reshape(state, (2, 2)), strict=True):
        own = jnp.maximum(side, 0.0) * period
        ends, near = start + width, 1e-6 * period + _rounding(begin, state)
        goes_on = (width > 0) & (own > 0) & (jnp.abs(ends - begin) < near)
        out += [jnp.where(goes_on, start, begin), jnp.where(goes_on, begin - start + own, own)]
    return jnp.stack(out), tuple(out)


_MODULATOR = Needs(
    "laws.pulse_width_pulse_frequency",
    {
        **_DEMAND,
        "full": Gain(above=0.0),
        "gain": Gain(1.0, above=0.0),
        "lag": Gain(above=0.0),
        "on": Gain(above=0.0),
        "off": Gain(least=0.0),
        "minimum": Gain(0.0, least=0.0),
        "thrust": Gain(),
    },
    (_COORDINATE,),
    state=4,
    together=lambda p: {"off must not be more than on": (p["off"] <= p["on"]).all(-1)},
)


@declares(_MODULATOR)
def pulse_width_pulse_frequency(
    model: Any, t: Any, q: Any, v: Any, state: Any, readings: Any, parameters: Parameters
) -> tuple[Any, Any]:
    """Two opposite thrusters that are on or off, for writes = ("plus.thrust", "minus.thrust"): a pulse-width
    pulse-frequency modulator [Wie 1998, 7.6].

    The demand e is that of `proportional_derivative`, as a share of `full`. A filter of first order, with the `gain` (1)
    and the time constant `lag`, has the input e - u. When its output reaches +-`on`, u becomes +-1, until the size of the
    output falls below `off`, and at least for `minimum` (0); `thrust` is what a thruster gets while it is on. The filter is
    computed exactly from sample to sample, and thrusters switch at samples: let the controller sample often. state:
    output, u, time of the last sample, time at which u changed, zero at the start.
    """
    state = _MODULATOR.remembered(state)
    output, u, before, since = state
    _, demand = proportional_derivative(model, t, q, v, state, readings, parameters)
    gains = _MODULATOR.complete(parameters)
    error = demand / gains["full"] - u
    kept = jnp.exp(-jnp.maximum(t - before, 0.0) / gains["lag"])
    output = kept * output + (1 - kept) * gains["gain"] * error
    fires = jnp.where(output >= gains["on"], 1.0, jnp.where(output <= -gains["on"], -1.0, 0.0))
    holds = (u != 0) & ((u * output > gains["off"]) | (t - since < gains["minimum"] - _rounding(t, state)))
    new = jnp.where(holds, u, fires)
    state = jnp.stack([output, new, jnp.asarray(t, output.dtype), jnp.where(new == u, since, t)])
    thrust = gains["thrust"]
    return state, (jnp.where(new > 0, thrust, 0.0), jnp.where(new < 0, thrust, 0.0))


def _solved(A: Any, b: Any) -> Any:
    """The solution (n,) of A x = b for up to three unknowns, by Cramer's rule: arithmetic on numbers, which machine code of
    a batch does, unlike the functions of LAPACK."""
    if len(b) == 1:
        return b / A[0]
    if len(b) == 2:
        (p, q), (r, s) = A
        return jnp.stack([s * b[0] - q * b[1], p * b[1] - r * b[0]]) / (p * s - q * r)
    normals = [jnp.cross(A[(k + 1) % 3], A[(k + 2) % 3]) for k in range(3)]
    return sum(b[k] * normals[k] for k in range(3)) / (A[0] @ normals[0])


def _rounding(t: Any, state: Any) -> Any:
    """How far apart two times near t that are meant to be the same may lie in the numbers of the state."""
    return 8 * jnp.finfo(state.dtype).eps * jnp.abs(t)


def _dead_band(x: Any, width: Any) -> Any:
    """x less the width on either side of zero, 0 within it."""
    return jnp.where(x > width, x - width, jnp.where(x < -width, x + width, 0.0))
