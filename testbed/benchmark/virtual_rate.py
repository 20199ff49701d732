"""Requests a second of the virtual engine, with roles, policies and records, against a bare chain of hops in SimPy."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.benchmark.figure import Figure
from testbed.benchmark.scenes import refuse_broken, shipped
from testbed.errors import RunError
from testbed.record.run_folder import ArmFolder
from testbed.roles.build import World
from testbed.runtime.virtual import VirtualEngine
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan

TIMES = 9  # each side, in turn; the best counts, since a neighbour only ever slows


def rates(quick: bool) -> Iterator[Figure]:
    """Both sides and their ratio."""
    seconds = 0.5 if quick else 2.0
    ours, theirs = [], []
    for _ in range(1 if quick else TIMES):
        ours.append(engine_per_s(seconds))
        theirs.append(_chain_per_s(seconds))
    yield Figure("virtual engine, whole path with records", max(ours), "requests/s", 50_000)
    yield Figure("bare SimPy chain of the same hops", max(theirs), "requests/s", how="interleaved")
    yield Figure("virtual engine, of the bare chain", max(ours) / max(theirs), "", 0.6)


def engine_per_s(seconds: float, engine: type[VirtualEngine] = VirtualEngine) -> float:
    """Requests a second of processor time, of a run of so many seconds that answers all that were planned.

    Raises:
        RunError: the run ended with requests open.
        InterruptError: the user stopped it.
    """
    scenario = shipped("throughput.yaml", duration_s=seconds).scaled()
    with TemporaryDirectory(prefix="testbed-") as place:
        folder = ArmFolder(Path(place) / "arm")
        folder.make()
        world = World(scenario, build_topology(scenario), build_plan(scenario))
        made = engine(folder, world, {})
        began_s = time.process_time()
        outcome = made.run()
        took_s = time.process_time() - began_s
    refuse_broken(outcome)
    if not outcome.drained:
        raise RunError("a virtual run of the throughput scenario ended with requests open")
    return len(world.plan.of_root(0).request_ids) / took_s


def _chain_per_s(seconds: float) -> float:
    words = [sys.executable, "-m", "testbed.benchmark.simpy_chain", str(seconds)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"the chain in SimPy (of the extra `dev`) failed: {done.stderr.strip()}")
    return float(done.stdout)
