import numpy as np
import pytest

from testbed.analysis.fidelity import measure_fidelity
from testbed.analysis.law import Law
from testbed.analysis.limits import Limit, lateness_limit_s, smallest_duration_s, stall_limit
from testbed.analysis.pools import Pools, judged_links
from testbed.analysis.records import Window
from testbed.analysis.verdict import CHECKS, LIVE_CHECKS, judge
from testbed.record.outcome import Death, LedgerLine
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import (
    fail,
    made_lateness,
    made_outcome,
    made_processes,
    made_scenario,
    made_tables,
    steady,
)

SCENARIO = made_scenario()
TOPOLOGY = build_topology(SCENARIO)
LATENESS, STALL = Limit(0.002, 0.0005), Limit(0.1, 0.3)  # by the floor at every scale, and by the loop delay
TABLES = made_tables(SCENARIO, steady(0.4, 0.3, 0.3), rate_per_s=100.0)


def verdict(scenario=SCENARIO, tables=TABLES, outcome=None, laws=(), log_problems=(), loop_delay_s=0.57):
    topology = build_topology(scenario)
    outcome = made_outcome() if outcome is None else outcome
    return judge(
        scenario,
        topology,
        tables,
        outcome,
        lateness=judged_links(tables["lateness"], Pools(scenario, topology)),
        laws=laws,
        loop_delay_s=loop_delay_s,
        fidelity=measure_fidelity(scenario, topology, tables, outcome, Window(5.0, 20.0)),
        log_problems=log_problems,
    )


def slipped(late_s):
    """The requests, all sent so late, and all that follows as much later."""
    requests = TABLES["requests"]
    later = requests["planned_at_s"] + late_s - requests["sent_at_s"]
    after = ("sent_at_s", "at_leaf_s", "at_server_s", "started_at_s", "first_token_at_s", "finished_at_s")
    moved = (*after, "answered_at_s", "left_leaf_s", "replied_at_s")
    return {**requests, **{name: requests[name] + later for name in moved}}


def test_a_sound_run_is_valid_without_a_reason():
    assert verdict()[:2] == ("valid", ())


def test_a_death_makes_a_run_incomplete_and_names_the_process():
    dead = Death("us/server-1", "signal 9", 3.0, "starting\nout of memory\n")

    found = verdict(outcome=made_outcome(deaths=(dead,)))

    assert found.word == "incomplete"
    assert found.reasons == (
        "ending: us/server-1 died (signal 9), at 3.000 s of run time; see all that it said in us_server-1.txt in the folder "
        "stderr of the arm; its last line: out of memory",
    )


def test_a_log_without_an_end_or_an_interruption_makes_a_run_incomplete():
    found = verdict(log_problems=("us_server-1.log: no end marker",))

    assert found.word == "incomplete"
    assert found.reasons[0].startswith(
        "ending: log us_server-1.log: no end marker, when the run ended, at 22.000 s"
    )
    assert verdict(outcome=made_outcome(interrupted=True)).word == "incomplete"


def test_a_gap_in_a_ledger_makes_a_run_invalid():
    gap = LedgerLine("root.west", "us/leaf-1", "request", 100, 0, {"loss": 1}, 97, 1)

    found = verdict(outcome=made_outcome().__class__("live", "actual", 22.0, True, ledger=(gap,)))

    assert found.word == "invalid"
    assert (
        "sent 100 and copied 0, but 1 dropped + 97 delivered + 1 under way leave 1 unaccounted for"
        in found.reasons[0]
    )


def test_a_broken_law_makes_a_run_invalid_even_under_virtual_time():
    law = Law("causality", "reply from leaf to root", False, "1 breaches")

    found = verdict(outcome=made_outcome(engine="virtual"), laws=(law, Law("little", "us", True, "")))

    assert found[:2] == (
        "invalid",
        (
            "laws: causality is broken at reply from leaf to root: 1 breaches, over the whole run; keep the folder: under "
            "virtual time it is a fault of the testbed",
        ),
    )


@pytest.mark.parametrize(
    ("p99_s", "word"), [(0.0009, "valid"), (0.0011, "suspect"), (0.0019, "suspect"), (0.0021, "invalid")]
)
def test_lateness_is_held_against_the_smallest_delay_and_its_half(p99_s: float, word: str):
    """The smallest configured delay is 20 ms: a tenth is 2 ms, half of that makes a run suspect."""
    tables = {**TABLES, "lateness": made_lateness(SCENARIO, p99_s)}

    assert verdict(tables=tables).word == word


def test_the_reason_names_the_worst_link_the_limit_and_what_to_try():
    tables = {**TABLES, "lateness": made_lateness(SCENARIO, 0.0021)}

    assert verdict(tables=tables).reasons[0] == (
        "release lateness: p99 2.1 ms on root.west -> us/leaf-1 (request) (1000 messages), limit 2 ms (26 more links above half the limit); "
        "try a larger time_scale, a lower rate or an idle host"
    )


def test_lateness_is_of_no_concern_under_virtual_time():
    tables = {**TABLES, "lateness": made_lateness(SCENARIO, 1.0), "processes": made_processes(9.0)}

    assert verdict(tables=tables, outcome=made_outcome(engine="virtual")).word == "valid"


def test_a_larger_time_scale_allows_more_lateness():
    scenario = made_scenario(time_scale=4.0)

    assert lateness_limit_s(SCENARIO, TOPOLOGY) == pytest.approx(0.002)
    assert lateness_limit_s(scenario, build_topology(scenario)) == pytest.approx(0.008)


@pytest.mark.parametrize("limit", [LATENESS, STALL])
def test_on_a_slower_clock_a_limit_is_the_same_in_scenario_time(limit: Limit):
    """So a run that is less late in scenario time than a valid one is never invalid."""
    at_scale = {scale: limit.at(scale) / scale for scale in (0.05, 0.2, 0.5, 1.0, 2.0, 8.0, 64.0)}

    assert at_scale[1.0] == pytest.approx(at_scale[2.0]) == pytest.approx(at_scale[8.0])
    assert at_scale[8.0] == pytest.approx(at_scale[64.0])
    assert list(at_scale.values()) == sorted(at_scale.values(), reverse=True)


@pytest.mark.parametrize("limit", [LATENESS, STALL])
def test_on_a_faster_clock_a_limit_does_not_fall_below_what_a_host_can_do(limit: Limit):
    assert limit.at(0.01) == limit.floor_s
    assert limit.at(0.5) == max(limit.floor_s, 0.5 * limit.part_s)


@pytest.mark.parametrize("time_scale", [1.0, 2.0, 8.0])
@pytest.mark.parametrize(("late_s", "word"), [(0.0009, "valid"), (0.0015, "suspect"), (0.0025, "invalid")])
def test_lateness_in_scenario_time_decides_however_slow_the_clock(
    late_s: float, word: str, time_scale: float
):
    """A tenth of the smallest delay is 0.5 ms, so that it is the floor which decides."""
    links = [
        {"from": "root.*", "to": "cell.*", "path": "request", "delay": "20 ms"},
        {"from": "cell.*", "to": "root.*", "path": "reply", "delay": "20 ms"},
        {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "5 ms"},
    ]
    scenario = made_scenario(time_scale=time_scale, links=links)
    tables = {
        **TABLES,
        "requests": slipped(late_s),
        "observations": {},
        "lateness": made_lateness(scenario, late_s * time_scale),
        "processes": made_processes(50.0 * late_s * time_scale),
    }
    outcome = made_outcome().__class__("live", "actual", 22.0 * time_scale, True)

    found = verdict(scenario=scenario, tables=tables, outcome=outcome, loop_delay_s=0.1)

    of_clock = ("release lateness", "generator slip", "stall")
    assert {check: found.checks[check] for check in of_clock} == dict.fromkeys(of_clock, word)


def test_the_smallest_duration_may_be_a_period_or_that_of_a_fault():
    line = {"at": "10 s", "link": {"from": "cell.us", "to": "root.*"}, "set": {"delay": "5 ms"}}
    quick = {"flow": {"kind": "flow", "step": "0.1 /s^2", "interval": "15 ms"}}

    faulty, hasty = made_scenario(faults=[line]), made_scenario(policies=quick)

    assert smallest_duration_s(SCENARIO, TOPOLOGY) == pytest.approx(0.02)
    assert smallest_duration_s(hasty, build_topology(hasty)) == pytest.approx(0.015)
    assert smallest_duration_s(faulty, build_topology(faulty)) == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("words", "duration_s"),
    [
        ({"kind": "imitation", "slope": "1 /s", "interval": "7 ms"}, 0.007),
        ({"kind": "flow", "step": "0.1 /s^2", "interval": "7 ms"}, 0.007),
        ({"kind": "flow", "step": "0.1 /s^2", "interval": "7 ms", "update": "on_report"}, 0.02),
        ({"kind": "dlb", "interval": "7 ms"}, 0.007),
        ({"kind": "random", "decision_time": "3 ms"}, 0.003),
        ({"kind": "weighted_utilisation", "every": "5 ms"}, 0.005),
    ],
)
def test_the_smallest_duration_may_be_that_of_a_policy_in_use_and_of_no_other(words, duration_s):
    """The links delay 20 ms. A policy that no line of traffic and no leaf names changes nothing."""
    idle = {"even": {"kind": "random"}, "idle": words}
    if words["kind"] == "weighted_utilisation":  # of leaves alone
        cell = {"servers": 2, "service": {"slots": 32, "exponential": "100 ms"}, "leaf": {"policy": "idle"}}
        used = made_scenario("even", policies=idle, cells={"us": cell})
    else:
        used = made_scenario("idle", policies=idle)

    assert smallest_duration_s(used, build_topology(used)) == pytest.approx(duration_s)
    unused = made_scenario("even", policies=idle)
    assert smallest_duration_s(unused, build_topology(unused)) == pytest.approx(0.02)


def test_the_smallest_duration_may_be_that_between_health_checks_or_looks_of_an_autoscaler():
    cell = {"servers": 2, "service": {"slots": 32, "exponential": "100 ms"}}
    scaled = {**cell, "autoscaler": {"in_flight": 4.0, "every": "9 ms"}}
    checked = {**cell, "leaf": {"health_checks": {"every": "8 ms"}}}
    root = {
        "traffic": [{"class": "sand", "rate": "300 /s", "policy": "flow"}],
        "health_checks": {"every": "6 ms"},
    }

    found = [
        smallest_duration_s(scenario, build_topology(scenario))
        for scenario in (
            made_scenario(cells={"us": scaled}),
            made_scenario(cells={"us": checked}),
            made_scenario(roots={"west": root}),
        )
    ]

    assert found == pytest.approx([0.009, 0.008, 0.006])


def test_a_link_that_is_later_than_its_own_delay_makes_a_run_suspect():
    links = [{"from": "root.*", "to": "cell.*", "path": "request", "delay": "0.5 ms"}]
    scenario = made_scenario(links=links)
    requests = {**TABLES["requests"], "attempts": np.full_like(TABLES["requests"]["attempts"], 2)}
    tables = {
        **TABLES,
        "requests": requests,  # sent twice: their instants say nothing of these links
        "observations": {},
        "lateness": made_lateness(scenario, 0.0009),
    }

    found = verdict(scenario=scenario, tables=tables)

    assert found.word == "suspect"
    assert "exceeds that link's own delay of 500 us" in found.reasons[0]


def test_a_generator_that_slips_makes_a_run_invalid():
    requests = slipped(0.003)

    found = verdict(tables={**TABLES, "requests": requests})

    assert found.word == "invalid"
    assert found.reasons[0].startswith("generator slip: p99 3 ms at root.")


def test_slip_is_wall_time():
    """3 ms of scenario time at a time scale of 0.1 are 0.3 ms of the wall's."""
    scenario = made_scenario(time_scale=0.1)
    requests = slipped(0.003)

    found = verdict(
        scenario=scenario,
        tables={**TABLES, "requests": requests},
        outcome=made_outcome().__class__("live", "actual", 2.2, True),
    )

    assert found.word == "valid"


def test_requests_that_a_root_held_until_the_end_are_no_shortfall():
    requests = TABLES["requests"]
    waits = requests["request_id"] % 20 == 0
    held = {
        **requests,
        "sent_at_s": np.where(waits, np.nan, requests["sent_at_s"]),
        "held_s": np.where(waits, np.nan, 0.0),
    }

    assert verdict(tables={**TABLES, "requests": held})[:2] == ("valid", ())


@pytest.mark.parametrize(("share", "word"), [(0.004, "valid"), (0.007, "suspect"), (0.02, "invalid")])
def test_arrivals_that_were_never_sent_are_a_shortfall(share: float, word: str):
    requests = {key: column.copy() for key, column in TABLES["requests"].items()}
    missing = np.arange(int(share * len(requests["request_id"])))
    fail(requests, missing, "unfinished")
    requests["sent_at_s"][missing] = np.nan

    assert verdict(tables={**TABLES, "requests": requests}).word == word


@pytest.mark.parametrize(("stall_s", "word"), [(0.1, "valid"), (0.2, "suspect"), (0.3, "invalid")])
def test_a_stall_is_held_against_half_the_loop_delay(stall_s: float, word: str):
    tables = {**TABLES, "processes": made_processes(stall_s)}

    found = verdict(tables=tables)

    assert found.word == word
    if word == "invalid":
        assert found.reasons[0].startswith(
            "stall: 300 ms at root.west, in the second up to 1.000 s, limit 285 ms"
        )


def test_an_unknown_loop_delay_leaves_the_floor():
    assert stall_limit(float("nan")).at(1.0) == pytest.approx(0.1)


def test_the_gravest_reason_comes_first():
    tables = {**TABLES, "lateness": made_lateness(SCENARIO, 0.0021), "processes": made_processes(0.2)}
    dead = Death("us/server-1", "signal 9", 3.0)

    found = verdict(tables=tables, outcome=made_outcome(deaths=(dead,)))

    assert found.word == "incomplete"
    assert [reason.split()[0] for reason in found.reasons] == ["ending:", "release", "stall:"]


def test_every_check_has_its_word():
    tables = {**TABLES, "lateness": made_lateness(SCENARIO, 0.0021)}
    laws = (Law("little", "us", True, ""),)

    live = verdict(tables=tables, laws=laws).checks
    virtual = verdict(outcome=made_outcome(engine="virtual"), laws=laws).checks

    assert list(live) == [*CHECKS, *LIVE_CHECKS]
    assert live["release lateness"] == "invalid"
    assert live["injection"] == live["delivered delay"] == live["observation age"] == "valid"
    assert live["pressure"] == live["timers"] == "unknown"  # nobody watched this machine
    assert live["drawn delay"] == live["loss"] == "unknown"  # no link counted what it sent
    assert live["fault latency"] == "not asked"
    assert {virtual[check] for check in LIVE_CHECKS} == {"not asked"}
    assert {virtual[check] for check in CHECKS} == {"valid"}


def test_a_run_without_data_is_told_as_unknown():
    """Ten requests: no link, pool or root has a p99; nothing was counted, and no process said how it fared."""
    few = {name: column[:10] for name, column in TABLES["requests"].items()}
    nothing = {**TABLES["requests"], **few}
    lateness = made_lateness(SCENARIO)
    lateness["delivered"][:] = 5
    tables = {"requests": nothing, "lateness": lateness}

    found = verdict(tables=tables, outcome=made_outcome().__class__("live", "actual", 22.0, True))

    assert found.word == "valid"
    words = {
        word: [check for check in found.checks if found.checks[check] == word]
        for word in found.checks.values()
    }
    assert words == {
        "valid": ["ending", "arrivals"],
        "unknown": [
            "ledger", "laws", "release lateness", "injection", "server step", "generator slip", "timers", "stall",
            "timer lag", "delivered delay", "drawn delay", "loss", "observation age", "pressure",
        ],
        "not asked": ["fault latency"],
    }  # fmt: skip


def test_counted_links_have_a_word_for_their_draws_and_losses():
    lateness = made_lateness(SCENARIO)
    drawn_s = np.where(lateness["path"] == "observation", 0.5, 0.02)
    sent = {"sent": lateness["delivered"], "dropped_loss": 0 * lateness["delivered"], "drawn_s_mean": drawn_s}

    found = verdict(tables={**TABLES, "lateness": {**lateness, **sent}})

    assert found.checks["drawn delay"] == found.checks["loss"] == "valid"


@pytest.mark.parametrize(
    ("words", "checks"),
    [
        ({"jitter": {"lognormal": "8 ms"}}, ("unknown", "valid")),  # its mean converges too slowly
        ({"loss_burst": 3.0, "loss": "2 %"}, ("unknown", "unknown")),
    ],
)
def test_links_whose_draws_no_bound_holds_for_say_nothing_of_them(words, checks):
    scenario = made_scenario(links=[{"from": "*", "to": "*", "delay": "20 ms", **words}])
    lateness = made_lateness(scenario)
    sent = {"sent": lateness["delivered"], "dropped_loss": 0 * lateness["delivered"]}
    drawn = {"drawn_s_mean": np.full(len(lateness["delivered"]), 0.03)}

    found = verdict(scenario, {**TABLES, "lateness": {**lateness, **sent, **drawn}})

    assert (found.checks["drawn delay"], found.checks["loss"]) == checks


def test_observations_whose_age_no_theory_tells_are_not_asked():
    """Reports that are sent on change have no period."""
    scenario = made_scenario(reports={"every": "100 ms", "send": "on_change"})

    assert verdict(scenario=scenario).checks["observation age"] == "not asked"
    assert verdict(tables={**TABLES, "observations": {}}).checks["observation age"] == "unknown"


def test_due_instants_cannot_show_what_was_late():
    """The roles write down the planned instants, whatever the clock said when they acted."""
    found = verdict(outcome=made_outcome(dating="due"))

    by_instants = ("injection", "server step", "generator slip", "delivered delay")
    assert {check: found.checks[check] for check in by_instants} == dict.fromkeys(by_instants, "not asked")
    assert found.checks["release lateness"] == "valid"


def test_a_fault_that_sets_in_late_is_told_with_its_instant():
    lines = [{"at": "10 s", "for": "2 s", "cell": "us", "set": {"speed": 0.5}}]
    scenario = made_scenario(faults=lines)
    faults = {**made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)["faults"]}
    nodes = {key: np.array([4]) for key in ("nodes_expected", "nodes_applied", "nodes_healed")}
    done = {"applied_at_s": np.array([10.001]), "healed_at_s": np.array([12.4])}

    found = verdict(scenario=scenario, tables={**TABLES, "faults": {**faults, **nodes, **done}})
    partly = {**faults, **nodes, **done, "nodes_applied": np.array([3]), "healed_at_s": np.array([12.0])}
    fewer = verdict(scenario=scenario, tables={**TABLES, "faults": partly})

    assert found.word == found.checks["fault latency"] == "invalid"
    assert found.reasons[0].startswith(
        "fault latency: 400 ms until the last of its nodes had done it (cell us, speed 0.5, healed), at us/server-1, us/server-2, "
        "us/server-3, us/server-4, planned at 12.000 s, limit 285 ms; try an idle host"
    )
    assert fewer.word == "invalid"
    assert fewer.reasons == (
        "fault latency: 3 of 4 nodes made the fault (cell us, speed 0.5), at us/server-1, us/server-2, us/server-3, us/server-4, "
        "planned at 10.000 s; see what these nodes say in the folder stderr of the arm, or try an idle host",
    )


def test_a_stall_is_told_by_its_instant_and_by_what_the_process_did():
    processes = made_processes(0.001)
    more = {
        "stall_at_s": processes["at_s"] - 0.7,
        "log_pause_s": np.zeros(40),
        "collector_pause_s": np.zeros(40),
    }
    processes = {**processes, **more}
    processes["stall_s"][25], processes["log_pause_s"][25] = 0.35, 0.3

    found = verdict(tables={**TABLES, "processes": processes})

    assert found.reasons == (
        "stall: 350 ms at us/leaf-1, at 5.300 s, limit 285 ms; try fewer processes, a lower rate or an idle host; "
        "writing its log took 300 ms of it",
    )


@pytest.mark.parametrize(("late_s", "scale"), [(0.0015, 2), (0.0035, 4), (0.03, 32)])
def test_the_advised_time_scale_is_one_at_which_the_same_lateness_is_valid(late_s: float, scale: int):
    def told(time_scale):
        scenario = made_scenario(time_scale=time_scale)
        tables = {
            **TABLES,
            "lateness": made_lateness(scenario, late_s),
            "requests": slipped(late_s / time_scale),
            "observations": {},
        }
        outcome = made_outcome().__class__("live", "actual", 22.0 * time_scale, True)
        return verdict(scenario=scenario, tables=tables, outcome=outcome)

    assert told(1.0).advice == (
        f"try --time-scale {scale}: if the host is as late again, all of it is within its limits then; a run takes "
        f"{20 * scale} s an arm"
    )
    assert told(float(scale))[:2] == ("valid", ())
    assert told(float(scale)).advice == ""
    assert told(scale / 2.0).word != "valid"


def test_what_is_no_matter_of_the_scale_brings_no_advice():
    law = Law("causality", "reply from leaf to root", False, "1 breaches")

    assert verdict(laws=(law,)).advice == ""
    assert verdict(tables={**TABLES, "processes": made_processes(0.5)}).advice.startswith(
        "try --time-scale 4:"
    )
