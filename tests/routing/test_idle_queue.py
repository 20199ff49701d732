from __future__ import annotations

import random

from testbed.routing.idle_queue import JoinIdleQueue
from testbed.routing.view import View
from tests.routing.beliefs import report, request, view_of


def says(policy: JoinIdleQueue, view: View, name: str, in_flight: int, sequence: int = 1) -> None:
    target = view.by_name[name]
    target.on_report(name, report(in_flight, sequence=sequence), 0.0)
    policy.on_report(view, target)


def chosen(policy: JoinIdleQueue, view: View, seed: int = 1) -> str:
    target = policy.choose(view, request(), random.Random(seed))
    assert target is not None
    return target.name


def test_idle_servers_are_taken_in_the_order_of_their_reports_and_once_each() -> None:
    view = view_of([3, 3, 3, 3])
    policy = JoinIdleQueue()
    for name in "cab":
        says(policy, view, name, 0)

    assert [chosen(policy, view) for _ in range(3)] == ["c", "a", "b"]


def test_with_an_empty_queue_any_server_may_come() -> None:
    view = view_of([3, 3, 3])
    policy = JoinIdleQueue()

    assert {chosen(policy, view, seed) for seed in range(40)} == {"a", "b", "c"}


def test_a_server_that_takes_its_word_back_is_passed_over() -> None:
    view = view_of([3, 3, 3])
    policy = JoinIdleQueue()
    says(policy, view, "b", 0)
    says(policy, view, "c", 0)
    says(policy, view, "b", 1, sequence=2)

    assert chosen(policy, view) == "c"


def test_an_idle_server_that_is_not_allowed_keeps_its_place() -> None:
    view = view_of([3, 3, 3])
    policy = JoinIdleQueue()
    says(policy, view, "b", 0)
    says(policy, view, "c", 0)

    view.allow(["a", "c"])
    assert chosen(policy, view) == "c"
    view.allow(["a", "b", "c"])
    assert chosen(policy, view) == "b"
