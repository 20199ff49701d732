"""How large a step of flow routing may be: a safe share of the critical step of the delayed loop.

The cells are taken at one common utilisation, total rate over total capacity, where shares that have settled would
hold them (measured by its own queue, a cell that is overfull now would stop the very moves that relieve it). There,
with alpha and beta of a server for the mix of work, k servers and busy = rate / capacity,

    W = alpha / (1 - busy),  a = (1 - busy)^2 / alpha,  sigma = 2 beta / (k (1 - busy))   (marginal cost)

and the gain K = min(a^2 / 4, 0.1 K_c), K_c the critical gain of the general loop for the work at hand. A class whose
requests weigh more than those of the mix, (alpha_c + n beta_c) / (alpha + n beta) times as much in requests in
flight, gets a step so much smaller: all classes together then make up the gain, and none its own instability.

Source: measures.md, section 5; theory.md, section 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from testbed.scenario.policy_words import Cost
from testbed.serving.delayed_loop import CellResponse, Transform, critical_gain_of_work
from testbed.serving.rate_curve import RateCurve

SAFE_SHARE = 0.1  # of the critical gain: noise tips small systems at 0.1 to 0.5 of it
MOST_BUSY = 0.95  # beyond, (1 - busy)^3 would take the step to nothing, and with it the way back


class Loop(NamedTuple):
    """One target as the loop sees it.

    Attributes:
        servers: how many equal ones.
        curve: of one server for the mix of all work, at its present speed.
        class_curve: the same for the requests of the class that the step is for.
        transform: of the work, scaled to mean 1; None: memoryless.
        loop_delay_s: T.
    """

    servers: float
    curve: RateCurve
    class_curve: RateCurve
    transform: Transform | None
    loop_delay_s: float


class Derived(NamedTuple):
    """A step and what it was derived from: the values of the target that bounds it."""

    step: float
    critical_step: float
    a_per_s: float
    sojourn_s: float
    loop_delay_s: float


def utilisation(loops: Sequence[Loop], rate_per_s: float) -> float:
    """Common utilisation of the targets at a total rate, at most MOST_BUSY."""
    return min(rate_per_s / sum(loop.servers / loop.curve.beta_s for loop in loops), MOST_BUSY)


def derive_step(loops: Sequence[Loop], rate_per_s: float, cost: Cost) -> Derived:
    """The safe step of one class at each root, if all roots take it; of the targets the one that allows least.

    Args:
        loops: the targets, at least one, each with a loop delay above 0.
        rate_per_s: of all requests of all roots that come to them, above 0.
        cost: what the step multiplies; the step is per s^2 for one in seconds, per s for one in requests.
    """
    busy = utilisation(loops, rate_per_s)
    return min((_of_target(loop, rate_per_s, busy, cost) for loop in loops), key=lambda each: each.step)


def relaxation_per_s(curve: RateCurve, busy: float) -> float:
    """a = l'(N) of a server at this utilisation: the rate at which a difference between cells fades."""
    return (1.0 - busy) ** 2 / curve.alpha_s


def cost_slope(curve: RateCurve, servers: float, busy: float, cost: Cost) -> float:
    """d cost / d in flight at this utilisation, per request, in the unit of the cost."""
    if cost == "marginal":
        return 2.0 * curve.beta_s / (servers * (1.0 - busy))
    return 1.0 if cost == "in_flight" else curve.beta_s / servers


def _of_target(loop: Loop, rate_per_s: float, busy: float, cost: Cost) -> Derived:
    a_per_s = relaxation_per_s(loop.curve, busy)
    sojourn_s = loop.curve.alpha_s / (1.0 - busy)
    in_flight = busy / loop.curve.beta_s * sojourn_s
    weight = loop.class_curve.latency_s(in_flight) / sojourn_s
    critical = critical_gain_of_work(CellResponse(a_per_s, sojourn_s, loop.transform), loop.loop_delay_s).gain
    per_step = cost_slope(loop.curve, loop.servers, busy, cost) * rate_per_s * weight
    safe = min(a_per_s**2 / 4.0, SAFE_SHARE * critical)
    return Derived(safe / per_step, critical / per_step, a_per_s, sojourn_s, loop.loop_delay_s)
