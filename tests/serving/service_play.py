"""A tiny event loop around one service model, for the tests of this folder."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from testbed.roles.messages import Request
from testbed.serving.service import Served, ServiceModel


class Action(NamedTuple):
    """Something that happens to a server: exactly one of the last three is set."""

    at_s: float
    request: Request | None = None
    cancelled: tuple[int, int] | None = None
    speed: float | None = None


class Played(NamedTuple):
    """What came of it."""

    served: list[Served]
    cancelled: list[tuple[int, int]]  # those whose cancellation found them
    events: int  # calls of `advance` that the server asked for


def act(service: ServiceModel, action: Action) -> bool:
    """Do it; whether a cancellation found its request."""
    if action.request is not None:
        service.admit(action.request, action.at_s)
    elif action.cancelled is not None:
        return service.cancel(*action.cancelled, action.at_s)
    elif action.speed is not None:
        service.set_speed(action.speed, action.at_s)
    return False


def play(
    service: ServiceModel,
    actions: Sequence[Action],
    *,
    watch: Callable[[float], None] = lambda now_s: None,
    events_first: bool = True,
) -> Played:
    """Do all the actions, which are in order of time, and everything that the server asks for, to the end.

    `watch` is called after every event and action. Events at the instant of an action come before it, or with
    `events_first=False` after it.
    """
    served: list[Served] = []
    cancelled: list[tuple[int, int]] = []
    events = 0
    for action in (*actions, Action(math.inf)):
        while (due_s := service.next_event_s()) < action.at_s or (
            events_first and due_s == action.at_s < math.inf
        ):
            served += service.advance(due_s)
            events += 1
            watch(due_s)
        if action.at_s < math.inf:
            if act(service, action) and action.cancelled is not None:
                cancelled.append(action.cancelled)
            watch(action.at_s)
    return Played(served, cancelled, events)


def request(
    identity: int,
    prompt: int = 1,
    output: int = 1,
    class_index: int = 0,
    session: int = 0,
    prefix: tuple[int, ...] = (),
) -> Request:
    """A first attempt."""
    return Request(
        identity, 0, class_index, prompt, output, (session, *prefix) if session or prefix else None
    )
