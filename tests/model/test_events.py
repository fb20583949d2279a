"""What the actions of events answer when a run asks them, and conditions when a mechanism is built."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Action, Condition, Kind, element, field

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


@element
class Wound(Condition):
    """A joint has turned by a number of turns."""

    joint: str = field(Kind.JOINT, "", "joint that turns")

    def guards(self, p, now):
        return (now.coordinates(self.joint)[0] - 1.0,)

    def check(self, parts, states):
        if not isinstance(parts.joints[self.joint].joint, mbs.Revolute):
            raise mbs.ModelError(f"Wound: joint {self.joint!r} does not turn; name a hinge")


def test_a_condition_may_refuse_a_mechanism_when_it_is_built():
    """Before that, the names in its fields are checked."""
    for joint, said in (("slide", "event 'end': Wound: joint 'slide' does not turn"), ("shaft", "Wound: .*'shaft'")):
        mech = mbs.Mechanism("cart", gravity=(0, 0, 0))
        mech.add_body("cart", 1.0)
        mech.add_joint("slide", mbs.Prismatic((1, 0, 0)), "world", "cart")
        mech.add_event("end", Wound(joint), mbs.Finish())
        with pytest.raises(mbs.ModelError, match=said):
            mech.build()
