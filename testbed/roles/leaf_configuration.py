"""What a leaf is told when it is made: its servers, its policy, and how it reports."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.roles.changes import Changes
from testbed.roles.latency_model import LatencyModel
from testbed.roles.poller import Polls
from testbed.roles.schedule import Schedule
from testbed.routing.policy import Hooks, Policy
from testbed.routing.view import View


@dataclass(frozen=True, kw_only=True)
class LeafConfiguration:
    """All of it in run time.

    Attributes:
        view: the servers as the policy sees them.
        policy: chooses a server.
        hooks: the policy's optional methods.
        roots: the nodes to report to.
        timeouts_s: timeout of each class, in the scenario's order.
        reports: when to report; None: when asked.
        model: where the servers' speed is learned.
        has_peers: other leaves use the same servers.
        counts_steps: work goes in steps of one token; otherwise a request is one step.
        hold_queue: requests that may wait here while no server is usable.
        changes: whether there is something to report; None: always.
        polls: how servers are asked to report; None: they do so unasked.
        decision_s: time from reading the view until a decision takes effect.
        passes_first_tokens: roots are told of first tokens too.
        fault_base: keys the draws of its faults.
        records_news: what servers tell is recorded.
    """

    view: View
    policy: Policy
    hooks: Hooks
    roots: list[str]
    timeouts_s: list[float]
    reports: Schedule | None
    model: LatencyModel
    has_peers: bool
    counts_steps: bool
    hold_queue: int = 0
    changes: Changes | None = None
    polls: Polls | None = None
    decision_s: float = 0.0
    passes_first_tokens: bool = False
    fault_base: int = 0
    records_news: bool = False
