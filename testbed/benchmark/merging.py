"""How long merging, analysing and drawing the records of many requests takes, and the memory that it needs.

A virtual run leaves its logs, with what a live run would have logged besides; then a process of its own does what follows a
live run, so that its peak of memory is its own.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from testbed.analysis.host import LEAST_OTHERS
from testbed.analysis.summary import summarize_arm
from testbed.benchmark.figure import Figure
from testbed.benchmark.live_rows import add_live_rows
from testbed.benchmark.neighbours import Clock, undisturbed
from testbed.benchmark.scenes import refuse_broken, shipped
from testbed.errors import RunError
from testbed.figures.drawing import DrawnArm, draw_all
from testbed.figures.files import save
from testbed.record.merge import merge_run
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.roles.build import World
from testbed.runtime.virtual import VirtualEngine
from testbed.scenario.load import dump_scenario, load_scenario
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan

REQUESTS, QUICK_REQUESTS = 1_000_000, 20_000
RATE_PER_S = 10_000  # of the throughput scenario
MOST_S, MOST_GB = 15.0, 1.0


class _Merged(NamedTuple):
    """What one process took."""

    seconds: float
    peak_gb: float
    others_cores: float

    def disturbances(self) -> list[str]:
        """Others that worked beside it."""
        is_beside = self.others_cores > LEAST_OTHERS
        return [f"others used {self.others_cores:.2f} cores"] if is_beside else []


def times(quick: bool) -> Iterator[Figure]:
    """Seconds and peak memory of a million requests; of fewer, and without an aim, in the short form."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    scenario = shipped("throughput.yaml", duration_s=requests / RATE_PER_S)
    with TemporaryDirectory(prefix="testbed-") as place:
        folder = ArmFolder(Path(place) / "arm")
        folder.make()
        record(folder, scenario)
        merged, note = undisturbed(partial(_merge, folder))
    most_s, most_gb = (math.nan, math.nan) if quick else (MOST_S, MOST_GB)
    name = f"merging, analysing and drawing {requests} requests"
    yield Figure(name, merged.seconds, "s", most_s, False, note)
    yield Figure(f"{name}: peak of memory", merged.peak_gb, "GB", most_gb, False)


def _merge(folder: ArmFolder) -> _Merged:
    words = [sys.executable, "-m", "testbed.benchmark.merging", str(folder.path)]
    clock, own_s, began_s = Clock(), _children_s(), time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"merging the records failed: {done.stderr.strip()}")
    own_cores = (_children_s() - own_s) / (time.monotonic() - began_s)
    found = json.loads(done.stdout)
    return _Merged(found["seconds"], found["peak_gb"], clock.load().busy_cores - own_cores)


def _children_s() -> float:
    """Processor time of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def record(folder: ArmFolder, scenario: Scenario) -> None:
    """Run a scenario and leave its logs, and how it ended, in a folder.

    Raises:
        InterruptError: the user stopped the run.
    """
    folder.scenario.write_text(dump_scenario(scenario))
    scaled = scenario.scaled()
    world = World(scaled, build_topology(scaled), build_plan(scaled))
    outcome = VirtualEngine(folder, world, {}).run()
    refuse_broken(outcome)
    add_live_rows(folder, world.topology, outcome).save(folder.outcome)


def follow_up(folder: ArmFolder) -> dict[str, Any]:
    """Merge, summarise and draw what lies in the folder of an arm; its summary."""
    scenario = load_scenario(folder.scenario).arms["main"]
    merge_run(folder, scenario, build_topology(scenario), build_plan(scenario.scaled()))
    tables = read_tables(folder.tables, numbered=True)
    summary = summarize_arm(scenario, tables, load_outcome(folder.outcome), ())
    for stem, figure in draw_all([DrawnArm("main", scenario, tables, summary)]).items():
        save(figure, folder.path / f"{stem}.png")
    return summary


def main() -> None:
    """Be the process that is measured. Argument: folder of the arm."""
    began_s = time.perf_counter()
    follow_up(ArmFolder(Path(sys.argv[1])))
    seconds = time.perf_counter() - began_s
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps({"seconds": seconds, "peak_gb": peak_gb}))


if __name__ == "__main__":
    main()
