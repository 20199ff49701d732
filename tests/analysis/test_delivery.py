"""Injection errors, and delays and losses as delivered, on messages made up with the links' own draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis import hops as recorded
from testbed.analysis.delivery import delivered_delays, delivery_findings, draw_findings, draws_of
from testbed.analysis.hops import Hop, recorded_hops, untouched_links
from testbed.analysis.host import HostSeries
from testbed.analysis.injection import earliest, injection_errors, injection_findings
from testbed.analysis.limits import Limit
from testbed.analysis.reason import Places
from testbed.analysis.records import Tables
from testbed.links.link import LinkModel
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Link, build_topology
from tests.analysis.made_arms import made_scenario, made_tables, steady

LIMIT = Limit(0.002, 0.0)
HOST = HostSeries({}, 1.0)
PLACES = Places(made_scenario(), build_topology(made_scenario()))
MESSAGES = 4000
JITTERS: tuple[dict[str, Any], ...] = (
    {},
    {"jitter": {"normal": "5 ms"}},
    {"jitter": {"uniform": "10 ms"}},
    {"jitter": {"lognormal": "8 ms"}, "loss": "2 %"},
    {"jitter": {"pareto": "8 ms"}},
    {"jitter": {"exponential": "10 ms"}},
    {"jitter": {"table": ["0 ms", "1 ms", "9 ms"]}},
)


def with_line(**words: Any) -> Scenario:
    line = {"from": "root.*", "to": "cell.*", "path": "request", "delay": "20 ms", **words}
    return made_scenario(links=[line])


def request_link(scenario: Scenario) -> Link:
    return next(link for link in build_topology(scenario).links if link.path == "request")


def sent_over(link: Link, late_s: float = 0.0, by: Link | None = None) -> Hop:
    """Messages that the draws of `by` (of the link itself, unless given) delay, and a little lateness."""
    sent_at_s = np.linspace(0.0, 20.0, MESSAGES)
    rng = np.random.default_rng(1)
    instants = sent_at_s.tolist()
    releases = [LinkModel(1, by or link).draw(i, 0, at_s) for i, at_s in enumerate(instants)]
    came = np.array([each is not None for each in releases])
    drawn_s = np.array([np.nan if each is None else each for each in releases], float) - sent_at_s
    error_s = rng.exponential(5e-5, MESSAGES) + late_s
    return Hop(link, sent_at_s[came], (sent_at_s + drawn_s + error_s)[came], drawn_s[came])


@pytest.mark.parametrize("words", JITTERS, ids=str)
def test_what_a_link_draws_is_what_was_asked(words: dict[str, Any]) -> None:
    found = delivered_delays([sent_over(request_link(with_line(**words)))])

    assert [each.beyond for each in found] == [0.0]
    assert list(delivery_findings(found, PLACES)) == []


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        ({"delay": "20 ms"}, {"delay": "21 ms"}),  # later than its own lateness explains
        ({"delay": "20 ms"}, {"delay": "19 ms"}),
        ({"jitter": {"normal": "5 ms"}}, {"jitter": {"normal": "7 ms"}}),
        ({"jitter": {"exponential": "10 ms"}}, {"jitter": {"uniform": "10 ms"}}),
    ],
)
def test_another_distribution_is_found_out(asked: dict[str, Any], done: dict[str, Any]) -> None:
    """The records show the delays of `done`; what the emulator says of its own lateness does not excuse it."""
    link, other = request_link(with_line(**asked)), request_link(with_line(**done))
    hop = sent_over(link, by=other)
    hop = hop._replace(drawn_s=hop.received_at_s - hop.sent_at_s - 5e-5)

    (finding,) = delivery_findings(delivered_delays([hop]), PLACES)

    assert finding.word == "invalid"
    assert finding.reason.startswith("delivered delay: on root.west -> us/leaf-1 (request) p50 ")


def test_the_injection_error_is_what_lies_beyond_the_draw() -> None:
    link = request_link(with_line(jitter={"normal": "5 ms"}))
    on_time, late = (injection_errors([sent_over(link, late_s)], 1.0) for late_s in (0.0, 0.003))

    assert on_time[0].p99_s < 0.001
    assert late[0].p50_s == pytest.approx(0.003, abs=2e-4)
    assert list(injection_findings(on_time, None, LIMIT, 1.0, HOST, PLACES)) == []
    (finding,) = injection_findings(late, None, LIMIT, 1.0, HOST, PLACES)
    assert (finding.word, finding.check) == ("invalid", "injection")
    assert "(received less sent less drawn): p99 3.2" in finding.reason


def test_a_message_before_its_time_is_told_though_it_is_one_of_thousands() -> None:
    hop = sent_over(request_link(with_line()))
    hop.received_at_s[7] -= 0.001

    (finding,) = injection_findings(
        injection_errors([hop], 1.0), earliest([hop], 1.0), LIMIT, 1.0, HOST, PLACES
    )

    assert finding.word == "invalid"
    assert "before its drawn delay was over" in finding.reason


def test_lateness_is_the_wall_s() -> None:
    link = request_link(with_line())

    assert injection_errors([sent_over(link, 0.003)], 0.1)[0].p50_s == pytest.approx(0.0003, abs=2e-5)


def lateness_row(link: Link, sent: int, lost: int, drawn_s: float) -> dict[str, Any]:
    text = {key: np.array([getattr(link, key)], object) for key in ("source", "target", "path")}
    return {
        **text,
        "sent": np.array([sent]),
        "dropped_loss": np.array([lost]),
        "delivered": np.array([sent - lost]),
        "drawn_s_mean": np.array([drawn_s]),
    }


@pytest.mark.parametrize(
    ("loss", "lost", "found"),
    [("2 %", 200, 0), ("2 %", 260, 0), ("2 %", 300, 1), ("2 %", 110, 1), ("0 %", 1, 1)],
)
def test_losses_are_held_against_their_binomial_interval(loss: str, lost: int, found: int) -> None:
    """Of 10,000 messages 200 are to be lost, with a standard deviation of 14."""
    link = request_link(with_line(loss=loss))

    findings = list(draw_findings(draws_of([link], lateness_row(link, 10_000, lost, 0.02)), PLACES))

    assert [each.check for each in findings] == ["loss"] * found


@pytest.mark.parametrize(("mean_s", "found"), [(0.0201, 0), (0.0204, 1), (0.0196, 1)])
def test_the_mean_of_the_draws_is_held_against_its_error(mean_s: float, found: int) -> None:
    """The standard error of 10,000 draws with a deviation of 5 ms is 0.05 ms."""
    link = request_link(with_line(jitter={"normal": "5 ms"}))

    findings = list(draw_findings(draws_of([link], lateness_row(link, 10_000, 0, mean_s)), PLACES))

    assert [each.check for each in findings] == ["drawn delay"] * found


def test_links_that_faults_touch_are_not_held_against_the_scenario() -> None:
    """Neither those whose words change, nor those of a process that is stopped."""
    faults = [
        {"at": "5 s", "link": {"from": "root.west", "to": "cell.us"}, "set": {"delay": "1 s"}},
        {"at": "5 s", "for": "1 s", "leaf": "eu/leaf-1", "set": {"pause": True}},
    ]
    scenario = made_scenario(faults=faults)
    tables: Tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)

    untouched = {(link.source, link.target) for link in untouched_links(scenario, build_topology(scenario))}
    seen = {
        (hop.link.source, hop.link.target)
        for hop in recorded_hops(scenario, build_topology(scenario), tables)
    }

    assert ("root.north", "us/leaf-1") in seen
    assert ("root.west", "us/leaf-1") not in untouched | seen
    assert not any("eu/leaf-1" in pair for pair in untouched | seen)


def test_requests_that_were_sent_again_are_left_out() -> None:
    """By their root or by their leaf: their messages have keys, and draws, of their attempts."""
    scenario = made_scenario()
    tables: Tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=100.0)
    again = tables["requests"]["request_id"][::2]

    def messages(tables: Tables) -> int:
        hops = recorded_hops(scenario, build_topology(scenario), tables)
        return sum(len(hop.sent_at_s) for hop in hops if hop.link.path == "request")

    assert messages({**tables, "attempts": {"request_id": again}}) == messages(tables) - len(again)


def test_a_link_of_very_many_messages_is_judged_over_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evenly spaced rows, each with the draw of its own key: what is late in the last quarter of a fast run shows."""
    scenario = with_line(jitter={"uniform": "10 ms"})
    topology = build_topology(scenario)
    tables: Tables = made_tables(scenario, steady(0.4, 0.3, 0.3), rate_per_s=900.0)
    requests = tables["requests"]
    for link in (link for link in topology.links if link.path == "request"):
        draw = LinkModel(scenario.seed, link).draw
        for i in np.flatnonzero((requests["root"] == link.source) & (requests["leaf"] == link.target)):
            requests["at_leaf_s"][i] = draw(
                int(requests["request_id"][i]), 0, float(requests["sent_at_s"][i])
            )
    requests["at_leaf_s"] += np.where(requests["planned_at_s"] > 15.0, 0.003, 0.0)
    monkeypatch.setattr(recorded, "MOST_MESSAGES", 300 * len(topology.links))

    hops = [hop for hop in recorded_hops(scenario, topology, tables) if hop.link.path == "request"]

    assert [len(hop.sent_at_s) for hop in hops if hop.link.target.startswith("us/")] == [300] * 3
    assert all(hop.sent_at_s[0] < 0.5 and hop.sent_at_s[-1] > 19.5 for hop in hops)
    for each in injection_errors(hops, 1.0):
        assert (each.p50_s, each.p99_s) == pytest.approx((0.0, 0.003), abs=1e-9)
