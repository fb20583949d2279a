"""The state of an instance between two iterations of a run, and the results of the stages of an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from jaxmbs.model import Mode
from jaxmbs.model.shapes import Bool, Float, Int
from jaxmbs.simulate.advance import Advanced
from jaxmbs.simulate.balance import Balance
from jaxmbs.simulate.locating import Outcome, Search
from jaxmbs.simulate.log import Events
from jaxmbs.simulate.pace import Pace
from jaxmbs.simulate.sampling import Samples
from jaxmbs.simulate.steppers.base import Phase

if TYPE_CHECKING:
    Flag = Bool[jax.Array, ""]
    Number = Float[jax.Array, ""]
    Count = Int[jax.Array, ""]

ON_GRID, AFTER_JUMP = -1, -2  # in place of an event's index: at a point of the grid; just after velocities jumped


class RunState(NamedTuple):
    """The state of one instance between two iterations."""

    phase: Phase  # q, v, work, and the states of elements
    cell: Count  # number of finished cells of the grid
    into: Number  # [s] time since the start of the current cell
    mode: Mode  # locks, switches, and the sides of its switching surfaces on which each element is
    below: tuple[Flag, ...]  # per guard of an event: whether it was negative before, so that it can rise
    met: tuple[Flag, ...]  # per guard of a stop: whether the stop is met (`Stops`)
    stuck: Flag  # whether the run ended because the motion would have passed a stop on which it rests
    fired: tuple[Count, ...]  # per event: how often it has happened and its locks closed
    search: Search  # for the time of an event, and the length of the next trial
    events: Events | None  # the log; None if the model has no events, because fused loops take no empty arrays
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride] # number of used places of the log
    due: Count | None  # event whose impact the next iteration computes (-1: none), None if no event has one
    lost: Number  # [J] energy lost in events so far
    done: Flag  # whether the instance has ended and changes no more
    t_done: Number  # [s] time at which it ended
    spare: Count  # iterations left for switching surfaces
    pace: Pace | None  # lengths and numbers of steps in a run with a tolerance
    balance: Balance  # of the energies before every step
    seen: tuple[tuple[Number, Number], ...]  # (value, rate) of each guard of an event at the start of the current step
    peak: Number  # [s] length of the next trial, to where a guard may rise and fall again; infinite if none does
    misplaced: tuple[Flag, ...]  # per event that switches constraints on: whether they were violated then
    samples: Samples | None  # of the controllers, if there are any
    extra: Any  # what `landed` accumulates
    kept: Any  # what `landed` returned at the last point of the grid


class Tried(NamedTuple):
    """A trial step, projected onto the constraints, or the impact that replaces it."""

    begin: Number  # [s] time at its start
    h: Number  # [s] its length
    t: Number  # [s] time at its end
    length: Number  # [s] length of the cell
    rest: Number  # [s] its greatest possible length, to the next instant or the end of the cell
    searching: Flag  # whether something is being located
    looking: Flag  # whether it ends where a guard may have risen within the refused step
    jumped: Flag  # whether velocities jump in place of a step
    short: Flag  # whether an instant comes before the end of the cell
    cut: Flag  # whether the tolerance, or `looking`, ends it even before that
    instant: Count  # index of the next instant: of a force element, or one at which an event is armed; -1: none
    unarmed: dict[int, Number]  # [s] per event with `armed_from`: time until then, infinite if it is past
    step: Advanced  # its result
    fails: Flag  # whether its error is too large


class Judged(NamedTuple):
    """The guards at the end of a trial step, those of events first, then those of switching surfaces."""

    values: list[Any]  # at the end of the step
    rates: list[Any]  # along the motion, without derivatives
    at: list[Any]  # [s] lengths of the step at which they vanish, by Newton's method
    armed: list[Any]  # whether they count
    may: list[Any]  # per event: whether it may happen
    finest: Number  # [s] how exactly the time of an event must be located
    peak: Number  # [s] length at which a guard may have risen before it fell again; infinite if none did
    out: Outcome  # the decision


class Happened(NamedTuple):
    """What changes at the end of a trial step because an event or a switching surface was met."""

    at_corner: Flag  # whether what is located is a switching surface
    logged: Flag  # whether an event happens, which then enters the log
    event: Count  # the event that is located
    now: list[Any]  # per event: whether it happens
    closed: list[Any]  # per event: whether its locks close if it does
    mode: Mode  # afterwards
    due: Count | None  # event whose impact the next iteration computes (`RunState.due`)
    dropped: Number  # [J] energy lost by it
