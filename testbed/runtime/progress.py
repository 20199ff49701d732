"""What a run tells people while it goes on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeProgress:
    """One node's gauges: requests received (or sent, at a root), finished, in flight; lateness in wall time."""

    received: int
    finished: int
    in_flight: int
    lateness_p99_s: float


@dataclass(frozen=True)
class Progress:
    """All nodes' gauges at an instant of run time."""

    at_s: float
    nodes: dict[str, NodeProgress]
