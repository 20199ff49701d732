"""How late a server answers and how late its leaf takes the reply are two things, of which each has its check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.hops import recorded_hops
from testbed.analysis.injection import injection_errors
from testbed.analysis.laws import all_laws
from testbed.analysis.records import Tables
from testbed.analysis.server_step import step_errors
from testbed.record.tables import LOGGED, MERGED
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import made_outcome, made_scenario, made_tables, steady
from tests.analysis.test_verdict import verdict

SERVER = "us/server-2"
LATE_S = 0.003
ON_THE_WAY = ("left_leaf_s", "replied_at_s")


def made(scenario: Scenario, *columns: str, of: str = SERVER, rate_per_s: float = 100.0) -> Tables:
    """Sound tables, but for replies of servers whose names begin so: all these instants are late."""
    tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=rate_per_s)
    requests = tables["requests"]
    late = np.array([each.startswith(of) for each in requests["server"].tolist()])
    for column in columns:
        requests[column] += np.where(late, LATE_S / scenario.time_scale, 0.0)
    return {**tables, "observations": {}}


def p50s(scenario: Scenario, tables: Tables) -> tuple[dict[str, float], dict[str, float]]:
    """Of the steps of servers, and of the links from these to leaves; wall seconds."""
    topology = build_topology(scenario)
    hops = [
        hop
        for hop in recorded_hops(scenario, topology, tables)
        if hop.link.source in topology.nodes and topology.nodes[hop.link.source].kind == "server"
    ]
    steps = step_errors(scenario, topology, tables["requests"])
    links = injection_errors(hops, scenario.time_scale)
    return {each.name: each.p50_s for each in steps}, {each.name: each.p50_s for each in links}


def zero_but(names: dict[str, float], late: str) -> dict[str, Any]:
    return {
        name: pytest.approx(LATE_S if late and name.startswith(late) else 0.0, abs=1e-9) for name in names
    }


@pytest.mark.parametrize("time_scale", [1.0, 4.0])
def test_a_server_that_answers_late_over_an_exact_link_is_late_by_its_step_alone(time_scale: float) -> None:
    scenario = made_scenario(time_scale=time_scale)

    steps, links = p50s(scenario, made(scenario, "answered_at_s", *ON_THE_WAY))

    assert len(steps) == len(links) == 9
    assert steps == zero_but(steps, SERVER)
    assert links == zero_but(links, "")


@pytest.mark.parametrize("time_scale", [1.0, 4.0])
def test_a_leaf_that_is_late_with_the_replies_of_a_punctual_server_is_late_by_its_link_alone(
    time_scale: float,
) -> None:
    scenario = made_scenario(time_scale=time_scale)

    steps, links = p50s(scenario, made(scenario, *ON_THE_WAY))

    assert steps == zero_but(steps, "")
    assert links == zero_but(links, f"{SERVER} -> ")


def test_the_verdict_names_the_server_that_answered_late() -> None:
    scenario = made_scenario()
    tables = made(scenario, "answered_at_s", *ON_THE_WAY)
    requests = tables["requests"]
    mine = requests["server"] == SERVER
    largest = int(np.flatnonzero(mine)[40])
    for column in ("answered_at_s", *ON_THE_WAY):
        requests[column][largest] += 0.001

    found = verdict(scenario, tables, made_outcome())

    assert (found.word, found.checks["server step"], found.checks["injection"]) == (
        "invalid",
        "invalid",
        "valid",
    )
    assert found.reasons == (
        f"server step error (answered less finished): p99 3 ms at {SERVER} ({mine.sum()} replies), largest at "
        f"{requests['answered_at_s'][largest]:.3f} s, limit 2 ms; try a larger time_scale, a lower rate or an idle host",
    )


def test_the_verdict_names_the_link_whose_replies_were_handled_late() -> None:
    scenario = made_scenario()

    found = verdict(scenario, made(scenario, *ON_THE_WAY), made_outcome())

    assert (found.checks["server step"], found.checks["injection"]) == ("valid", "invalid")
    assert f"p99 3 ms on {SERVER} -> us/leaf-1 (reply) " in found.reasons[0]


def test_servers_of_few_replies_are_judged_together_where_they_share_a_process() -> None:
    scenario = made_scenario(processes={"named": {"two": ["us/*", "eu/*"]}})
    tables = made(scenario, "answered_at_s", *ON_THE_WAY, of="us/", rate_per_s=20.0)
    requests = tables["requests"]

    (pool,) = step_errors(scenario, build_topology(scenario), requests)
    found = verdict(scenario, tables, made_outcome())

    assert pool.messages == np.isin(requests["cell"], ["us", "eu"]).sum()
    assert found.checks["server step"] == "invalid"
    assert "at 7 servers in process two, together since each has fewer than 100 replies (" in found.reasons[0]


@pytest.mark.parametrize("words", [{"pause": True}, {"kill": True}, {"clock_skew": "5 ms"}])
def test_a_server_that_a_fault_stops_kills_or_makes_lie_is_left_out(words: dict[str, Any]) -> None:
    scenario = made_scenario(faults=[{"at": "10 s", "for": "1 s", "server": SERVER, "set": words}])

    steps, _ = p50s(scenario, made(scenario, "answered_at_s", *ON_THE_WAY))

    assert len(steps) == 8
    assert SERVER not in steps


def test_a_run_of_an_earlier_version_has_the_sum_of_both_on_its_link_and_no_server_step() -> None:
    scenario = made_scenario()
    tables = made(scenario, "answered_at_s", *ON_THE_WAY)
    del tables["requests"]["answered_at_s"]

    steps, links = p50s(scenario, tables)
    found = verdict(scenario, tables, made_outcome())

    assert steps == {}
    assert links == zero_but(links, f"{SERVER} -> ")
    assert (found.checks["server step"], found.checks["injection"]) == ("unknown", "invalid")
    assert [law for law in all_laws(scenario, build_topology(scenario), tables, 22.0) if not law.holds] == []


def test_an_answer_before_the_request_was_finished_breaks_causality() -> None:
    scenario = made_scenario()
    tables = made(scenario)
    tables["requests"]["answered_at_s"][4] -= 0.001

    broken = [law for law in all_laws(scenario, build_topology(scenario), tables, 22.0) if not law.holds]

    assert [(law.name, law.place) for law in broken] == [("causality", "answered_at_s after finished_at_s")]


def test_the_instant_of_the_answer_stands_behind_that_of_the_last_token() -> None:
    for columns in (LOGGED["services"], MERGED["requests"]):
        names = [column.name for column in columns]
        assert names.index("answered_at_s") == names.index("finished_at_s") + 1
