from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from testbed.errors import PolicyError
from testbed.routing.oracle import Truth
from testbed.routing.policy import (
    POLICIES,
    Policy,
    build_policy,
    load_policy_class,
    policy_hooks,
)
from testbed.routing.view import View
from testbed.scenario.policy_words import POLICY_KINDS
from testbed.scenario.policy_words import Policy as PolicyWords
from tests.routing.beliefs import request, view_of
from tests.routing.least_words import LEAST_WORDS

USER_MODULE = '''
class Last:
    """The last allowed target, every `every` seconds another."""

    def __init__(self, every=1.0):
        self.tick_interval_s = every
        self.ticks = 0

    def choose(self, view, request, rng):
        return view.allowed[-1]

    def on_tick(self, view):
        self.ticks += 1


class Plain:
    def choose(self, view, request, rng):
        return view.allowed[0]


class Restless(Plain):
    def on_tick(self, view):
        pass


class Empty:
    pass


a_number = 3
'''


def idle(name: str) -> Truth:
    return Truth(in_flight=0, under_way=0, speed=1.0)


def build(words: dict[str, Any], view: View) -> Policy:
    spec: PolicyWords = TypeAdapter(PolicyWords).validate_python(words)
    return build_policy(
        spec, view, seed=1, node="root.west", report_every_s=0.5, output_mean=8.0, truth_of=idle
    )


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_policies.py").write_text(USER_MODULE)
    (tmp_path / "broken_policies.py").write_text("raise OSError('no licence')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "own_policies"


def test_every_kind_of_a_scenario_has_a_builder() -> None:
    assert set(POLICIES) == set(POLICY_KINDS)


@pytest.mark.parametrize("kind", sorted(POLICY_KINDS))
def test_every_kind_chooses_among_the_allowed_targets(kind: str) -> None:
    view = view_of([3, 2, 1, 0])
    view.allow(["a", "c", "d"])
    policy = build(LEAST_WORDS[kind], view)
    rng = random.Random(1)

    for i in range(50):
        assert policy.choose(view, request(i), rng) in (*view.allowed, None)
    view.allow([])
    assert policy.choose(view, request(), rng) is None


@pytest.mark.parametrize(
    ("words", "hooks"),
    [
        ({"kind": "random"}, set()),
        ({"kind": "least_cost"}, {"cost"}),
        ({"kind": "flow", "step": "0.1 /s^2"}, {"cost", "on_tick"}),
        ({"kind": "flow", "step": "0.1 /s^2", "update": "on_report"}, {"cost", "on_report"}),
        ({"kind": "flow", "step": "auto"}, {"cost", "on_tick", "tuning"}),
        ({"kind": "dgd", "step": "0.1 /s^2"}, {"cost", "on_tick"}),
        ({"kind": "dlb"}, {"cost", "on_tick", "tuning"}),
        ({"kind": "worst"}, {"cost"}),
        ({"kind": "load_interpretation"}, {"on_report"}),
        ({"kind": "imitation", "slope": "1 /s"}, {"cost", "on_tick"}),
        ({"kind": "least_latency"}, {"cost", "on_reply"}),
        ({"kind": "jiq"}, {"on_report"}),
        ({"kind": "prequal"}, {"probes", "on_probe_reply", "on_reply", "idle_probes"}),
        (
            {"kind": "prequal", "mode": "sync"},
            {"ask", "choose_answered", "on_probe_reply", "on_reply"},
        ),
    ],
)
def test_a_policy_has_the_hooks_that_it_needs_and_no_others(words: dict[str, Any], hooks: set[str]) -> None:
    found = policy_hooks(build(words, view_of([0, 0])))._asdict()

    interval_s = found.pop("tick_interval_s")
    assert {name for name, hook in found.items() if callable(hook)} == hooks
    assert interval_s == (0.5 if "on_tick" in hooks else math.inf)


def test_a_policy_of_ones_own_is_found_by_import_path_and_gets_its_params(user_module: str) -> None:
    view = view_of([0, 0, 0])

    policy = build({"kind": f"{user_module}:Last", "params": {"every": 2}}, view)

    assert policy.choose(view, request(), random.Random(1)) is view.targets[2]
    hooks = policy_hooks(policy)
    assert hooks.tick_interval_s == 2.0
    assert hooks.on_tick is not None
    assert hooks.on_tick(view) is None
    assert hooks.on_reply is None


ACCEPTED = (
    "; accepted: 'module:Class' with a module that can be imported from here (PYTHONPATH) "
    "and a class with choose(view, request, rng)"
)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (
            "no_such_module:Mine",
            {},
            "policy no_such_module:Mine: importing no_such_module failed: ModuleNotFoundError: "
            "No module named 'no_such_module'" + ACCEPTED,
        ),
        (
            "broken_policies:Mine",
            {},
            "policy broken_policies:Mine: importing broken_policies failed: OSError: no licence" + ACCEPTED,
        ),
        ("own_policies:Mine", {}, "policy own_policies:Mine: own_policies has no Mine" + ACCEPTED),
        (
            "own_policies:a_number",
            {},
            "policy own_policies:a_number: a_number is int, not a class" + ACCEPTED,
        ),
        ("own_policies:Empty", {}, "policy own_policies:Empty: Empty has no method choose" + ACCEPTED),
        (
            "own_policies:Last",
            {"evry": 1},
            "policy own_policies:Last: params {'evry': 1}: got an unexpected keyword argument 'evry'; "
            "accepted: params that fit Last(every=1.0)",
        ),
        (
            "own_policies:Plain",
            {"x": 1},
            "policy own_policies:Plain: params {'x': 1}: got an unexpected keyword argument 'x'; "
            "accepted: params that fit Plain()",
        ),
    ],
)
def test_a_policy_that_cannot_be_made_says_why_and_what_is_accepted(
    user_module: str, kind: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=f"^{re.escape(message)}$"):
        build({"kind": kind, "params": params}, view_of([0, 0]))


def test_a_tick_without_an_interval_is_refused(user_module: str) -> None:
    policy = load_policy_class(f"{user_module}:Restless")()

    with pytest.raises(
        PolicyError, match=r"Restless has on_tick, but its tick_interval_s is None; accepted: seconds"
    ):
        policy_hooks(policy)


class Asking:
    """A policy that asks, as far as a test lets it."""

    def choose(self, view: Any, request: Any, rng: Any) -> Any:
        return None

    def ask(self, view: Any, request: Any, rng: Any) -> Any:
        return [], 0


def test_a_policy_that_asks_has_to_choose_by_the_answers_and_to_wait_no_longer_than_it_says() -> None:
    policy: Any = Asking()
    with pytest.raises(PolicyError, match=r"^policy Asking has ask, but no choose_answered; accepted: both"):
        policy_hooks(policy)

    policy.choose_answered = lambda view, request, answers, rng: None
    policy.ask_timeout_s = math.inf
    with pytest.raises(PolicyError, match=r"has ask, but its ask_timeout_s is inf; accepted: seconds above"):
        policy_hooks(policy)

    policy.ask_timeout_s = 0.01
    assert policy_hooks(policy).ask_timeout_s == 0.01
