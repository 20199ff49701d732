"""No request is forgotten when retries, hedging, checks, slow start and scaling meet whatever is killed or stopped."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.laws.test_node_faults import assert_books_balance, words
from tests.laws.test_random_node_faults import fault_lines
from tests.laws.test_resilience_laws import maybe, words_of_hedging, words_of_retries
from tests.laws.virtual_run import run_words

TIMELINES = int(os.environ.get("TIMELINES", "15"))  # 200 before a release
CHECKS = {"every": "100 ms", "unhealthy_after": 2, "healthy_after": 1}
SCALER = {"in_flight": 1.0, "every": "50 ms", "reaction": "50 ms", "start_up": "100 ms"}
GUARDS = {
    "breaker": {"in_a_row": 2, "out_for": "100 ms"},
    "slow_start": {"over": "200 ms"},
}


@st.composite
def guarded(draw: st.DrawFn) -> dict[str, Any]:
    """Two cells of two servers with some of all that there is against failure, and a timeline of faults."""
    lines = draw(st.lists(fault_lines(), min_size=1, max_size=4))
    policy = draw(st.sampled_from(["idlest", "reported", "even", "prequal", "jiq"]))
    found = words(*lines, leaf=policy, duration="1 s", drain="2 s", seed=draw(st.integers(0, 1000)))
    for name in list(found["cells"]):
        count = draw(st.integers(1, 2))
        leaf = {"policy": policy, "count": count, **draw(st.sampled_from(({}, {"health_checks": CHECKS})))}
        leaf |= maybe(draw, "retries", words_of_retries()) | maybe(draw, "hedging", words_of_hedging())
        scaler = draw(st.sampled_from(({}, {"autoscaler": SCALER}))) if count == 1 else {}
        found["cells"][name] = {**found["cells"][name], "leaf": leaf, **scaler}
    for root in found["roots"].values():
        root |= draw(st.sampled_from(({}, {"health_checks": CHECKS})))
    again = maybe(draw, "retries", words_of_retries()) | maybe(draw, "hedging", words_of_hedging())
    found["classes"]["c"] = {"timeout": "500 ms", "cancel": draw(st.booleans()), **again}
    for each in ("even", "idlest", "reported"):
        found["policies"][each] |= draw(st.sampled_from(({}, GUARDS)))
    return found


quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(given_words=guarded())
@settings(max_examples=TIMELINES, deadline=None, derandomize=True, database=None, suppress_health_check=quiet)
def test_requests_are_conserved_under_random_faults_whatever_guards_against_them(
    tmp_path_factory: pytest.TempPathFactory, counts_are_checked: list[str], given_words: dict[str, Any]
) -> None:
    counts_are_checked.clear()

    run = run_words(tmp_path_factory.mktemp("run"), given_words)

    assert run.outcome.drained or any("pause" in line["set"] for line in given_words["faults"])
    assert_books_balance(run)
    assert {"root.west", "root.east", "a/leaf-1", "b/leaf-1"} <= set(counts_are_checked)
    attempts = run.tables["attempts"]
    completed = attempts["request_id"][
        (attempts["outcome"] == "completed") & (attempts["leaf_outcome"] == "completed")
    ]
    assert len(np.unique(completed)) == len(completed)  # one answer each
