"""The process that watches the machine during a live run, and logs what it does: table `host`.

It is a process of its own since it is to be woken every 50 ms, whatever the launcher is busy with. It takes some 0.3 %
of a core. The launcher tells it on its standard input, in one line of JSON, where to log and when the run begins; when
the input ends, so does the process. It dies with its parent.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from testbed.host.counters import Counters
from testbed.host.speed import SpeedGauge
from testbed.host.stretch import Stretches
from testbed.record.log import LogWriter
from testbed.runtime.parenthood import die_with_parent, end_timer_slack, set_process_name

PROBE_S = 0.05  # between two pieces of computing: a slow spell of a tenth of a second is seen twice
ROW_PROBES = 4  # so many to a row: 0.2 s
ROWS_PER_CHUNK = 64  # what is lost of the log, at most, where this process is killed


class Watcher:
    """Times the processors again and again, and writes a row now and then."""

    def __init__(self, counters: Counters, gauge: SpeedGauge) -> None:
        """Args:
        counters: of the kernel.
        gauge: of the processors' speed.
        """
        self._counters, self._gauge = counters, gauge
        self._next_s = time.monotonic()
        self._log: LogWriter | None = None
        self._stretches: Stretches | None = None
        self._origin_s = 0.0
        self._late_s = 0.0
        self._probes = 0

    def watch(self) -> None:
        """Until the standard input ends."""
        said = b""
        while True:
            self._next_s = max(self._next_s + PROBE_S, time.monotonic())
            self._sleep()
            if self._is_to_listen() and select.select([0], [], [], 0.0)[0]:
                data = os.read(0, 65536)
                if not data:
                    return
                said += data
                if said.endswith(b"\n"):
                    self._begin(json.loads(said))
                    said = b""
            self._probe()

    def close(self) -> None:
        """Write what is left, and the end mark."""
        if self._log is not None:
            self._write_row(self._log)
            self._log.close()

    def _sleep(self) -> None:
        """To the next probe."""
        time.sleep(max(0.0, self._next_s - time.monotonic()))
        self._late_s = max(self._late_s, time.monotonic() - self._next_s)

    def _is_to_listen(self) -> bool:
        """Whether to look what the launcher says: at every probe until it has said when the run begins, then once a row."""
        return self._log is None or self._probes == 0

    def _begin(self, words: dict[str, Any]) -> None:
        self._log = LogWriter(Path(words["log"]), words["header"], rows_per_chunk=ROWS_PER_CHUNK)
        self._origin_s = words["origin_s"]

    def _probe(self) -> None:
        self._gauge.probe()
        self._probes += 1
        if self._log is None or time.monotonic() < self._origin_s:
            return
        if self._stretches is None:
            self._stretches = Stretches(os.cpu_count() or 1, self._counters.read())
            self._gauge.take()
            self._probes, self._late_s = 0, 0.0
        elif self._probes >= ROW_PROBES:
            self._write_row(self._log)

    def _write_row(self, log: LogWriter) -> None:
        if self._stretches is None or not self._probes:
            return
        now = self._counters.read()
        row = self._stretches.row(now, now.at_s - self._origin_s, self._gauge.take(), self._late_s)
        log.append("host", row)
        self._probes, self._late_s = 0, 0.0


def main() -> None:
    """Be the watcher. Argument: pid of the launcher."""
    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_process_name("host-watcher")
    end_timer_slack()
    counters = Counters()
    watcher = Watcher(counters, SpeedGauge())
    watcher.watch()
    watcher.close()
    counters.close()


if __name__ == "__main__":
    main()
