"""What the actions of events answer when a run asks them."""

import numpy as np

import jaxmbs as mbs
from jaxmbs.elements import Action

P = {"restitution": 0.5, "rest_rate": 0.1}


def test_what_actions_answer():
    actions = (mbs.Lock("x"), mbs.Release("x"), mbs.Bounce("x"), mbs.Enable("f"), mbs.Disable("f"), mbs.Finish())
    assert [a.lock() for a in actions] == [True, False, None, None, None, None]
    assert [a.switch() for a in actions] == [None, None, None, True, False, None]
    assert [a.rebounds(P) for a in actions] == [True, False, True, False, False, False]
    assert not any(a.rebounds({"restitution": 0.0}) for a in actions)  # zero in every instance
    latch = actions[0]
    assert np.array_equal(latch.rates_after(P, np.array([2.0, -1.0])), [-1.0, 0.5])
    assert latch.closes(P, np.array([0.2, -0.1])) and not latch.closes(P, np.array([0.2, -0.3]))


def test_an_action_of_flags_alone():
    class Jam(Action):
        locks = True

    class Halt(Action):
        strikes = True

    assert (Jam().lock(), Jam().rebounds({})) == (True, False)
    assert (Halt().lock(), Halt().rebounds({})) == (None, True)  # its own `rates_after` may say anything
