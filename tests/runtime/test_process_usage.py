"""What a process tells of itself, row by row."""

from __future__ import annotations

from testbed.record.tables import LOGGED
from testbed.runtime.process_usage import ProcessUsage

PLACE = {column.name: place for place, column in enumerate(LOGGED["processes"])}


def test_a_row_holds_what_happened_since_the_last_one_and_leaves_greetings_out() -> None:
    usage = ProcessUsage()
    usage.would_blocks = 3  # frames that had waited before the run
    usage.passes, usage.stall_s = 7, 0.02

    first, second = usage.take_row("a", 1.0, 5), usage.take_row("a", 2.0, 5)
    usage.close()

    assert len(first) == len(PLACE)
    assert (first[PLACE["would_blocks"]], second[PLACE["would_blocks"]]) == (2, 0)
    assert (first[PLACE["passes"]], second[PLACE["passes"]]) == (7, 0)
    assert (first[PLACE["stall_s"]], second[PLACE["stall_s"]]) == (0.02, 0.0)
