"""Limits on what a leaf or a server takes in: a request beyond them is shed, that is answered at once, unserved.

Whoever sheds answers with outcome `shed`, which a leaf hands on to the root as the request's outcome; the root may send
it again. A limit looks at the requests here, not at those under way.
"""

from __future__ import annotations

from testbed.roles.cancelling import CancellingLeaf
from testbed.roles.environment import Environment
from testbed.roles.held import Waiting
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import Outcome, Request
from testbed.roles.server import Server
from testbed.roles.server_configuration import ServerConfiguration
from testbed.scenario.resilience_words import Limit


class LimitedLeaf(CancellingLeaf):
    """A leaf that takes in so many requests at a time."""

    def __init__(
        self,
        env: Environment,
        name: str,
        told: LeafConfiguration,
        *,
        cancels: list[bool],
        limit: Limit | None,
    ) -> None:
        """Args:
        env, name, told, cancels: as of a leaf that calls back.
        limit: on the cell's requests that came through this leaf; what waits is taken from the servers' replies. None: no limit.
        """
        super().__init__(env, name, told, cancels=cancels)
        self._limit = limit

    def _on_request(self, root: str, request: Request) -> None:
        if self._limit is None or not self._limit.is_reached(self._in_flight, self._queued(), self._tokens):
            super()._on_request(root, request)
            return
        now_s = self._env.now_s()
        self._arrivals += 1
        self._return_unsent(Waiting(request, root, now_s, now_s), Outcome.SHED, now_s)

    def _tokens(self) -> int:
        return sum(self._outstanding_tokens())


class LimitedServer(Server):
    """A server that takes in so many requests at a time."""

    def __init__(self, env: Environment, name: str, told: ServerConfiguration, *, limit: Limit) -> None:
        """Args:
        env, name, told: as of a server.
        limit: on the requests here.
        """
        super().__init__(env, name, told)
        self._limit = limit

    def _on_request(self, leaf: str, request: Request) -> None:
        now_s = self._env.now_s()
        if self._step_at_s <= now_s:  # what is due makes room before what arrives now asks for it
            self._advance(now_s)
            self._await_step()
        queued, in_flight = self._service.queued, self._in_flight()
        if not self._limit.is_reached(in_flight, queued, lambda: sum(self._tokens_left(now_s))):
            super()._on_request(leaf, request)
            return
        self._arrivals += 1
        self._answer_unserved(leaf, request, Outcome.SHED, 0.0, now_s)
