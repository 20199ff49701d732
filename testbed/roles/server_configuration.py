"""What a server is told when it is made: its service, and whom it tells what."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.roles.changes import Changes
from testbed.roles.messages import Request
from testbed.roles.schedule import Schedule
from testbed.serving.service import ServiceModel


@dataclass(frozen=True, kw_only=True)
class ServerConfiguration:
    """All of it in run time.

    Attributes:
        service: the service model.
        samples: when to record the truth.
        reports: when to report to the leaves; None where they do not read reports.
        changes: whether there is something to report; None: always.
        first_tokens: where the service gathers the requests that have made their first token; None: nobody is told.
        leaves: the leaves to report to.
        answers_probes: leaves probe this server, so it remembers recent latencies.
        queues_when_idle: leaves keep queues of idle servers, so it reports when it becomes idle.
        fault_base: keys the draws of its faults.
    """

    service: ServiceModel
    samples: Schedule
    reports: Schedule | None
    changes: Changes | None = None
    first_tokens: list[Request] | None = None
    leaves: list[str]
    answers_probes: bool
    queues_when_idle: bool = False
    fault_base: int = 0
