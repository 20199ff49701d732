"""What balancers are told and when, what a fault changes and what not, and the herd that old news makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.loop_delay import measured_loop_delays, predicted_loop_delay_s
from testbed.analysis.records import measured_window
from testbed.analysis.summary import summarize_arm
from testbed.scenario.load import load_scenario
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, run_one, run_text
from tests.laws.watching_policy import Watching
from tests.test_shipped_scenarios import CHECKOUT

REPORTS = """
name: reports
duration: 20 s
seed: 6
cells:
  us: {servers: 2, service: {slots: 1, exponential: 20 ms}, leaf: {policy: random, count: 2}}
  eu: {servers: 1, service: {slots: 2, fixed: 30 ms}, leaf: {policy: random}}
roots:
  a: {traffic: [{class: c, rate: 60 /s, policy: random}]}
  b: {traffic: [{class: c, rate: 20 /s, policy: random}]}
classes: {c: {}}
reports: {every: 70 ms, phase: PHASE}
policies: {random: {kind: random}}
links: [{from: cell.*, to: root.*, path: observation, delay: 40 ms}]
"""


def reports_of(run: VirtualRun, leaf: str, root: str) -> dict[str, np.ndarray]:
    """The reports of a leaf as one root received them, in order of measurement."""
    seen = run.tables["observations"]
    mine = (seen["leaf"] == leaf) & (seen["root"] == root)
    order = np.argsort(seen["measured_at_s"][mine], kind="stable")
    return {name: column[mine][order] for name, column in seen.items()}


@pytest.mark.parametrize("phase", ["staggered", "in_phase"])
def test_reports_keep_an_absolute_schedule_of_which_every_root_hears(tmp_path, phase):
    """Phase + k R to the bit, without drift; staggered phases share the period, those in phase are equal."""
    run = run_text(tmp_path / "main", REPORTS.replace("PHASE", phase))
    leaves = ("us/leaf-1", "us/leaf-2", "eu/leaf-1")

    for position, leaf in enumerate(leaves):
        first = 0.0 if phase == "in_phase" else 0.070 * position / len(leaves)
        for root in ("root.a", "root.b"):
            reports = reports_of(run, leaf, root)
            count = len(reports["sequence"])
            assert count >= 285
            assert list(reports["sequence"]) == list(range(count))
            assert np.array_equal(reports["measured_at_s"], first + np.arange(count) * 0.070)
            assert reports["received_at_s"] == pytest.approx(reports["measured_at_s"] + 0.040, abs=1e-9)


def test_a_report_counts_the_requests_that_are_in_the_cell(tmp_path):
    """Queued + running and the arrivals so far, summed over the leaves, against the records of the requests: exact."""
    run = run_text(tmp_path / "main", REPORTS.replace("PHASE", "staggered"))
    requests = run.tables["requests"]

    for leaf in ("us/leaf-1", "us/leaf-2", "eu/leaf-1"):
        mine = requests["leaf"] == leaf
        entered, left = requests["at_leaf_s"][mine], requests["left_leaf_s"][mine]
        assert len(entered) > 300
        reports = reports_of(run, leaf, "root.a")
        for at_s, queued, running, arrivals in zip(
            reports["measured_at_s"], reports["queued"], reports["running"], reports["arrivals"], strict=True
        ):
            assert arrivals == (entered <= at_s).sum()
            assert queued + running == (entered <= at_s).sum() - (left <= at_s).sum()


LOOP = """
name: loop
duration: 60 s
warmup: 2 s
seed: 8
cells: {us: {servers: 2, service: {slots: 1, fixed: 5 ms}}, eu: {servers: 2, service: {slots: 1, fixed: 5 ms}}}
roots:
  near: {traffic: [{class: c, rate: 30 /s, policy: p}]}
  far: {traffic: [{class: c, rate: 30 /s, policy: p}]}
classes: {c: {}}
reports: {every: %(every)s ms}
policies: {p: %(policy)s}
links:
  - {from: root.*, to: cell.*, delay: 10 ms}
  - {from: root.far, to: cell.*, delay: 60 ms, jitter: {uniform: 20 ms}}
  - {from: cell.*, to: root.*, path: observation, delay: %(delay)s ms, loss: %(loss)s %%}
records: {samples: 10 s, decisions: 0 %%}
"""
TIMER = "{kind: flow, step: 0.01 /s^2, interval: %d ms}"


@pytest.mark.parametrize(
    ("every_ms", "delay_ms", "loss", "policy"),
    [
        # Intervals share no small multiple with the periods: constant delays would freeze the phase between them.
        (100, 200, 0.0, TIMER % 73),
        (500, 20, 0.0, TIMER % 137),
        (1000, 100, 0.0, TIMER % 271),
        (100, 20, 0.3, TIMER % 37),
        (200, 200, 0.1, TIMER % 310),
        (50, 50, 0.5, TIMER % 17),
        (100, 100, 0.2, "{kind: least_cost}"),
    ],
)
def test_the_measured_loop_delay_is_the_predicted_one(tmp_path, every_ms, delay_ms, loss, policy):
    """Travel + delay of observations + R (1/2 + p / (1 - p)), R the period of the reports, p their loss.

    Within 4 %: measures.md, section 2, found so for timers; here the ages are averaged over some 60 s / R reports.
    """
    run = run_text(
        tmp_path / "main",
        LOOP % {"every": every_ms, "delay": delay_ms, "loss": 100 * loss, "policy": policy},
    )
    age_ms = delay_ms + every_ms * (0.5 + loss / (1 - loss))

    measured_s = loop_delays_s(run)

    assert measured_s["root.near"] == pytest.approx((10 + age_ms) / 1000, rel=0.04)
    assert measured_s["root.far"] == pytest.approx((60 + age_ms) / 1000, rel=0.04)
    predicted_s = predicted_loop_delay_s(run.scenario, build_topology(run.scenario))
    assert predicted_s == pytest.approx((35 + age_ms) / 1000, rel=1e-6)


CELL = "{servers: 2, service: {slots: 1, fixed: 5 ms}}"
ON_REPORT = "{kind: flow, step: 0.01 /s^2, update: on_report}"


def loop_of_cells(
    count: int, loss: int, *, phase: str = "staggered", leaves: int = 1, policy: str = ON_REPORT
) -> str:
    """The loop with so many alike cells, reports every 100 ms, 200 ms late."""
    text = LOOP % {"every": 100, "delay": 200, "loss": loss, "policy": policy}
    cell = CELL.replace("}}", f"}}, leaf: {{count: {leaves}}}}}")
    cells = ", ".join(f"c{i}: {cell}" for i in range(count))
    text = text.replace(text[text.index("cells:") : text.index("roots:")], f"cells: {{{cells}}}\n")
    return text.replace("reports: {every: 100 ms}", f"reports: {{every: 100 ms, phase: {phase}}}")


@pytest.mark.parametrize(
    ("cells", "loss", "older_ms"),
    [
        (1, 20, 0.0),
        (2, 20, 1 / 2 * 100 * (0.5 + 0.25)),
        (4, 0, 3 / 4 * 50),
        (3, 40, 2 / 3 * 100 * (0.5 + 2 / 3)),
    ],
)
def test_where_reports_trigger_updates_the_reported_cell_is_fresh_and_the_others_wait(
    tmp_path, cells, loss, older_ms
):
    """An update costs every cell anew: the one that reported is as old as its link, each other R (1/2 + p / (1 - p)) older."""
    run = run_text(tmp_path / "main", loop_of_cells(cells, loss))

    measured_s = loop_delays_s(run)

    assert measured_s["root.near"] == pytest.approx((210 + older_ms) / 1000, rel=0.04)
    assert measured_s["root.far"] == pytest.approx((260 + older_ms) / 1000, rel=0.04)
    predicted_s = predicted_loop_delay_s(run.scenario, build_topology(run.scenario))
    assert predicted_s == pytest.approx((235 + older_ms) / 1000, rel=1e-6)


def test_cells_that_report_in_phase_are_all_fresh_when_the_shares_move(tmp_path):
    """However many reports come at one instant, the move that stays uses them all; the steps add up to the time."""
    run = run_text(
        tmp_path / "main",
        loop_of_cells(3, 0, phase="in_phase").replace("jitter: {uniform: 20 ms}", "loss: 0 %"),
    )

    updates = run.tables["updates"]
    last = (updates["root"] == "root.near") & (updates["used_at_s"] > 2.0)
    instants, counts = np.unique(updates["used_at_s"][last], return_counts=True)
    assert (counts == 9).all()  # three moves of three shares each at every instant
    for at_s in instants[:20]:
        there = last & (updates["used_at_s"] == at_s)
        newest = there & (updates["update"] == updates["update"][there].max())
        assert updates["measured_at_s"][newest] == pytest.approx(at_s - 0.2)
        assert updates["interval_s"][there] == pytest.approx(0.1)
    assert loop_delays_s(run) == pytest.approx({"root.near": 0.21, "root.far": 0.26}, rel=1e-6)
    assert predicted_loop_delay_s(run.scenario, build_topology(run.scenario)) == pytest.approx(
        0.235, rel=1e-6
    )


@pytest.mark.parametrize("policy", [ON_REPORT, TIMER % 73, "{kind: least_cost}"])
def test_the_age_of_what_several_leaves_tell_is_the_mean_over_them(tmp_path, policy):
    """Two leaves a cell, two cells: with a timer half a period, with updates on report 3/4 of that."""
    run = run_text(tmp_path / "main", loop_of_cells(2, 0, leaves=2, policy=policy))
    older_ms = 50 * (3 / 4 if "on_report" in policy else 1)

    measured_s = loop_delays_s(run)

    assert measured_s["root.near"] == pytest.approx((210 + older_ms) / 1000, rel=0.03)
    assert measured_s["root.far"] == pytest.approx((260 + older_ms) / 1000, rel=0.03)
    predicted_s = predicted_loop_delay_s(run.scenario, build_topology(run.scenario))
    assert predicted_s == pytest.approx((235 + older_ms) / 1000, rel=1e-6)


def loop_delays_s(run: VirtualRun) -> dict[str, float]:
    """The mean of each root's measured loop delays over the cells."""
    pairs = measured_loop_delays(run.scenario, run.tables, measured_window(run.scenario, run.outcome))
    assert len(pairs) == 2 * len(run.scenario.cells)
    return {
        root: float(np.mean([pair.loop_delay_s for pair in pairs if pair.root == root]))
        for root in ("root.near", "root.far")
    }


TIMEOUTS = """
name: timeouts
duration: 6 s
seed: 9
cells:
  us: {servers: 2, service: {slots: 1, exponential: 60 ms}, leaf: {policy: watch, count: 2}}
  eu: {servers: 1, service: {slots: 4, fixed: 400 ms}, leaf: {policy: watch}}
roots: {r: {traffic: [{class: quick, rate: 40 /s, policy: watch}, {class: patient, rate: 5 /s, policy: watch}]}}
classes: {quick: {timeout: 150 ms}, patient: {timeout: 2 s}}
policies: {watch: {kind: "tests.laws.watching_policy:Watching"}}
links:
  - {from: "*", to: "*", delay: 10 ms}
"""


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """What the policies of a run were shown."""
    seen: dict[int, Any] = {}
    monkeypatch.setattr(Watching, "views", seen)
    return seen


@pytest.mark.parametrize("loss", ["0 %", "20 %"])
def test_timeouts_shorter_than_the_service_free_every_count(tmp_path, views, loss):
    """At the end no balancer holds a request open, whatever was lost on its way, and nobody sends to the dead."""
    run = run_text(tmp_path / "main", TIMEOUTS.replace("delay: 10 ms}", f"delay: 10 ms, loss: {loss}}}"))

    assert run.outcome.drained
    assert (run.tables["requests"]["outcome"] == "timed_out").sum() > 100
    balancers = {tuple(target.name for target in view.targets): view for view in views.values()}
    assert len(views) == 2 + 3  # a view a stream of the root, and one a leaf
    assert len(balancers) == 3
    for view in views.values():
        for target in view.targets:
            assert (target.own_in_flight, target.unseen) == (0, {})


def test_late_replies_are_counted_and_are_those_of_requests_that_timed_out(tmp_path, views):
    """Without loss every request that a root gave up is answered later: by its server, or by its leaf's own timeout."""
    requests = run_text(tmp_path / "main", TIMEOUTS).tables["requests"]
    timed_out = requests["outcome"] == "timed_out"

    assert np.array_equal(requests["late"].astype(bool), timed_out)
    assert (requests["replied_at_s"][timed_out] > requests["planned_at_s"][timed_out] + 0.150).all()
    quick = timed_out & (requests["class"] == "quick")
    given_up_s = requests["left_leaf_s"][quick] - requests["at_leaf_s"][quick]
    assert given_up_s.max() == pytest.approx(0.150, abs=1e-9)
    done = requests["outcome"] == "completed"
    assert (requests["replied_at_s"][done] - requests["planned_at_s"][done])[
        requests["class"][done] == "quick"
    ].max() <= 0.150


FAULTS = """
name: faults
duration: 10 s
seed: 10
cells:
  us: {servers: 1, service: {slots: 8, fixed: 10 ms}}
  eu: {servers: 1, service: {slots: 8, fixed: 10 ms}}
roots:
  a: {traffic: [{class: c, rate: 60 /s, policy: random}]}
  b: {traffic: [{class: c, rate: 60 /s, policy: random}]}
classes: {c: {}}
policies: {random: {kind: random}}
links: [{from: root.*, to: cell.*, delay: 10 ms}]
faults:
  - {at: 0 s, for: 1 s, link: {from: root.*, to: cell.*, path: request}, set: {delay: 25 ms}}
  - {at: 2 s, for: 4 s, link: {from: root.a, to: cell.us, path: request}, set: {delay: 100 ms}}
  - {at: 3 s, for: 2 s, link: {from: root.a, to: cell.us, path: request}, set: {delay: 200 ms}}
  - {at: 3 s, for: 4 s, link: {from: root.b, to: cell.us, path: request}, set: {delay: 50 ms}}
  - {at: 4 s, for: 4 s, link: {from: root.b, to: cell.us, path: request}, set: {delay: 300 ms}}
  - {at: 2 s, for: 3 s, cell: eu, set: {speed: 0.5}}
  - {at: 4 s, for: 3 s, cell: eu, set: {speed: 4.0}}
"""

# (root, cell) -> delay from each instant on. A later fault on the same link wins; healing leaves the others.
DELAYS_MS = {
    ("root.a", "us"): ((0, 25), (1, 10), (2, 100), (3, 200), (5, 100), (6, 10)),
    ("root.b", "us"): ((0, 25), (1, 10), (3, 50), (4, 300), (8, 10)),
    ("root.a", "eu"): ((0, 25), (1, 10)),
    ("root.b", "eu"): ((0, 25), (1, 10)),
}


def test_faults_that_overlap_heal_apart_and_each_message_has_the_delay_due(tmp_path):
    """From the first message on (a fault at 0 s), and whichever of two faults on one link heals first."""
    run = run_text(tmp_path / "main", FAULTS)
    requests = run.tables["requests"]

    for (root, cell), steps in DELAYS_MS.items():
        mine = (requests["root"] == root) & (requests["cell"] == cell)
        sent_s, travel_s = requests["sent_at_s"][mine], (requests["at_leaf_s"] - requests["sent_at_s"])[mine]
        instants, delays_ms = np.array(steps).T
        due_s = delays_ms[np.searchsorted(instants, sent_s, side="right") - 1] / 1000
        assert len(sent_s) > 200
        assert travel_s == pytest.approx(due_s, abs=1e-9)


def test_each_second_s_drawn_delay_of_a_link_shows_the_fault_on_it_alone(tmp_path):
    links = run_text(tmp_path / "main", FAULTS).tables["links"]
    due_ms = {
        ("root.a", "us/leaf-1", "request"): [25, 10, 100, 200, 200, 100, 10, 10, 10, 10],
        ("us/leaf-1", "root.a", "reply"): [0] * 10,
        ("root.a", "eu/leaf-1", "request"): [25, *[10] * 9],
    }

    for (source, target, path), delays_ms in due_ms.items():
        mine = (links["source"] == source) & (links["target"] == target) & (links["path"] == path)
        drawn_s = links["drawn_s_mean"][mine & (links["at_s"] <= 10.0) & (links["sent"] > 0)]
        assert drawn_s == pytest.approx(np.array(delays_ms) / 1000, abs=1e-9)


def test_a_speed_fault_shows_in_the_service_times_and_the_one_that_set_in_last_rules(tmp_path):
    """10 ms of work: 20 ms at half the speed, 2.5 ms at four times, and as before when all has healed."""
    requests = run_text(tmp_path / "main", FAULTS).tables["requests"]
    begun, ended = requests["at_server_s"], requests["finished_at_s"]

    for cell, stretches in (
        ("eu", ((0, 2, 10.0), (2, 4, 20.0), (4, 7, 2.5), (7, 11, 10.0))),
        ("us", ((0, 11, 10.0),)),
    ):
        for from_s, to_s, due_ms in stretches:
            inside = (requests["cell"] == cell) & (begun >= from_s) & (ended < to_s)
            assert inside.sum() > 80
            assert (ended - begun)[inside] == pytest.approx(due_ms / 1000, abs=1e-9)


def test_the_table_of_faults_tells_what_was_planned_and_who_did_it(tmp_path):
    faults = run_text(tmp_path / "main", FAULTS).tables["faults"]

    assert list(faults["planned_at_s"]) == [0.0, 2.0, 3.0, 3.0, 4.0, 2.0, 4.0]
    assert list(faults["applied_at_s"]) == list(faults["planned_at_s"])
    assert list(faults["heal_planned_at_s"]) == [1.0, 6.0, 5.0, 7.0, 8.0, 5.0, 7.0]
    assert list(faults["healed_at_s"]) == list(faults["heal_planned_at_s"])
    for column in ("nodes_expected", "nodes_applied", "nodes_healed"):
        assert list(faults[column]) == [2, 1, 1, 1, 1, 1, 1]


def test_a_run_that_ends_before_its_requests_accounts_for_what_is_under_way(tmp_path):
    """No drain and half a second of travel: the ledgers close with messages on the way, each request unfinished once."""
    text = FAULTS.replace("delay: 10 ms}]", "delay: 500 ms}]\ndrain: 0 s")
    run = run_text(tmp_path / "main", text)
    requests = run.tables["requests"]
    under_way = dict.fromkeys(("request", "reply", "observation"), 0)
    for line in run.outcome.ledger:
        assert line.gap == 0
        under_way[line.path] += line.under_way

    assert not run.outcome.drained
    assert under_way["request"] > 30
    unfinished = requests["outcome"] == "unfinished"
    assert unfinished.sum() > 30
    assert np.isnan(requests["replied_at_s"][unfinished]).all()
    assert (unfinished | (requests["outcome"] == "completed")).all()
    assert (np.isnan(requests["at_leaf_s"])).sum() == under_way["request"]


def test_greedy_routing_herds_on_old_reports_and_flow_routing_does_not(tmp_path):
    """scenarios/herding.yaml as shipped: its amplitudes and a period of greedy alone. The factor 3 is its expectation."""
    file = load_scenario(CHECKOUT / "scenarios" / "herding.yaml", arms=("greedy", "flow"))
    oscillation = {}
    for arm, scenario in file.arms.items():
        run = run_one(tmp_path / arm, scenario)
        oscillation[arm] = summarize_arm(scenario, run.tables, run.outcome, ())["oscillation"]

    assert oscillation["greedy"]["amplitude"] > 3 * oscillation["flow"]["amplitude"]
    assert oscillation["greedy"]["significant"] is True
    assert 1.0 < oscillation["greedy"]["period_s"] < 3.0  # the scenario's comment: near two seconds
    assert oscillation["flow"]["significant"] is False
    assert oscillation["flow"]["period_s"] is None
