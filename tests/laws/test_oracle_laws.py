"""The oracle: the truth and the requests under way, against everything that has less."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.virtual_run import run_text

TEXT = """
name: oracle
duration: %(duration)s s
seed: 1
cells:
  us: {servers: 1, service: {slots: %(slots)s, exponential: %(mean)s ms}}
  eu: {servers: 1, service: {slots: %(slots)s, exponential: %(mean)s ms}}
  asia: {servers: 1, service: {slots: %(slots)s, exponential: %(mean)s ms}}
roots:
  a: {traffic: [{class: c, load: 0.4, policy: p}]}
  b: {traffic: [{class: c, load: 0.4, policy: p}]}
classes: {c: {}}
reports: {every: 20 ms}
policies: {p: %(policy)s}
links:
  - {from: root.*, to: cell.*, path: request, delay: 20 ms}
  - {from: cell.*, to: root.*, delay: 20 ms}
"""


def mean_sojourn_s(path: Any, policy: str, **words: int) -> float:
    requests = run_text(path, TEXT % {"policy": policy, **words}).tables["requests"]
    counted = requests["planned_at_s"] > 1.0
    return float((requests["replied_at_s"] - requests["planned_at_s"])[counted].mean())


@pytest.fixture(scope="module")
def oracle_s(tmp_path_factory):
    return mean_sojourn_s(tmp_path_factory.mktemp("oracle"), "{kind: oracle}", duration=10, slots=4, mean=40)


@pytest.mark.parametrize(
    "policy",
    [
        "{kind: oracle, under_way: false}",
        "{kind: random}",
        "{kind: round_robin}",
        "{kind: least_cost}",
        "{kind: two_choices}",
        "{kind: least_cost, own_counts: add}",
        "{kind: least_cost, own_counts: scaled}",
        "{kind: least_cost, view: own_counts}",
        "{kind: flow, step: 1 /s^2}",
        "{kind: jsq}",
    ],
)
def test_no_policy_has_a_shorter_mean_sojourn_than_the_oracle(tmp_path, oracle_s, policy):
    """The very same requests, equal cells, load 0.8: nobody knows more, or acts on it sooner."""
    assert mean_sojourn_s(tmp_path, policy, duration=10, slots=4, mean=40) > oracle_s


def test_fresh_truth_without_the_requests_under_way_herds_over_their_travel(tmp_path):
    """38 requests travel at once, to cells with 8 slots: what is idlest now is chosen by all, worse than by chance."""
    words = {"duration": 4, "slots": 8, "mean": 10}
    mean_s = {
        name: mean_sojourn_s(tmp_path / name, policy, **words)
        for name, policy in (
            ("oracle", "{kind: oracle}"),
            ("truth", "{kind: oracle, under_way: false}"),
            ("random", "{kind: random}"),
        )
    }

    assert mean_s["oracle"] < mean_s["random"] < mean_s["truth"]
    assert mean_s["truth"] > 1.1 * mean_s["random"]
