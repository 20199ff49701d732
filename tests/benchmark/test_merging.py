"""What is merged, analysed and drawn for its time is all that a live run gives."""

from __future__ import annotations

import pytest

from testbed.benchmark.merging import follow_up, record
from testbed.benchmark.scenes import shipped
from testbed.figures.drawing import FIGURES
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The folder of a run of three seconds, merged, analysed and drawn, and its summary."""
    folder = ArmFolder(tmp_path_factory.mktemp("merging") / "arm")
    folder.make()
    record(folder, shipped("throughput.yaml", duration_s=3.0))
    return folder, follow_up(folder)


def test_records_are_analysed_as_those_of_a_live_run_in_every_respect(followed):
    folder, summary = followed

    assert summary["engine"] == "live"
    assert summary["verdict"] == "valid", summary["verdict_reasons"]
    unlike = {check: word for check, word in summary["checks"].items() if word != "valid"}
    assert unlike == {"fault latency": "not asked"}  # the scenario has no fault; none is unknown
    assert 2e-4 < summary["release_lateness_s"]["p99"] < 1e-3
    assert summary["host"]["watched"]
    assert not summary["host"]["unknown"]
    assert summary["timers_s"] is not None
    assert summary["processes"]["cpu_s"] > 0
    assert summary["delivered_delays_s"]
    assert summary["laws"]["broken"] == 0
    assert {path.stem for path in folder.path.glob("*.png")} == {*FIGURES, "lateness"}


def test_there_are_as_many_rows_as_in_a_live_run(followed):
    """Seven processes, links that carried something, and the machine; of three seconds and the drain."""
    folder, _ = followed

    tables = read_tables(folder.tables)
    seconds = len(set(tables["processes"]["at_s"]))

    assert seconds in (3, 4)
    assert len(tables["processes"]["node"]) == 7 * seconds
    assert len(tables["timers"]["node"]) == 7
    assert len(tables["host"]["at_s"]) == 5 * seconds
    carried = tables["lateness"]["delivered"] > 0
    bins = tables["lateness"]["lateness_bins"].sum(axis=1)
    assert (bins == tables["lateness"]["delivered"])[carried].all()
