"""The logs of an arm to its Parquet tables: in scenario time, truth beside belief."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testbed.record.attempt_table import attempts_table
from testbed.record.fault_table import faults_table
from testbed.record.gather import Gathered, Rows, Texts, gather, taken
from testbed.record.host_table import host_table
from testbed.record.link_tables import lateness_table, links_table
from testbed.record.parquet import write_table
from testbed.record.request_table import requests_table
from testbed.record.run_folder import ArmFolder
from testbed.record.truth import Truth
from testbed.record.tuning_table import tunings_table
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology
from testbed.traffic.plan import Plan


def merge_run(folder: ArmFolder, scenario: Scenario, topology: Topology, plan: Plan) -> tuple[str, ...]:
    """Merge the logs of an arm into its `tables` folder.

    Args:
        folder: of the arm.
        scenario: as the file has it, not scaled.
        topology: of the scenario.
        plan: that was run, in run time.

    Returns:
        What is wrong with the logs, a line each; empty where every node closed a whole log.

    Raises:
        RunError: a log cannot be read, the logs are of several runs, or a table cannot be written.
    """
    logs = gather(sorted(folder.logs.glob("*.log")), scenario.time_scale)
    for name, rows in merged_tables(logs, scenario, topology, plan).items():
        write_table(folder.tables / f"{name}.parquet", name, rows, logs.run)
    write_table(folder.tables / "host.parquet", "host", host_table(folder, scenario.time_scale), logs.run)
    pa.default_memory_pool().release_unused()  # or reading the tables, which follows, would come on top of it
    return logs.problems


def merged_tables(logs: Gathered, scenario: Scenario, topology: Topology, plan: Plan) -> dict[str, Rows]:
    """Every table of `MERGED` that comes of what nodes logged; arguments as for `merge_run`."""
    logged = logs.tables
    requests = requests_table(logged, scenario, topology, plan)
    truth = Truth(scenario, topology, visits=logged["visits"], applied=logged["applied"])
    return {
        "requests": requests,
        "attempts": attempts_table(logged),
        "rotations": _sorted(logged["rotations"], "at_s"),
        "scalings": _sorted(logged["scalings"], "at_s"),
        "observations": _sorted(logged["observations"], "received_at_s"),
        "news": _sorted(logged["news"], "received_at_s"),
        "counts": _sorted(logged["counts"], "at_s"),
        "updates": truth.beside_updates(_sorted(logged["updates"], "used_at_s")),
        "tunings": tunings_table(_sorted(logged["tunings"], "at_s"), scenario),
        "decisions": truth.beside_decisions(_sorted(logged["decisions"], "request_id"), requests, plan),
        "cells": _with_cell(_sorted(logged["samples"], "at_s"), topology),
        "links": links_table(topology, logged["sent"], logged["delivered"], scenario.time_scale),
        "lateness": lateness_table(topology, logged["sent"], logged["delivered"]),
        "faults": faults_table(scenario, topology, logged["applied"]),
        "applied": _sorted(logged["applied"], "done_at_s"),
        "processes": _sorted(logged["processes"], "at_s"),
        "timers": logged["timers"],
    }


def _sorted(table: Rows, key: str) -> Rows:
    """By a column; what is equal there stays in the order of the logs."""
    return taken(table, np.argsort(table[key], kind="stable"))


def _with_cell(samples: Rows, topology: Topology) -> Rows:
    server = samples["server"]
    cells = tuple(topology.servers)
    of_word = [cells.index(topology.nodes[name].cell) for name in server.words]
    return {"cell": Texts(cells, np.array(of_word, dtype=np.int32)[server.numbers]), **samples}
