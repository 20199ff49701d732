"""What a server states to a probe."""

from __future__ import annotations

from testbed.serving.latency_memory import ENOUGH, MEMORY, STALE, LatencyMemory


def filled(*samples: tuple[int, float]) -> LatencyMemory:
    """A memory of these (in flight, latency), all completed at instant 1."""
    memory = LatencyMemory()
    for in_flight, latency_s in samples:
        memory.add(in_flight, latency_s, 1.0)
    return memory


def test_nothing_is_stated_before_anything_was_completed() -> None:
    assert LatencyMemory().latency_s(3, 0.0) == 0.0


def test_the_median_of_the_nearest_counts_is_stated() -> None:
    """Enough of count 4; those of count 9 are not looked at, nor does the single slow one count."""
    memory = filled(*[(4, 0.1)] * ENOUGH, (4, 9.0), *[(9, 0.5)] * MEMORY)

    assert memory.latency_s(4, 1.0) == 0.1
    assert memory.latency_s(5, 1.0) == 0.1
    assert filled(*[(4, 0.1)] * ENOUGH, *[(9, 0.5)] * ENOUGH).latency_s(8, 1.0) == 0.5


def test_where_the_nearest_are_few_the_next_ones_count_too() -> None:
    """One short request at the very count does not make the server look quick."""
    memory = filled((20, 0.001), *[(18, 0.3)] * ENOUGH)

    assert memory.latency_s(20, 1.0) == 0.3


def test_requests_without_work_do_not_make_a_crowded_server_look_quick() -> None:
    """Of the newest, at count 300, only those without work are completed; all others are still there."""
    memory = filled(*[(30, 0.4)] * ENOUGH, *[(300, 0.0)] * MEMORY)

    assert memory.latency_s(300, 1.0) == 0.4


def test_only_the_latest_of_a_count_are_kept() -> None:
    memory = filled(*[(4, 5.0)] * MEMORY, *[(4, 0.1)] * MEMORY)

    assert memory.latency_s(4, 1.0) == 0.1


def test_a_count_that_comes_back_is_known_again() -> None:
    """Many completions at count 9 do not change what is known of count 4."""
    memory = filled(*[(4, 0.1)] * ENOUGH, *[(9, 0.5)] * 10 * MEMORY)

    assert memory.latency_s(4, 1.0) == 0.1


def test_an_estimate_is_dropped_when_nothing_came_of_it_for_long() -> None:
    memory = filled((4, 0.5))

    assert memory.latency_s(4, 1.0 + STALE * 0.5) == 0.5
    assert memory.latency_s(4, 1.1 + STALE * 0.5) == 0.0
