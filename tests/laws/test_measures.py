"""Measures have the sign that they must have where the answer is known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.analysis.summary import summarize_arm
from tests.laws.virtual_run import run_words


def words(policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Three roots and three unequal cells whose reports come 300 ms late."""
    return {
        "name": "measures",
        "duration": "12 s",
        "warmup": "2 s",
        "cells": {
            name: {"servers": servers, "service": {"rate_curve": {"capacity": "100 /s", "half": 10}}}
            for name, servers in (("us", 4), ("eu", 3), ("asia", 2))
        },
        "roots": {root: {"traffic": [{"class": "sand", "rate": "180 /s", "policy": "it"}]} for root in "wns"},
        "classes": {"sand": {}},
        "policies": {"it": policy},
        "records": {"decisions": "10 %"},
        "links": [
            {"from": "root.*", "to": "cell.*", "delay": "5 ms"},
            {"from": "cell.*", "to": "root.*", "delay": "5 ms"},
            {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "300 ms"},
        ],
        **changes,
    }


def summary_of(folder: Path, words: dict[str, Any]) -> dict[str, Any]:
    run = run_words(folder, words)
    return summarize_arm(run.scenario, run.tables, run.outcome)


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return summary_of(tmp_path_factory.mktemp("greedy"), words({"kind": "least_cost"}))


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return summary_of(tmp_path_factory.mktemp("random"), words({"kind": "random"}))


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return summary_of(tmp_path_factory.mktemp("static"), words({"kind": "weighted"}))


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return summary_of(tmp_path_factory.mktemp("flow"), words({"kind": "flow", "step": "0.2 /s^2"}))


def test_greedy_roots_move_together(greedy: dict[str, Any]) -> None:
    assert greedy["synchrony"]["correlation"] > 0.8
    assert greedy["synchrony"]["above_chance"]


def test_roots_that_choose_at_random_move_together_by_chance_only(random: dict[str, Any]) -> None:
    assert not random["synchrony"]["above_chance"]
    assert abs(random["synchrony"]["correlation"]) < 0.1


def test_a_static_split_moves_nothing(static: dict[str, Any]) -> None:
    assert static["migration_per_minute"] == 0.0
    assert static["bounces_per_minute"] == 0.0


def test_the_herd_is_seen_in_every_measure_of_movement(greedy: dict[str, Any], flow: dict[str, Any]) -> None:
    assert greedy["herd"]["size"] > 2 * flow["herd"]["size"]
    assert (
        greedy["bounces_per_minute"] > flow["bounces_per_minute"]
    )  # few: the herd goes round, not to and fro
    assert greedy["migration_per_minute"] > 10 * flow["migration_per_minute"] > 0.0
    assert greedy["deviation"]["dev_x"] > 3 * flow["deviation"]["dev_x"]
    assert greedy["deviation"]["dev_F"] > flow["deviation"]["dev_F"]
    assert greedy["imbalance"]["requests"] > flow["imbalance"]["requests"]


def test_shares_deviate_by_less_than_the_bound(flow: dict[str, Any]) -> None:
    """The bound is a conjecture here, since costs follow requests in flight, and an ample one."""
    assert flow["deviation"]["bound_is"] == "conjecture"
    assert 0.0 <= flow["deviation"]["dev_F_shares"] < flow["deviation"]["bound"]


def test_discrete_policies_have_no_bound(greedy: dict[str, Any]) -> None:
    assert greedy["deviation"]["bound"] is None


def test_old_news_is_what_a_herd_regrets(greedy: dict[str, Any], random: dict[str, Any]) -> None:
    assert greedy["regret_s"]["staleness"] > 0.5 * greedy["regret_s"]["total"] > 0.0
    assert random["regret_s"]["staleness"] == 0.0
    assert random["regret_s"]["rule"] > 0.0


def test_a_fresh_view_leaves_little_to_staleness(tmp_path: Path, greedy: dict[str, Any]) -> None:
    prompt = words({"kind": "least_cost"}, reports={"every": "1 ms"}, duration="4 s")
    prompt["links"][2]["delay"] = "0 s"

    fresh = summary_of(tmp_path, prompt)

    assert abs(fresh["regret_s"]["staleness"]) < 0.05 * greedy["regret_s"]["staleness"]
    assert fresh["wrong_choice_fraction"] < 0.5 * greedy["wrong_choice_fraction"]


def test_skewed_work_is_less_even_than_the_counts(tmp_path: Path) -> None:
    """Two cells with a root each, alike in requests per second; one root's requests are eight times as long."""
    profile = "llama3-8b_a100_tp1_composed"
    tokens = {"sand": 8, "boulders": 64}
    skewed = words(
        {"kind": "random"},
        cells={name: {"servers": 1, "profile": profile} for name in ("a", "b")},
        roots={
            "west": {"traffic": [{"class": "sand", "rate": "40 /s", "policy": "it"}], "allowed": ["a"]},
            "east": {"traffic": [{"class": "boulders", "rate": "5 /s", "policy": "it"}], "allowed": ["b"]},
        },
        classes={name: {"prompt_tokens": 48, "output_tokens": count} for name, count in tokens.items()},
    )

    found = summary_of(tmp_path, skewed)

    assert found["imbalance"]["work"] > found["imbalance"]["requests"] + 0.2


def test_the_split_of_a_class_adds_up_to_its_mean_sojourn(greedy: dict[str, Any]) -> None:
    sand = greedy["classes"]["sand"]

    assert sum(sand["split_s"].values()) == pytest.approx(sand["sojourn_s"]["mean"], rel=1e-9)
    assert greedy["requests"]["attempts"] == greedy["requests"]["planned"]
