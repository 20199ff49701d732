"""A run of the benchmark counts only where it went on to its end: else nothing is measured on what there is of it."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from testbed.benchmark import merging
from testbed.benchmark.scenes import refuse_broken, run, shipped
from testbed.benchmark.virtual_rate import engine_per_s
from testbed.errors import InterruptError, RunError
from testbed.record.outcome import Death, RunOutcome
from testbed.record.run_folder import ArmFolder
from testbed.runtime.progress import Progress
from testbed.runtime.virtual import VirtualEngine

WHOLE = RunOutcome("live", "actual", 10.0, True)


class Impatient:
    """Presses Ctrl-C as soon as it is shown something."""

    def show(self, progress: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)


class Halted(VirtualEngine):
    """Ends as if the user had stopped it at once."""

    def run(self, on_progress=None):
        return replace(super().run(), interrupted=True)


class Unfinished(VirtualEngine):
    """Ends with requests that are still open."""

    def run(self, on_progress=None):
        return replace(super().run(), drained=False)


def test_ctrl_c_ends_the_benchmark_and_not_one_run_of_it():
    with pytest.raises(InterruptError, match="stopped by the user"):
        run(shipped("throughput.yaml", duration_s=0.5), "virtual", Impatient())


def test_a_process_that_died_is_an_error_with_its_name():
    death = Death("a/server-1", "signal 9", 1.25, "Traceback\nMemoryError: no\n")

    with pytest.raises(
        RunError, match=r"a/server-1 died \(signal 9\) at 1\.250 s; its last line: MemoryError: no"
    ):
        refuse_broken(replace(WHOLE, deaths=(death,)))
    with pytest.raises(RunError, match=r"a/server-1 died \(signal 9\) at 1\.250 s$"):
        refuse_broken(replace(WHOLE, deaths=(replace(death, stderr_tail=""),)))
    refuse_broken(WHOLE)


def test_the_virtual_engine_has_a_rate_only_where_it_answered_all_that_was_planned():
    assert engine_per_s(0.1) > 0.0
    with pytest.raises(InterruptError):
        engine_per_s(0.1, Halted)
    with pytest.raises(RunError, match="requests open"):
        engine_per_s(0.1, Unfinished)


def test_records_of_a_run_that_was_stopped_are_not_merged_for_their_time(tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "VirtualEngine", Halted)
    folder = ArmFolder(tmp_path / "arm")
    folder.make()

    with pytest.raises(InterruptError):
        merging.record(folder, shipped("throughput.yaml", duration_s=0.1))
