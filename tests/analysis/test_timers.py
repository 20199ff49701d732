"""What timers before the start have to say of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.limits import Limit
from testbed.analysis.timers import latest_timer, timer_figures, timer_findings, timers_of
from testbed.record.tables import MERGED
from testbed.runtime.timer_calibration import timer_row

LIMIT = Limit(0.002, 0.0)


def made_timers(**late_s: list[float]) -> dict[str, Any]:
    """The table of these processes."""
    rows = [timer_row(process, each) for process, each in late_s.items()]
    columns = zip((column.name for column in MERGED["timers"]), zip(*rows, strict=True), strict=True)
    return {name: np.array(values, object if name == "node" else None) for name, values in columns}


def test_the_process_that_is_woken_too_late_makes_a_run_suspect_by_its_name() -> None:
    timers = timers_of(
        made_timers(prompt=[1e-4] * 40, late=[1e-4] * 30 + [0.003] * 10, later=[1e-4] * 30 + [0.005] * 10)
    )

    (finding,) = timer_findings(timers, LIMIT, 1.0)

    assert (finding.word, finding.check) == ("suspect", "timers")
    assert finding.reason.startswith(
        "timers: p99 5 ms late at later, over 40 waits before the start, limit 2 ms"
    )
    assert "(1 more processes)" in finding.reason
    assert timer_figures(timers)["process"] == "later"


@pytest.mark.parametrize(("late", "word"), [(0, ""), (1, ""), (2, ""), (3, "suspect"), (40, "suspect")])
def test_a_wait_or_two_of_forty_are_chance(late: int, word: str) -> None:
    """Of 40 waits that are late once in a hundred, two or fewer are with 99 %, three or more are not."""
    timers = timers_of(made_timers(root=[1e-4] * (40 - late) + [0.004] * late))

    assert [finding.word for finding in timer_findings(timers, LIMIT, 1.0)] == [word][: bool(word)]


def test_on_a_slower_clock_the_limit_is_longer_and_the_finding_says_from_which_scale_on() -> None:
    timers = timers_of(made_timers(root=[0.005] * 40))

    (finding,) = timer_findings(timers, LIMIT, 1.0)

    assert finding.least_scale == pytest.approx(2.5)
    assert list(timer_findings(timers, LIMIT, 2.6)) == []
    assert len(list(timer_findings(timers, LIMIT, 2.4))) == 1


def test_of_few_waits_or_none_nothing_is_said() -> None:
    assert timers_of(made_timers(root=[1.0] * 19, leaf=[])) == timers_of({}) == []
    assert latest_timer([]) is None
    assert list(timer_findings([], LIMIT, 1.0)) == []
