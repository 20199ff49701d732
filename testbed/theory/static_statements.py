"""What the theory says of where traffic should go, and of how old the news is: optimum and loop delays."""

from __future__ import annotations

import math
from collections.abc import Iterator

from testbed.scenario.quantity import format_s
from testbed.theory.feedback import acts_on_reports
from testbed.theory.ground import Ground
from testbed.theory.loop_edge import USED
from testbed.theory.statement import Statement


def optimum_statements(ground: Ground) -> Iterator[Statement]:
    """Mean latency, in flight, marginal costs and shares at the optimum."""
    wanted, optimum = ground.wanted, ground.optimum
    total = float(wanted.rates_per_s.sum())
    if not optimum.is_sustained or total <= 0.0:
        why = "no requests arrive" if total <= 0.0 else "the cells are asked for more than they can carry"
        yield Statement("optimum", "mean latency", refused_because=why)
        return
    assumes = ("mean rates, no faults, no noise", "the rate curves of the cells")
    latency_s = optimum.in_system / total
    yield Statement(
        "optimum", "mean latency", value=f"{format_s(latency_s)}; {optimum.in_system:.4g} requests in the system",
        assumes=assumes,
        figures={"mean_latency_s": latency_s, "in_system": optimum.in_system},
    )  # fmt: skip
    yield Statement(
        "optimum", "in flight", value=ground.by_cell([f"{cell.in_flight:.4g}" for cell in optimum.cells]),
        assumes=assumes,
        figures=ground.figures([cell.in_flight for cell in optimum.cells]),
    )  # fmt: skip
    marginal_s = [1.0 / cell.a_per_s for cell in optimum.cells]
    yield Statement(
        "optimum", "marginal cost dN/dr", value=ground.by_cell([format_s(each) for each in marginal_s]),
        assumes=assumes,
        figures=ground.figures(marginal_s),
    )  # fmt: skip
    several = sum(int((optimum.shares[i] > USED).sum() > 1) for i in range(len(wanted.lines))) > 1
    for i in range(len(wanted.lines)):
        shares = optimum.shares[i]
        yield Statement(
            "optimum", "shares", ground.name(i), ground.by_cell([f"{share:.3f}" for share in shares]),
            (*assumes, *(("roots may trade shares at the same cost",) if several else ())),
            figures=ground.figures(shares.tolist()),
        )  # fmt: skip


def loop_delay_statements(ground: Ground) -> Iterator[Statement]:
    """T of every line and cell, T/W and aT."""
    scenario, wanted = ground.scenario, ground.wanted
    for i in range(len(wanted.lines)):
        what, whose = "loop delay T", ground.name(i)
        if not acts_on_reports(scenario.policies[ground.policy(i)]):
            yield Statement(
                "loop delay",
                what,
                whose,
                refused_because=f"{ground.policy(i)} reads no reports: there is no loop",
            )
            continue
        delays_s = ground.loop_delays_s(i)
        allowed = wanted.allowed[i]
        words = [
            "not allowed"
            if not is_allowed
            else "no report arrives"
            if math.isinf(delay_s)
            else format_s(delay_s)
            for delay_s, is_allowed in zip(delays_s.tolist(), allowed.tolist(), strict=True)
        ]
        yield Statement(
            "loop delay", what, whose, ground.by_cell(words),
            ("travel + mean age of the report when used", "free-running timers, mean delays"),
            figures=ground.figures([d if ok and math.isfinite(d) else None for d, ok in zip(delays_s.tolist(), allowed, strict=True)]),
        )  # fmt: skip
    for loop in ground.loops:
        if math.isfinite(loop.loop_delay_s):
            ratio, relaxations = loop.loop_delay_s / loop.sojourn_s, loop.loop_delay_s * loop.a_per_s
            yield Statement(
                "loop delay", "T/W, aT", f"{loop.class_name} by {loop.policy}", f"{ratio:.3g}, {relaxations:.3g}",
                ("at the optimum, means over roots and cells by requests",),
                figures={"delay_over_sojourn": ratio, "relaxations": relaxations},
            )  # fmt: skip
