"""Tiny roles for tests with real processes: a root that asks, a leaf that answers, a server that idles.

The factories below are given to the launcher by import path; each misbehaves in its own way.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from testbed.roles.build import World
from testbed.roles.environment import Environment
from testbed.roles.messages import Message, Reply, Request

MARKS = "TESTBED_TEST_MARKS"  # environment variable: folder for the marks
STILLBORN = "TESTBED_TEST_STILLBORN"  # the same: number of the fork whose child dies, from 0; see `stillborn_roles.py`
ASK_EVERY_S = 0.005
LOUD_BYTES = 1 << 20  # a pipe holds 64 KiB
LEAF, SERVER = "a/leaf-1", "a/server-1"


class Asker:
    """Asks a fixed number of times, and is idle when all answers have come."""

    def __init__(self, env: Environment, asks: int) -> None:
        self.env = env
        self.asks = asks
        self.asked = self.answered = 0

    def start(self) -> None:
        self.env.set_timer("ask", ASK_EVERY_S)

    def on_timer(self, name: str) -> None:
        self.env.send(LEAF, Request(self.asked, 0, 0, 1, 1))
        self.asked += 1
        if self.asked < self.asks:
            self.env.set_timer(name, ASK_EVERY_S * (self.asked + 1))

    def on_message(self, source: str, message: Message) -> None:
        assert source == LEAF
        self.answered += 1

    def stop(self) -> None:
        self.env.record("late_replies", (self.answered, 0, self.env.now_s()))

    def is_idle(self) -> bool:
        return self.answered == self.asks

    def gauges(self) -> tuple[int, int, int]:
        return self.asked, self.answered, self.asked - self.answered


class Answerer:
    """Answers at once; as a server, which nobody asks, it does nothing."""

    def __init__(self, env: Environment) -> None:
        self.env = env

    def start(self) -> None:
        pass

    def on_timer(self, name: str) -> None:
        pass

    def on_message(self, source: str, message: Message) -> None:
        assert isinstance(message, Request)
        self.env.send(source, Reply(message.request_id, message.attempt, 0, 0.0, 0, 0))

    def stop(self) -> None:
        pass

    def is_idle(self) -> bool:
        return True

    def gauges(self) -> tuple[int, int, int]:
        return 0, 0, 0


class Failing(Answerer):
    """Fails when it is asked."""

    def on_message(self, source: str, message: Message) -> None:
        raise RuntimeError("this leaf has a bug")


class Stuck(Answerer):
    """Never comes back from `stop`."""

    def stop(self) -> None:
        mark("stopping")
        signal.pause()


def mark(what: str) -> None:
    """Tell the test how far the run has come, through a file in the folder that it named."""
    Path(os.environ[MARKS], what).touch()


def echo(node: str, world: World, env: Environment) -> Asker | Answerer:
    """All is well."""
    asks = int(world.scenario.duration / ASK_EVERY_S) - 1
    return Asker(env, asks) if node.startswith("root.") else Answerer(env)


def loud(node: str, world: World, env: Environment) -> Asker | Answerer:
    """Every node talks a lot: as it is made, as it starts, and as it stops."""
    role = echo(node, world, env)
    start, stop = role.start, role.stop
    shout()

    def start_loudly() -> None:
        shout()
        start()

    def stop_loudly() -> None:
        shout()
        stop()

    # the very role, with two of its methods made loud: a class around it would not be what is tested
    role.start, role.stop = start_loudly, stop_loudly  # type: ignore[method-assign]
    return role


def shout() -> None:
    """Write more than a pipe holds to both outputs."""
    for number in (1, 2):
        left = b"x" * LOUD_BYTES
        while left:
            left = left[os.write(number, left) :]


def failing_leaf(node: str, world: World, env: Environment) -> Asker | Answerer:
    """The leaf fails during the run."""
    return Failing(env) if node == LEAF else echo(node, world, env)


def failing_build(node: str, world: World, env: Environment) -> Asker | Answerer:
    """The server's role cannot even be made."""
    if node == SERVER:
        raise RuntimeError("no role for this server")
    return echo(node, world, env)


def stuck_build(node: str, world: World, env: Environment) -> Asker | Answerer:
    """The server never gets done with starting."""
    if node == SERVER:
        mark("building")
        signal.pause()
    return echo(node, world, env)


def stuck_stop(node: str, world: World, env: Environment) -> Asker | Answerer:
    """The server never gets done with stopping."""
    return Stuck(env) if node == SERVER else echo(node, world, env)
