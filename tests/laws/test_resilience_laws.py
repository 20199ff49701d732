"""Retries and cancellation in whole runs under virtual time: what they cost, what they save, and that nothing is lost count of."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.analysis.laws import all_laws
from testbed.analysis.records import ended_s
from testbed.analysis.summary import summarize_arm
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, run_text, run_words

TEXT = """
name: again
duration: 4 s
drain: 10 s
cells:
  us: {{servers: 2, service: {{slots: 2, exponential: 40 ms}}}}
  eu: {{servers: 2, service: {{slots: 2, exponential: 40 ms}}}}
roots:
  a: {{traffic: [{{class: sand, rate: 100 /s, policy: random}}]}}
classes: {{sand: {{timeout: 1 s, {words}}}}}
policies: {{random: {{kind: random}}}}
links:
  - {{from: root.*, to: cell.*, path: request, delay: 10 ms, loss: {loss}}}
  - {{from: cell.*, to: root.*, path: reply, delay: 10 ms}}
"""


def counts(tmp_path: Path, words: str, loss: str = "10 %") -> dict[str, Any]:
    run = run_text(tmp_path / str(len(list(tmp_path.iterdir()))), TEXT.format(words=words, loss=loss))
    found: dict[str, Any] = summarize_arm(run.scenario, run.tables, run.outcome, ())["requests"]
    return found


def test_retries_make_up_for_what_links_lose(tmp_path) -> None:
    once = counts(tmp_path, "cancel: true")
    again = counts(tmp_path, "cancel: true, retries: {attempt_timeout: 250 ms}")

    assert once["timed_out"] > 0.05 * once["planned"]
    assert again["timed_out"] < 0.3 * once["timed_out"]
    assert again["attempts"] > again["planned"]


def test_retries_of_an_impatient_root_make_a_storm_that_a_budget_and_cancellation_prevent(tmp_path) -> None:
    """Work that nobody waits for keeps the servers busy, so that more attempts time out."""
    storm = counts(tmp_path, "retries: {attempt_timeout: 200 ms}")
    budget = counts(tmp_path, "retries: {attempt_timeout: 200 ms, budget: 10 %}")
    called_back = counts(tmp_path, "cancel: true, retries: {attempt_timeout: 200 ms}")

    assert storm["attempts"] > 1.5 * storm["planned"]
    assert budget["attempts"] <= 1.1 * budget["planned"]
    assert storm["completed"] < 0.75 * budget["completed"]
    assert storm["completed"] < 0.75 * called_back["completed"]


def test_what_is_called_back_frees_its_slot(tmp_path) -> None:
    """One slot, work of 5 s, patience of 1 s: without a call the second request waits for the first one's work."""
    text = """
name: slot
duration: 10 s
drain: 1 s
cells: {{us: {{servers: 1, service: {{slots: 1, fixed: 5 s}}}}}}
roots: {{a: {{traffic: [{{class: sand, rate: 0.4 /s, arrivals: evenly_spaced, policy: random}}]}}}}
classes: {{sand: {{timeout: 1 s, cancel: {cancel}}}}}
policies: {{random: {{kind: random}}}}
links: [{{from: root.*, to: cell.*, delay: 10 ms}}]
"""
    most = {}
    for cancel in ("false", "true"):
        run = run_text(tmp_path / cancel, text.format(cancel=cancel))
        samples = run.tables["cells"]
        most[cancel] = int((samples["queued"] + samples["running"]).max())

    assert most["false"] > 1
    assert most["true"] == 1


def test_the_table_of_requests_tells_of_the_last_attempt_and_how_many_there_were(tmp_path) -> None:
    run = run_text(tmp_path, TEXT.format(words="retries: {attempt_timeout: 250 ms}", loss="30 %"))

    requests = run.tables["requests"]
    attempts, completed = requests["attempts"], requests["outcome"] == "completed"
    gone_on = (attempts > 1) & completed
    assert set(attempts) == {1, 2, 3}
    assert gone_on.any()
    assert (requests["sent_at_s"] - requests["planned_at_s"])[gone_on] == pytest.approx(
        0.25 * (attempts[gone_on] - 1), abs=1e-6
    )
    assert_sound(run)


@pytest.mark.parametrize("at", ["server", "leaf"])
def test_a_limit_keeps_the_queue_short_and_sheds_the_rest(tmp_path, at) -> None:
    """Twice the load that the servers can carry."""
    limit = {"server": "limit: {in_flight: 3}", "leaf": "leaf: {limit: {in_flight: 6}}"}[at]
    text = TEXT.format(words="cancel: false", loss="0 %").replace("rate: 100 /s", "rate: 400 /s")
    text = text.replace("cells:\n  us: {servers: 2,", f"cells:\n  us: {{{limit}, servers: 2,")

    run = run_text(tmp_path, text)

    requests, samples = run.tables["requests"], run.tables["cells"]
    us, shed = requests["cell"] == "us", requests["outcome"] == "shed"
    assert 0.3 < shed[us].mean() < 0.7
    assert not shed[~us].any()
    in_flight = samples["queued"] + samples["running"]
    assert in_flight[samples["cell"] == "us"].max() <= (3 if at == "server" else 6)
    assert in_flight[samples["cell"] == "eu"].max() > 12
    assert (requests["replied_at_s"] - requests["planned_at_s"])[us & ~shed].max() < 0.8
    told = summarize_arm(run.scenario, run.tables, run.outcome, ())["sheds"]
    assert told == {"root": 0, "leaf": 0, "server": 0, at: shed.sum()}
    assert_sound(run)


@st.composite
def words_of_retries(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "attempts": draw(st.integers(2, 5)),
        "attempt_timeout": draw(st.sampled_from(("40 ms", "150 ms"))),
        "on": draw(st.sampled_from((["timed_out"], ["failed", "timed_out", "shed"]))),
        **draw(st.sampled_from(({}, {"backoff": "30 ms"}, {"budget": "20 %"}))),
    }


@st.composite
def words_of_hedging(draw: st.DrawFn) -> dict[str, Any]:
    return {
        **draw(st.sampled_from(({"after": "30 ms"}, {"after_quantile": "70 %"}))),
        "copies": draw(st.integers(1, 3)),
        "budget": draw(st.sampled_from(("20 %", "100 %"))),
    }


def maybe(draw: st.DrawFn, key: str, words: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """The words under their key, or nothing; once in two times."""
    return {key: draw(words)} if draw(st.booleans()) else {}


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """Two roots, two cells, losses, copies and delays that jitter; some classes retry, some call back."""
    services = (
        {"service": {"slots": 2, "exponential": "30 ms"}},
        {"service": {"rate_curve": {"capacity": "60 /s", "half": 3}}},
        {"profile": "small", "max_sequences": 4},
    )
    policies = (
        {
            "kind": "random",
            "breaker": {"in_a_row": 2, "out_for": "200 ms"},
            "slow_start": {"over": "200 ms"},
        },
        {"kind": "least_cost", "view": "own_counts"},
        {"kind": "two_choices", "own_counts": "add", "decision_time": "5 ms"},
        {
            "kind": "least_cost",
            "stale": "ignored",
            "stale_after": "60 ms",
            "when_none": "hold",
            "hold_queue": 5,
        },
    )
    patience = [
        {
            "timeout": timeout,
            "output_tokens": 12,
            "cancel": draw(st.booleans()),
            **maybe(draw, "retries", words_of_retries()),
            **maybe(draw, "hedging", words_of_hedging()),
        }
        for timeout in ("300 ms", "1 s")
    ]
    impaired = {
        "delay": "10 ms",
        "jitter": {"exponential": "8 ms"},
        "loss": draw(st.sampled_from(("0 %", "10 %"))),
    }
    scaler = {"in_flight": 2.0, "every": "50 ms", "reaction": "50 ms", "start_up": "100 ms"}
    checks = {"every": "100 ms", "unhealthy_after": 1, "healthy_after": 1}
    return {
        "name": "random",
        "duration": "1 s",
        "drain": "20 s",
        "seed": draw(st.integers(0, 1000)),
        "cells": {
            name: {
                "servers": 2,
                **draw(st.sampled_from(services)),
                **draw(st.sampled_from(({}, {}, {"limit": {"in_flight": 3}}, {"limit": {"queued": 2}}))),
                "leaf": {
                    **draw(st.sampled_from(({}, {}, {"limit": {"in_flight": 5}}))),
                    **maybe(draw, "retries", words_of_retries()),
                    **maybe(draw, "hedging", words_of_hedging()),
                    **draw(st.sampled_from(({}, {"health_checks": checks}))),
                    "policy": draw(st.sampled_from(("inside", "asking"))),
                    "count": count,
                },
                **({"autoscaler": scaler} if count == 1 else {}),
            }
            for name, count in (("us", draw(st.integers(1, 2))), ("eu", 2))
        },
        "roots": {
            name: {
                "traffic": [
                    {"class": "sand", "policy": "one", "rate": "60 /s"},
                    {"class": "stone", "policy": "one", "rate": "20 /s"},
                ],
                **draw(st.sampled_from(({}, {"health_checks": checks}))),
            }
            for name in "ab"
        },
        "classes": dict(zip(("sand", "stone"), patience, strict=True)),
        "policies": {
            "one": draw(st.sampled_from(policies)),
            "inside": draw(st.sampled_from(policies[:3])),
            "asking": {"kind": "prequal", "mode": "sync", "probes_per_request": 2.0},
        },
        "links": [
            {
                "from": "root.*",
                "to": "cell.*",
                **impaired,
                "duplicate": draw(st.sampled_from(("0 %", "20 %"))),
            },
            {"from": "cell.*", "to": "root.*", **impaired},
            {"from": "*/leaf-*", "to": "*/server-*", **impaired},
            {"from": "*/server-*", "to": "*/leaf-*", **impaired},
        ],
    }


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(scenarios())
def test_every_request_is_accounted_for_and_no_count_is_off_at_the_end(words: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = run_words(Path(folder) / "main", words)

    assert_sound(run)


@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(scenarios())
def test_twice_the_time_scale_changes_nothing_in_scenario_time(words: dict[str, Any]) -> None:
    """Every delay, window and period of the guards is stretched alike, to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        once = run_words(Path(folder) / "once", words)
        twice = run_words(Path(folder) / "twice", {**words, "time_scale": 2.0})

    for table in ("requests", "attempts", "rotations", "scalings"):
        for name, column in once.tables[table].items():
            np.testing.assert_array_equal(column, twice.tables[table][name], err_msg=f"{table}.{name}")


def assert_sound(run: VirtualRun) -> None:
    """All laws hold, all requests have an outcome, no link has lost count, and in the end nothing is in flight."""
    ended = ended_s(run.scenario, run.outcome)
    laws = all_laws(run.scenario, build_topology(run.scenario), run.tables, ended)
    assert [law for law in laws if not law.holds] == []
    assert [line for line in run.outcome.ledger if line.gap] == []
    assert run.outcome.drained  # every role has counted itself free
    requests = run.tables["requests"]
    assert not (requests["outcome"] == "unfinished").any()
    for name in run.scenario.classes:
        mine = requests["class"] == name
        assert requests["attempts"][mine].max(initial=0) <= _most_attempts(run, name)


def _most_attempts(run: VirtualRun, name: str) -> int:
    words = run.scenario.classes[name]
    if words.retries is not None:
        return words.retries.attempts
    return 1 if words.hedging is None else 1 + words.hedging.copies


SLOW_SERVER = """
name: tail
duration: 6 s
cells: {{us: {{servers: 4, service: {{slots: 8, exponential: 20 ms}}, leaf: {{policy: even, {words}}}}}}}
roots: {{a: {{traffic: [{{class: sand, rate: 200 /s, policy: even}}]}}}}
classes: {{sand: {{timeout: 5 s}}}}
policies: {{even: {{kind: random}}}}
links: [{{from: root.*, to: cell.*, delay: 5 ms}}]
faults: [{{at: 0 s, server: us/server-1, set: {{speed: 0.05}}}}]
"""


def test_hedges_of_a_leaf_cut_the_tail_within_their_budget(tmp_path) -> None:
    """A quarter of the requests goes to a server at a twentieth of its speed."""
    p99, hedges = {}, {}
    for budget in ("0 %", "5 %", "40 %"):
        words = f"hedging: {{after: 100 ms, budget: {budget}}}"
        run = run_text(tmp_path / budget[0], SLOW_SERVER.format(words=words))
        summary = summarize_arm(run.scenario, run.tables, run.outcome, ())
        p99[budget], hedges[budget] = summary["sojourn_s"]["p99"], summary["resendings"]["leaf_hedges"]
        assert hedges[budget] <= float(budget[:-2]) / 100 * summary["requests"]["planned"]
        assert_sound(run)

    assert hedges["0 %"] == 0 < hedges["5 %"] < hedges["40 %"]
    assert p99["40 %"] < 0.3 * p99["0 %"]


@pytest.mark.parametrize("tier", ["leaf", "root"])
def test_a_copy_that_is_called_off_frees_its_slot(tmp_path, tier) -> None:
    """One server would work for 5 s on each of its requests, two a second or more; the other one answers their copies."""
    words = {tier: "hedging: {after: 100 ms, budget: 100 %}"}
    text = f"""
name: slot
duration: 8 s
cells:
  a: {{servers: 2, service: {{slots: 1, fixed: 20 ms}}, leaf: {{policy: turns, {words.get("leaf", "")}}}}}
  b: {{servers: 1, service: {{slots: 1, fixed: 20 ms}}}}
roots:
  a: {{traffic: [{{class: sand, rate: 4 /s, arrivals: evenly_spaced, policy: first}}]}}
classes: {{sand: {{timeout: 20 s, {words.get("root", "")}}}}}
policies:
  turns: {{kind: round_robin}}
  first: {{kind: weighted, weights: {{a: 1, b: 0}}}}
links: [{{from: root.*, to: cell.*, delay: 5 ms}}]
faults: [{{at: 0 s, server: a/server-1, set: {{speed: 0.004}}}}]
"""
    run = run_text(tmp_path, text)

    requests, samples = run.tables["requests"], run.tables["cells"]
    assert (requests["outcome"] == "completed").all()
    assert (requests["replied_at_s"] - requests["planned_at_s"]).max() < 0.2
    assert (samples["queued"] + samples["running"]).max() == 1
    called_off = run.tables["attempts"]["leaf_outcome"] == "cancelled"
    assert called_off.sum() >= len(requests["outcome"]) // 2
    assert_sound(run)


def test_hedges_that_never_come_due_change_nothing(tmp_path) -> None:
    off = run_text(tmp_path / "off", SLOW_SERVER.format(words=""))
    on = run_text(
        tmp_path / "on", SLOW_SERVER.format(words="hedging: {after: 100 s}, retries: {attempts: 2}")
    )

    for name, column in off.tables["requests"].items():
        np.testing.assert_array_equal(column, on.tables["requests"][name], err_msg=name)
    assert len(on.tables["attempts"]["request_id"]) == 0


def test_the_table_of_attempts_tells_of_every_sending(tmp_path) -> None:
    text = TEXT.format(words="cancel: true, hedging: {after: 100 ms, budget: 50 %}", loss="10 %")
    run = run_text(
        tmp_path, text.replace("eu: {servers", "eu: {leaf: {retries: {attempt_timeout: 80 ms}}, servers")
    )

    requests, attempts = run.tables["requests"], run.tables["attempts"]
    sent = attempts["leaf_attempt"] == 0
    again = np.unique(attempts["request_id"])
    by_root = np.bincount(attempts["request_id"][sent], minlength=len(requests["request_id"]))
    np.testing.assert_array_equal(by_root[again], requests["attempts"][again])
    assert (requests["attempts"][np.setdiff1d(requests["request_id"], again)] == 1).all()
    completed = (attempts["outcome"] == "completed") & (attempts["leaf_outcome"] == "completed")
    assert np.bincount(attempts["request_id"][completed]).max() == 1
    assert {"first", "retry", "hedge"} == set(attempts["cause"].tolist())
    assert_sound(run)


@pytest.mark.parametrize("kind", ["round_robin", "prequal", "prequal, mode: sync", "linear", "c3", "jiq"])
def test_a_breaker_leaves_out_a_server_that_cannot_be_reached(tmp_path, kind) -> None:
    """Its requests time out; after three of them only single trials go there."""
    text = """
name: dead
duration: 4 s
cells: {{us: {{servers: 3, service: {{slots: 4, fixed: 10 ms}}, leaf: {{policy: turns}}}}}}
roots: {{a: {{traffic: [{{class: sand, rate: 100 /s, policy: random}}]}}}}
classes: {{sand: {{timeout: 200 ms}}}}
policies: {{random: {{kind: random}}, turns: {{kind: {kind}{breaker}}}}}
links: [{{from: us/leaf-1, to: us/server-1, path: request, loss: 100 %}}]
"""
    lost = {}
    for name, words in (
        ("none", ""),
        ("some", ", breaker: {in_a_row: 3, counts: [timed_out], out_for: 1 s}"),
    ):
        run = run_text(tmp_path / name, text.format(kind=kind, breaker=words))
        requests = run.tables["requests"]
        lost[name] = float((requests["outcome"] == "timed_out").mean())
        dead = requests["server"] == "us/server-1"
        late = dead & (requests["sent_at_s"] > 0.5)
        assert_sound(run)

    assert (
        lost["none"] > 0.3 or kind != "round_robin"
    )  # those that ask or hear of servers avoid it by themselves
    assert lost["some"] < 0.05
    assert lost["some"] <= lost["none"]
    assert 1 <= late.sum() <= 4  # trials at about 1.2 s and 3.4 s


@pytest.mark.parametrize(
    "kind", ["least_cost, view: own_counts", "prequal", "prequal, mode: sync", "linear", "c3"]
)
def test_a_server_that_joins_gets_a_share_that_grows(tmp_path, kind) -> None:
    """Less than the policy would give to it at first, about as much in the end."""
    text = """
name: joins
duration: 8 s
cells: {{us: {{servers: 4, service: {{slots: 4, exponential: 20 ms}}, leaf: {{policy: p}}}}}}
roots: {{a: {{traffic: [{{class: sand, rate: 200 /s, policy: random}}]}}}}
classes: {{sand: {{}}}}
policies: {{random: {{kind: random}}, p: {{kind: {kind}{slow}}}}}
faults: [{{at: 0 s, for: 2 s, server: us/server-1, set: {{absent: true}}}}]
"""

    def shares(run) -> tuple[float, float]:
        requests = run.tables["requests"]
        sent_s, new = requests["sent_at_s"], requests["server"] == "us/server-1"
        return tuple(float(new[(sent_s >= a) & (sent_s < a + 2)].mean()) for a in (2.0, 6.0))

    at_once = run_text(tmp_path / "at_once", text.format(kind=kind, slow=""))
    slowly = run_text(
        tmp_path / "slowly", text.format(kind=kind, slow=", slow_start: {over: 4 s, least: 1 %}")
    )

    assert shares(slowly)[0] < 0.7 * shares(at_once)[0]
    assert shares(slowly)[1] == pytest.approx(0.25, abs=0.1)
    assert slowly.tables["rotations"]["cause"].tolist() == ["slow_start"]
    assert_sound(slowly)
