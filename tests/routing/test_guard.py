"""A user's policy that raises or answers nonsense: one message with who, where, what, and what is accepted."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from testbed.errors import PolicyError
from testbed.roles.messages import Outcome
from testbed.routing.flow import Update
from testbed.routing.guard import Guarded
from testbed.routing.policy import policy_hooks
from testbed.routing.view import View
from tests.routing.beliefs import request, view_of

CHOICES = "; accepted: one of view.allowed (a, b), or None"


class Answering:
    """Returns what it was given, from `choose` and from whatever hook is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def choose(self, view: View, request: Any, rng: random.Random) -> Any:
        return self.answer


class Raising:
    """Raises what it was given."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def choose(self, view: View, request: Any, rng: random.Random) -> Any:
        raise self.error


def two_of_three() -> View:
    view = view_of([0, 0, 0])
    view.allow(["a", "b"])
    return view


def guarded(policy: Any) -> Guarded:
    return Guarded(policy, "mine:Mine", "root.west:0")


def test_what_is_allowed_passes() -> None:
    view = two_of_three()

    for choice in (*view.allowed, None):
        assert guarded(Answering(choice)).choose(view, request(), random.Random(1)) is choice


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("a", "'a'"),
        (0, "0"),
        ([], "[]"),
        (True, "True"),
        ("x" * 99, "'" + "x" * 56 + "..."),
        (view_of([0]).targets[0], "the target a, which is not allowed"),  # of another balancer
    ],
)
def test_a_choice_that_is_no_target_of_the_view_is_told(answer: Any, told: str) -> None:
    message = f"policy mine:Mine at root.west:0: choose returned {told}{CHOICES}"

    with pytest.raises(PolicyError, match=f"^{re.escape(message)}$"):
        guarded(Answering(answer)).choose(two_of_three(), request(), random.Random(1))


def test_a_target_that_is_not_allowed_now_is_told() -> None:
    view = two_of_three()
    message = f"policy mine:Mine at root.west:0: choose returned the target c, which is not allowed{CHOICES}"

    with pytest.raises(PolicyError, match=f"^{re.escape(message)}$"):
        guarded(Answering(view.targets[2])).choose(view, request(), random.Random(1))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError("division\nby zero"), "ZeroDivisionError: division by zero"),
        (KeyError(), "KeyError"),
        (SystemExit(0), "SystemExit: 0"),
    ],
)
def test_what_choose_raises_is_told_with_the_line_it_came_from(error: BaseException, told: str) -> None:
    message = rf"policy mine:Mine at root.west:0: choose raised {told} \(test_guard\.py:\d+\)"

    with pytest.raises(PolicyError, match=f"^{message}{re.escape(CHOICES)}$"):
        guarded(Raising(error)).choose(two_of_three(), request(), random.Random(1))


def test_ctrl_c_is_nobody_s_mistake() -> None:
    with pytest.raises(KeyboardInterrupt):
        guarded(Raising(KeyboardInterrupt())).choose(two_of_three(), request(), random.Random(1))


class Hooked(Answering):
    tick_interval_s = 1.0
    ask_timeout_s = 0.01

    def on_report(self, view: View, target: Any) -> Any:
        return self.answer

    def on_tick(self, view: View) -> Any:
        return self.answer

    def probes(self, view: View, rng: random.Random) -> Any:
        return self.answer

    def cost(self, target: Any) -> Any:
        return self.answer

    def ask(self, view: View, request: Any, rng: random.Random) -> Any:
        return self.answer

    def choose_answered(self, view: View, request: Any, answers: Any, rng: random.Random) -> Any:
        return self.answer

    def on_reply(self, target: Any, sojourn_s: float, outcome: Outcome) -> Any:
        raise ValueError(self.answer)


def test_a_policy_under_guard_has_the_hooks_it_has_and_no_others() -> None:
    hooks = policy_hooks(guarded(Answering(None)))
    assert (hooks.on_report, hooks.on_tick, hooks.cost) == (None, None, None)

    hooks = policy_hooks(guarded(Hooked(None)))
    assert hooks.on_probe_reply is None
    assert hooks.tick_interval_s == 1.0
    assert hooks.on_tick is not None
    assert hooks.on_tick(two_of_three()) is None


@pytest.mark.parametrize(
    ("hook", "right", "wrong", "accepted"),
    [
        (
            "on_report",
            Update(1.0, 1.0, [0.0] * 3, [0.0] * 3, [0.0] * 3, [False] * 3),
            3,
            "an Update, or None",
        ),
        ("on_tick", None, Update(1.0, 1.0, [], [], [], []), "an Update, or None"),
        ("probes", [], ["a"], "a list of targets of the view"),
        ("probes", (), None, "a list of targets of the view"),
        ("cost", 2.5, "dear", "a number"),
        (
            "ask",
            ([], 0),
            ([], 1),
            "a list of targets of the view and how many answers are enough, at most all",
        ),
        ("choose_answered", None, "us", "one of view.allowed, or None"),
    ],
)
def test_what_a_hook_returns_is_checked(hook: str, right: Any, wrong: Any, accepted: str) -> None:
    view = two_of_three()
    rng = random.Random(1)
    arguments: dict[str, tuple[Any, ...]] = {
        "on_report": (view, view.targets[0]),
        "on_tick": (view,),
        "probes": (view, rng),
        "ask": (view, request(), rng),
        "choose_answered": (view, request(), [], rng),
    }
    given = arguments.get(hook, (view.targets[0],))

    assert getattr(guarded(Hooked(right)), hook)(*given) == right
    shown = repr(wrong) if len(repr(wrong)) <= 60 else f"{repr(wrong)[:57]}..."
    message = f"policy mine:Mine at root.west:0: {hook} returned {shown}; accepted: {accepted}"
    with pytest.raises(PolicyError, match=f"^{re.escape(message)}$"):
        getattr(guarded(Hooked(wrong)), hook)(*given)


def test_what_a_hook_raises_is_told() -> None:
    view = two_of_three()
    on_reply = policy_hooks(guarded(Hooked("no"))).on_reply
    assert on_reply is not None

    with pytest.raises(
        PolicyError, match=r"root\.west:0: on_reply raised ValueError: no \(test_guard\.py:\d+\)"
    ):
        on_reply(view.targets[0], 0.1, Outcome.COMPLETED)


def test_an_attribute_that_bears_a_hook_s_name_is_told() -> None:
    policy = Answering(None)
    vars(policy)["cost"] = 3.0  # which its class does not declare

    with pytest.raises(
        PolicyError, match=r"its attribute cost is 3\.0; accepted: a method cost\(target\), or no"
    ):
        policy_hooks(guarded(policy))
