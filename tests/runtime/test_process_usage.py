"""What a process tells of itself, row by row."""

from __future__ import annotations

import gc
import math

from testbed.record.tables import LOGGED
from testbed.runtime.process_usage import ProcessUsage

PLACE = {column.name: place for place, column in enumerate(LOGGED["processes"])}


def test_a_row_holds_what_happened_since_the_last_one_and_leaves_greetings_out() -> None:
    usage = ProcessUsage()
    usage.would_blocks = 3  # frames that had waited before the run
    usage.passes = 7
    for began_at_s, spent_s in ((0.3, 0.01), (0.5, 0.02), (0.7, 0.005)):
        usage.note_pass(began_at_s, spent_s)

    first, second = usage.take_row("a", 1.0, 5, 0.001), usage.take_row("a", 2.0, 5, 0.0)
    usage.close()

    assert len(first) == len(PLACE)
    assert (first[PLACE["would_blocks"]], second[PLACE["would_blocks"]]) == (2, 0)
    assert (first[PLACE["passes"]], second[PLACE["passes"]]) == (7, 0)
    assert (first[PLACE["stall_s"]], second[PLACE["stall_s"]]) == (0.02, 0.0)
    assert first[PLACE["stall_at_s"]] == 0.5
    assert math.isnan(second[PLACE["stall_at_s"]])
    assert (first[PLACE["log_pause_s"]], second[PLACE["log_pause_s"]]) == (0.001, 0.0)


def test_a_collection_of_garbage_is_told_by_its_length_until_it_is_closed() -> None:
    usage = ProcessUsage()
    gc.collect()
    with_one, without = usage.take_row("a", 1.0, 0, 0.0), usage.take_row("a", 2.0, 0, 0.0)
    usage.close()

    assert with_one[PLACE["collector_pause_s"]] > 0.0
    assert without[PLACE["collector_pause_s"]] == 0.0
    assert usage._on_collection not in gc.callbacks
