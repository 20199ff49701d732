"""Every kind of policy, at every tier where it can work, serves a small scenario under virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.analysis.constraints import audit
from testbed.analysis.laws import all_laws
from testbed.analysis.summary import summarize_arm
from testbed.scenario.policy_words import POLICY_KINDS
from testbed.scenario.references import ONE_TIER
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import run_words
from tests.routing.least_words import LEAST_WORDS

# The same kinds with other keys, where those change the rule.
VARIANTS: dict[str, dict[str, Any]] = {
    "two_choices on own counts": {"kind": "two_choices", "view": "own_counts"},
    "d_choices of two": {"kind": "d_choices", "choices": 2, "view": "own_counts"},
    "jsq on queues": {"kind": "jsq", "count": "queued"},
    "aggressive load_interpretation": {"kind": "load_interpretation", "fill": "aggressive"},
    "prequal in sync mode": {"kind": "prequal", "mode": "sync"},
    "prequal with idle probes": {"kind": "prequal", "probes_per_request": 0.5, "idle_probe_after": "50 ms"},
    "weighted_utilisation by chance": {"kind": "weighted_utilisation", "draw": "chance"},
    "imitation by a uniform sample": {"kind": "imitation", "slope": "2 /s", "sample": "uniform"},
}
POLICIES = LEAST_WORDS | VARIANTS


def tiers_of(policy: dict[str, Any]) -> tuple[str, ...]:
    tier = ONE_TIER.get(POLICY_KINDS[policy["kind"]])
    return ("roots", "leaves") if tier is None else (tier.tier,)


CASES = [(name, tier) for name, policy in POLICIES.items() for tier in tiers_of(policy)]


def scenario(policy: dict[str, Any], tier: str) -> dict[str, Any]:
    """Two roots, one of which may use two of three unlike cells; reports 100 ms late, some links lossy."""
    at_root, at_leaf = ("mine", "plain") if tier == "roots" else ("plain", "mine")
    leaf = {"policy": at_leaf, "count": 2}
    traffic = {"class": "chat", "rate": "60 /s", "policy": at_root}
    return {
        "name": "every_policy",
        "duration": "2 s",
        "seed": 3,
        "reports": {"every": "100 ms"},
        "cells": {
            "us": {"servers": 3, "service": {"slots": 2, "exponential": "50 ms"}, "leaf": leaf},
            "eu": {"servers": 2, "service": {"slots": 2, "exponential": "50 ms"}, "leaf": leaf},
            "asia": {"servers": 2, "service": {"slots": 1, "fixed": "30 ms"}, "leaf": leaf},
        },
        "roots": {
            "west": {"traffic": [traffic]},
            "east": {"traffic": [traffic], "allowed": ["us", "asia"]},
        },
        "classes": {"chat": {}},
        "policies": {"mine": policy, "plain": {"kind": "random"}},
        "links": [
            {"from": "root.*", "to": "cell.*", "delay": "10 ms"},
            {"from": "cell.*", "to": "root.*", "path": "observation", "delay": "100 ms", "loss": "5 %"},
        ],
    }


def tight_scenario(policy: dict[str, Any], tight: tuple[str, ...]) -> dict[str, Any]:
    """Requests of 15 tokens in the mean; some cells have room for 10, where the smaller requests alone are served."""
    roomy = {"servers": 2, "profile": "bench"}
    cells = {name: roomy | ({"kv_tokens": 10} if name in tight else {}) for name in ("us", "eu", "asia")}
    tokens = {
        "prompt_tokens": {"lognormal": {"mean": 12, "cv": 2}},
        "output_tokens": {"geometric": {"mean": 3}},
    }
    return scenario(policy, "roots") | {
        "cells": cells,
        "classes": {"chat": tokens | {"retries": {}}},
        "records": {"decisions": "100 %"},
    }


@pytest.mark.parametrize("tight", [("us",), ("us", "eu", "asia")], ids=["one", "all"])
@pytest.mark.parametrize("name", [name for name, tier in CASES if tier == "roots"])
def test_cells_without_room_for_a_mean_request_serve_what_fits(
    tmp_path: Path, name: str, tight: tuple[str, ...]
) -> None:
    """Their capacity is 0: whatever divides by it has to be defined, from the choice to the summary."""
    run = run_words(tmp_path / "main", tight_scenario(POLICIES[name], tight))
    words = summarize_arm(run.scenario, run.tables, run.outcome, ())

    assert words["requests"]["completed"] > 50
    assert json.dumps(words, allow_nan=False)


def test_costs_per_a_capacity_of_nothing_still_tell_loads_apart(tmp_path: Path) -> None:
    run = run_words(tmp_path / "main", tight_scenario({"kind": "least_cost"}, ("us", "eu", "asia")))

    costs = run.tables["decisions"]["believed_cost"]
    assert np.isfinite(costs).all()
    assert len(np.unique(costs)) > 2


@pytest.mark.parametrize(("name", "tier"), CASES, ids=[f"{name} at {tier}" for name, tier in CASES])
def test_requests_are_conserved_and_constraints_kept_whatever_the_policy(
    tmp_path: Path, name: str, tier: str
) -> None:
    run = run_words(tmp_path / "main", scenario(POLICIES[name], tier))
    requests = run.tables["requests"]
    laws = all_laws(run.scenario, build_topology(run.scenario), run.tables, run.outcome.ended_at_s)

    assert len(requests["outcome"]) > 200
    assert run.outcome.drained
    assert (requests["outcome"] == "completed").all()
    assert [line for line in run.outcome.ledger if line.gap] == []
    assert [law for law in laws if not law.holds] == []
    assert audit(run.scenario, run.tables) == {"violations": 0, "forbidden_probability_max": 0.0}
    assert set(requests["cell"][requests["root"] == "root.east"]) <= {"us", "asia"}
