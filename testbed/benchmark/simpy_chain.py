"""A bare chain of hops in SimPy, to compare the virtual engine with: a process a request, no roles, policy or records."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable
from typing import Any

import simpy

from testbed.benchmark.scenes import shipped
from testbed.traffic.plan import build_plan

HOPS_S = (0.010, 0.004, 0.012, 0.004, 0.010)  # root -> leaf -> server, service, and back


def requests_per_s(instants_s: Iterable[float]) -> float:
    """Requests a second of processor time, of requests that arrive at these instants."""
    instants = list(instants_s)
    env = simpy.Environment()

    def request() -> Generator[Any, Any, None]:
        for hop_s in HOPS_S:
            yield env.timeout(hop_s)

    def arrivals() -> Generator[Any, Any, None]:
        for at_s in instants:
            yield env.timeout(at_s - env.now)
            env.process(request())

    env.process(arrivals())
    began_s = time.process_time()
    env.run()
    return len(instants) / (time.process_time() - began_s)


if __name__ == "__main__":
    planned = build_plan(shipped("throughput.yaml", duration_s=float(sys.argv[1])).scaled())
    print(requests_per_s(planned.of_root(0).at_s))
