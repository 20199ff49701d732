"""Reports of changes alone."""

from __future__ import annotations

from testbed.roles.changes import Changes


def due(changes: Changes, *counts: int, every_s: float = 1.0) -> list[bool]:
    return [changes.is_due(count, i * every_s) for i, count in enumerate(counts)]


def test_the_first_report_is_due_and_then_what_has_changed() -> None:
    assert due(Changes(1), 0, 0, 1, 1, 0, 0) == [True, False, True, False, True, False]


def test_changes_below_the_threshold_add_up() -> None:
    """It counts from what was last said, not from what was last seen."""
    assert due(Changes(3), 5, 6, 7, 8, 6, 5) == [True, False, False, True, False, True]


def test_a_lease_lets_what_has_not_changed_be_said_again() -> None:
    assert due(Changes(1, lease_s=3.0), 4, 4, 4, 4, 4, 5, 5, 5, 5) == [
        True, False, False, True, False, True, False, False, True,
    ]  # fmt: skip
