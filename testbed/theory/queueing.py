"""Closed forms of queueing theory; rates per second, times in seconds.

Source: Kleinrock, Queueing Systems, vol. 1 (1975), chapters 3 and 5, and vol. 2 (1976), section 4.4.
"""

from __future__ import annotations

import math


def erlang_c(servers: int, offered_load: float) -> float:
    """Probability that an arrival has to wait in an M/M/c queue.

    Args:
        servers: c, at least 1.
        offered_load: arrival rate times mean service time, below `servers`.

    Raises:
        ValueError: `offered_load` is not below `servers`, so no steady state exists.
    """
    if not offered_load < servers:
        raise ValueError(f"an offered load of {offered_load} on {servers} servers has no steady state")
    waiting = offered_load**servers / math.factorial(servers) * servers / (servers - offered_load)
    return waiting / (sum(offered_load**k / math.factorial(k) for k in range(servers)) + waiting)


def mm1_sojourn_s(rate_per_s: float, service_s: float) -> float:
    """Mean sojourn in M/M/1, and in M/G/1 with processor sharing: S / (1 - rho).

    Raises:
        ValueError: the server is asked for as much as it can do, or more.
    """
    return service_s / _left(rate_per_s * service_s)


def md1_wait_s(rate_per_s: float, service_s: float) -> float:
    """Mean wait in M/D/1, half that of M/M/1: rho S / (2 (1 - rho)).

    Raises:
        ValueError: as `mm1_sojourn_s`.
    """
    rho = rate_per_s * service_s
    return rho * service_s / (2.0 * _left(rho))


def _left(rho: float) -> float:
    if not rho < 1.0:
        raise ValueError(f"a utilisation of {rho} has no steady state")
    return 1.0 - rho
