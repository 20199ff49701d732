"""What a live run records and a virtual one does not, added to the logs of a virtual run.

So that a run of any length has at once what the analysis of a live run works on: lateness of every link, what each process
used, the timers before the start, and what the machine did. The numbers are those of a quiet machine, drawn with a fixed
seed; their count is that of a live run: a row for each process, and for each end of a link, a second; five of the machine.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from testbed.links.lateness import BIN_COUNT, FIRST_END_S, RATIO
from testbed.record.log import LogWriter
from testbed.record.outcome import RunOutcome
from testbed.record.run_folder import ArmFolder
from testbed.scenario.topology import Topology

NAME = "live_rows"  # of the log
MEDIAN_S, SPREAD = 100e-6, 0.8  # of lateness, lognormal: its p99 is 0.6 ms
TIMER_WAITS = 40
HOST_ROW_S = 0.2
HOST_ROW = (
    0.15,
    0.8,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    1.05,
    0.0,
    2e-4,
)  # the columns of table `host` from the pressure on
PROCESS_ROW = (0.1, 40_000_000, 3e-4, 2e-3)  # of table `processes`: processor time, memory, lag, stall
PAUSES = (1e-3, 0.0, 1_000, 0)  # the columns behind the instant of the stall


def add_live_rows(folder: ArmFolder, topology: Topology, outcome: RunOutcome) -> RunOutcome:
    """Write the rows beside the logs of a virtual run; how the run would have ended live.

    Args:
        folder: with the logs of all nodes.
        topology: of the scenario, scaled as it ran.
        outcome: of the virtual run.

    Raises:
        RunError: a log cannot be written.
    """
    rng = np.random.default_rng(1)
    seconds = max(1, math.ceil(outcome.ended_at_s))
    shares = _shares()
    log = LogWriter(folder.log(NAME), {})
    for number, line in enumerate(outcome.ledger):
        if line.delivered:
            for second, messages in enumerate(rng.multinomial(line.delivered, np.full(seconds, 1 / seconds))):
                log.append(
                    "delivered", _lateness_row(number, second + 1.0, rng.multinomial(messages, shares))
                )
    for name in topology.nodes:
        bins = rng.multinomial(TIMER_WAITS, shares)
        log.append("timers", (name, TIMER_WAITS, MEDIAN_S, _largest_s(bins), _largest_s(bins), bins.tolist()))
        for second in range(seconds):
            log.append("processes", (name, second + 1.0, *PROCESS_ROW, second + 0.5, *PAUSES))
    log.close()
    host = LogWriter(folder.host_log, {})
    for row in range(1, round(seconds / HOST_ROW_S) + 1):
        host.append("host", (row * HOST_ROW_S, HOST_ROW_S, *HOST_ROW))
    host.close()
    return replace(outcome, engine="live", wall_s=outcome.ended_at_s, start_s=0.1)


def _shares() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of the messages in each bin of lateness."""
    ends = np.log(FIRST_END_S * RATIO ** np.arange(BIN_COUNT))
    places = (ends - math.log(MEDIAN_S)) / SPREAD
    below = np.array([0.5 * (1.0 + math.erf(place / math.sqrt(2.0))) for place in places])
    below[-1] = 1.0
    return np.diff(below, prepend=0.0)


def _lateness_row(
    number: int, at_s: float, bins: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[int, float, int, int, float, float, list[int]]:
    """Of table `delivered`; its messages are counted by the row of the virtual run."""
    filled = int(bins.nonzero()[0].max(initial=-1)) + 1
    return (number, at_s, 0, 0, MEDIAN_S * float(bins.sum()), _largest_s(bins), bins[:filled].tolist())


def _largest_s(bins: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    filled = bins.nonzero()[0]
    return float(FIRST_END_S * RATIO ** filled.max()) if len(filled) else 0.0
