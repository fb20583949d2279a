"""The state of an instance between two turns of a run, and what is found out within one."""

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
from jaxmbs.simulate.steppers.base import Phase

if TYPE_CHECKING:
    Flag = Bool[jax.Array, ""]
    Number = Float[jax.Array, ""]
    Count = Int[jax.Array, ""]

ON_GRID, AFTER_JUMP = -1, -2  # in place of an event's index: at a point of the grid; just after velocities jumped


class Turn(NamedTuple):
    """The state of one instance between two turns."""

    phase: Phase  # q, v, work
    cell: Count  # number of finished cells of the grid
    into: Number  # [s] since the start of the current one
    mode: Mode  # what is locked, what acts, and on which side of its corners each element is
    below: tuple[Flag, ...]  # per guard of an event: whether it was negative when last seen, so that it can rise
    met: tuple[Flag, ...]  # per guard of a stop: whether the stop is met (`Stops`)
    stuck: Flag  # whether the run ended because the motion was about to pass a stop on which it rests
    fired: tuple[Count, ...]  # per event: how often it has happened
    search: Search  # for the instant of an event, and the length of the next trial
    events: Events | None  # the log, None if the model has no events: fused loops take no empty arrays
    count: Count  # pyright: ignore[reportIncompatibleMethodOverride] # number of places of the log that are used
    due: Count | None  # event whose impact the next turn computes (-1: none), None if no event has an impact
    lost: Number  # [J] energy lost in events so far
    done: Flag  # whether the instance stands still from now on
    t_done: Number  # [s] time at which it was done
    spare: Count  # turns left for switching surfaces
    pace: Pace | None  # lengths of steps and their counts in a run with a tolerance
    balance: Balance  # of the energies before every step
    seen: tuple[tuple[Number, Number], ...]  # (value, rate) of each guard of an event at the start of the current step
    peak: Number  # [s] length of the next trial, up to where a guard may rise and fall again; infinite if nowhere
    misplaced: tuple[Flag, ...]  # per event that switches constraints on: whether they were violated then
    extra: Any  # carried along by `landed`
    kept: Any  # what `landed` last returned


class Tried(NamedTuple):
    """A trial step, back on its constraints, or the impact that takes the place of one."""

    begin: Number  # [s] time at its start
    h: Number  # [s] its length
    t: Number  # [s] time at its end
    length: Number  # [s] of the cell
    rest: Number  # [s] the longest that it might be: up to the next instant, or the end of the cell
    searching: Flag  # whether something is being located
    looking: Flag  # whether it goes to where a guard may have risen within the step that was refused
    jumped: Flag  # whether velocities jump in place of a step
    short: Flag  # whether it would end at an instant before the cell does
    cut: Flag  # whether its tolerance, or looking, ends it before that
    instant: Count  # the next instant: one of the force elements', or one at which an event is armed; -1: none
    unarmed: dict[int, Number]  # [s] per event with a time from which it is armed: until then, infinite if it is past
    step: Advanced  # what came of it
    fails: Flag  # whether its error is too large


class Judged(NamedTuple):
    """What the guards say of a trial step: those of events first, then those of switching surfaces."""

    values: list[Any]  # at its end
    rates: list[Any]  # along the motion, without derivatives
    at: list[Any]  # [s] lengths of the step at which they vanish, by Newton's method
    armed: list[Any]  # whether they count
    may: list[Any]  # per event: whether it may happen
    finest: Number  # [s] how near to its instant an event must be located
    peak: Number  # [s] where a guard may have risen and fallen again within the step; infinite if nowhere
    out: Outcome  # the decision


class Happened(NamedTuple):
    """What changes at the end of a trial step because an event or a switching surface was met."""

    at_corner: Flag  # whether what is located is a switching surface
    logged: Flag  # whether an event happens, and so belongs into the log
    event: Count  # the event that is located
    now: list[Any]  # per event: whether it happens
    closed: list[Any]  # per event: whether its locks close if it does
    mode: Mode  # afterwards
    due: Count | None  # event whose impact the next turn computes (`Turn.due`)
    dropped: Number  # [J] energy that this takes
