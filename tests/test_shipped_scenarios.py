"""Every scenario that is shipped opens with its question, loads, plans, and runs shortened under virtual time."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from testbed.analysis.summary import summarize_arm
from testbed.console.resolved_plan import describe
from testbed.errors import RunError
from testbed.experiment import run_arm
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import load_scenario
from testbed.scenario.shorten import with_duration
from testbed.scenario.topology import build_topology
from testbed.traffic.plan import build_plan
from tests.full_length import checked_expectations, silent

CHECKOUT = Path(__file__).parents[1]
SHIPPED = sorted((CHECKOUT / "scenarios").rglob("*.yaml"))
SHORT_S = 3.0


@pytest.fixture(params=SHIPPED, ids=[str(path.relative_to(CHECKOUT)) for path in SHIPPED])
def file(request, monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    file = load_scenario(request.param)
    for scenario in file.arms.values():
        for trace in scenario.traces.values():
            if not Path(trace.path).is_file():
                pytest.skip(f"the trace {Path(trace.path).name} is not on this machine")
    return file


def test_a_shipped_scenario_opens_with_the_question_it_asks(file):
    assert file.path.read_text().startswith("#")
    assert "?" in file.comment


def test_a_shipped_scenario_has_a_plan_to_print(file):
    page = io.StringIO()
    console = Console(width=200, file=page)
    for part in describe(file):
        console.print(part)

    assert "Effective delays" in page.getvalue()
    assert "rho_cap" in page.getvalue()


def test_a_shipped_scenario_runs_shortened_and_keeps_every_law(file, tmp_path):
    for arm, scenario in file.arms.items():
        short = with_duration(scenario, min(scenario.duration, SHORT_S / scenario.time_scale))
        folder = ArmFolder(tmp_path / arm)
        outcome = run_arm(folder, short, "virtual", silent)
        summary = summarize_arm(short, read_tables(folder.tables), outcome, outcome.log_problems)

        assert (summary["verdict"], summary["verdict_reasons"]) == ("valid", [])
        assert summary["laws"]["broken"] == 0
        assert len(outcome.ledger) == len(build_topology(short).links)
        assert [line for line in outcome.ledger if line.gap] == []
        assert summary["requests"]["completed"] > 0
        assert summary["constraints"] == {"violations": 0, "forbidden_probability_max": 0.0}


def test_affinity_meets_its_expectations_at_full_length(tmp_path):
    """Hits, balance and sojourns of the four arms; the first eight seeds all meet them."""
    file = load_scenario(CHECKOUT / "scenarios" / "affinity.yaml")
    checked = checked_expectations(file, tmp_path)

    assert len(checked) == 9
    assert [(each["text"], each["said"]) for each in checked if not each["met"]] == []


def test_guards_against_a_dead_server_lose_what_they_are_expected_to(tmp_path):
    """All six arms at full length; the first five seeds meet all expectations."""
    file = load_scenario(CHECKOUT / "scenarios" / "dead_server.yaml")
    checked = checked_expectations(file, tmp_path)

    assert len(checked) == 7
    assert [(each["text"], each["said"]) for each in checked if not each["met"]] == []


@pytest.mark.parametrize(("name", "expected"), [("autoscaling", 12), ("hedging", 7), ("slow_cell", 9)])
def test_a_scenario_that_runs_quickly_meets_its_expectations_at_full_length(name, expected, tmp_path):
    """With one seed; `verify --full` holds these and the others against their expectations with five."""
    file = load_scenario(CHECKOUT / "scenarios" / f"{name}.yaml")
    checked = checked_expectations(file, tmp_path)

    assert len(checked) == expected
    assert [(each["text"], each["said"]) for each in checked if not each["met"]] == []


def test_a_fault_of_the_reports_herds_greedy_roots_and_tips_keen_flow_over_for_good(tmp_path):
    """Three of the eight arms of delay_chaos at full length; five seeds meet all expectations of all arms (`verify --full`)."""
    arms = ("greedy", "keen", "keen_unharmed")
    file = load_scenario(CHECKOUT / "scenarios" / "delay_chaos.yaml", arms=arms)
    checked = checked_expectations(file, tmp_path)

    assert len(checked) == 5
    assert [(each["text"], each["said"]) for each in checked if not each["met"]] == []


def test_a_missing_trace_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    file = load_scenario(CHECKOUT / "scenarios" / "azure.yaml", [("traces.conv.path", "nowhere/conv.csv")])

    with pytest.raises(RunError, match=r"nowhere/conv\.csv.*github\.com/Azure/AzurePublicDataset"):
        build_plan(file.arms["static"].scaled())
