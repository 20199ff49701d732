"""What the machine did: figures, the pressure, and what it has to say of an instant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.analysis.host import KINDS, HostSeries, clock_steps
from testbed.analysis.records import Table
from testbed.record.tables import LOGGED
from tests.analysis.test_verdict import TABLES, slipped, verdict

SPAN_S = 0.2
ROWS = 50


def made_host(**columns: dict[int, float]) -> Table:
    """Ten quiet seconds, but for what is given: column -> row -> value."""
    table: Table = {column.name: np.zeros(ROWS) for column in LOGGED["host"]}
    table["at_s"] = SPAN_S * np.arange(1, ROWS + 1)
    table["span_s"] = np.full(ROWS, SPAN_S)
    table["slowdown"] = np.ones(ROWS)
    table["busy_cores"] = np.full(ROWS, 0.5)
    for name, values in columns.items():
        for row, value in values.items():
            table[name][row] = value
    return table


def under_pressure(busy_cores: float, pressure: float = 0.95) -> Table:
    table = made_host()
    return {**table, "pressure": np.full(ROWS, pressure), "busy_cores": np.full(ROWS, busy_cores)}


def test_a_spell_of_slow_processors_is_told_from_its_begin_to_its_end() -> None:
    host = HostSeries(made_host(slowdown={26: 8.0, 27: 7.0, 40: 5.0}), 1.0)

    assert host.explain(5.3, 5.5) == "; the processors ran at 1/8 of their speed from 5.2 to 5.6 s"
    assert host.explain(0.5, 1.0) == ""
    assert host.figures()["slow_spells"] == 2


def test_steal_throttling_pressure_and_swapping_are_told_where_they_were() -> None:
    host = HostSeries(
        made_host(steal={4: 0.3}, throttled_s={5: 0.1}, pressure={4: 0.9, 5: 0.9}, swapped_pages={5: 500.0}),
        1.0,
    )

    assert host.explain(0.85, 1.15) == (
        "; the host of this virtual machine took 30% of the time, the quota kept the processes from running for 100 ms, "
        "a task waited for a core 90% of the time, 500 pages were swapped"
    )


def test_instants_are_scenario_time_and_spans_are_the_wall_s() -> None:
    """At a time scale of 2 a row of 0.2 s of the wall covers 0.1 s of the scenario."""
    table = made_host(slowdown={9: 4.0})
    table["at_s"] = table["at_s"] / 2.0

    assert HostSeries(table, 2.0).explain(0.95, 0.95).endswith("from 0.9 to 1.0 s")


def test_a_machine_that_tells_nothing_is_unknown_and_decides_nothing() -> None:
    nothing = {**made_host(), **{name: np.full(ROWS, math.nan) for name, _ in KINDS}}
    blind, unwatched = HostSeries(nothing, 1.0), HostSeries({}, 1.0)

    for host in (blind, unwatched):
        assert host.figures()["unknown"] == [word for _, word in KINDS]
        assert host.explain(0.0, 9.0) == ""
        assert list(host.findings(1.0)) == []
    assert verdict(tables={**TABLES, "host": nothing}).checks["pressure"] == "unknown"


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (under_pressure(2.0), "suspect"),
        (under_pressure(2.0, pressure=0.5), "valid"),
        (under_pressure(0.1), "valid"),  # the pressure is the run's own
        (under_pressure(math.nan), "suspect"),
    ],
)
def test_pressure_makes_a_run_suspect_where_others_use_the_cores(table: Table, word: str) -> None:
    found = verdict(tables={**TABLES, "host": table})

    assert found.word == found.checks["pressure"] == word
    if word == "suspect":
        assert found.reasons[0].startswith("CPU pressure: tasks waited for a core 95% of the time")


def test_what_the_machine_did_stands_behind_the_reason_of_a_late_arrival() -> None:
    requests = slipped(0.003)
    latest = int(np.flatnonzero(requests["root"] == "root.south")[50])
    slips = requests["root"] == "root.south"  # by another millisecond, so that this root is the worst
    requests["sent_at_s"][slips] += 0.001
    requests["sent_at_s"][latest] += 0.01
    at_s = float(requests["planned_at_s"][latest])
    host = made_host()
    host["slowdown"][np.abs(host["at_s"] - at_s) < 0.15] = 9.0

    reasons = verdict(tables={**TABLES, "requests": requests, "host": host}).reasons

    slip = next(reason for reason in reasons if reason.startswith("generator slip"))
    assert "idle host; the processors ran at 1/9 of their speed from " in slip


def test_a_step_of_the_wall_clock_is_a_note_and_no_reason() -> None:
    table = made_host(clock_step_s={7: -1.5})

    assert clock_steps(HostSeries(table, 1.0), table).startswith(
        "the wall clock was set by -1.500 s at 1.6 s"
    )
    assert clock_steps(HostSeries(made_host(), 1.0), made_host()) == ""
    assert verdict(tables={**TABLES, "host": table}).word == "valid"
