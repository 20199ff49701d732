"""Periodic instants: absolute, without drift, and what was missed is done once."""

from testbed.roles.schedule import Schedule


def test_instants_are_multiples_and_do_not_drift():
    schedule = Schedule(0.1, 0.05)
    for _ in range(1000):
        schedule.passed(schedule.next_at_s + 0.03)
    assert schedule.next_at_s == 0.05 + 1000 * 0.1
    assert schedule.skipped == 0


def test_what_was_missed_is_skipped_and_counted():
    """A process stopped for two seconds sends one report afterwards, not twenty."""
    schedule = Schedule(0.1, 0.0)
    assert schedule.passed(2.05) == 2.1
    assert schedule.skipped == 20


def test_an_instant_that_is_exactly_now_counts_as_passed():
    schedule = Schedule(0.5, 0.0)
    assert schedule.passed(0.5) == 1.0
