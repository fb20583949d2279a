"""Tests of events fail where no event happens: what they assert is the event's doing."""

import pytest

import jaxmbs as mbs
from tests.simulate import test_events, test_events_in_loops, test_guards, test_release, test_separation

QUICK = (
    test_events.test_rows_stay_on_the_grid_whatever_happens_between_them,
    test_events.test_a_latch_is_an_inelastic_impact_that_keeps_the_momentum,
    test_guards.test_a_latch_rebounds_until_it_is_slow_and_then_holds,
)
LONG = (
    test_events.test_held_joints_wait_for_their_release_and_events_for_one_another,
    test_events.test_elements_switch_with_the_energy_that_they_bring_and_take,
    test_events.test_a_bouncing_ball_follows_its_closed_form_with_exact_derivatives,
    test_events.test_a_reaction_above_its_limit_releases_a_lock,
    test_events.test_instances_of_a_batch_have_their_own_events_and_do_not_disturb_one_another,
    test_events_in_loops.test_latched_let_go_and_cut_open,
    test_events_in_loops.test_a_blade_that_comes_down_takes_the_velocity_across_it,
    test_guards.test_more_events_than_there_is_room_for_stop_the_run,
    test_guards.test_what_comes_after_a_latch_waits_until_it_holds,
    test_release.test_a_hinge_lets_go_at_an_angle,
    test_release.test_a_spring_plate_beside_the_centre_of_mass_tips_off_at_the_end_of_the_rail,
    test_separation.test_ten_springs_that_unload_part_100_kg_from_900_kg_with_one_metre_per_second,
)
CASES = [*QUICK, *(pytest.param(test, marks=pytest.mark.slow) for test in LONG)]


@pytest.mark.parametrize("test", CASES, ids=lambda test: test.__name__)
def test_fails_without_its_events(test, monkeypatch):
    added = mbs.Mechanism.add_event

    def never(*args, **guards):
        added(*args, **guards | {"armed_from": 1e9})

    monkeypatch.setattr(mbs.Mechanism, "add_event", never)
    with pytest.raises(AssertionError):
        test()
