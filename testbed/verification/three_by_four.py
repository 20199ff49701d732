"""V8: three roots and four unequal cells with a network between them; every policy at three sizes of delay over sojourn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.serving.rate_curve import RateCurve
from testbed.theory.fluid import Fluid, Streams, solve
from testbed.theory.fluid_rule import CostOf, Gradient, Greedy, Periodic, Rule
from testbed.theory.operating_point import Demand, OperatingPoint, at_optimum
from testbed.theory.rate_family import hyperbolic
from testbed.theory.rule_nine import rule_nine_factor
from testbed.verification.finding import Finding, within

RATES = np.array([60.0, 40.0, 50.0])
CAPACITY = np.array([60.0, 50.0, 40.0, 50.0])
DELAY_S = np.array([[10, 60, 120, 150], [70, 10, 90, 120], [140, 100, 20, 50]]) / 1000.0
INTERVAL_S = 0.02
_ALL = np.ones(DELAY_S.shape, dtype=bool)
# N0 = C * alpha: the sojourn of a request alone; then spacing of the grid and length, such that the slowest has settled.
_SIZES = ((1.0, 0.02, 1200.0), (0.1, 0.01, 200.0), (0.01, 0.005, 100.0))
_GREEDY_S = (60.0, 20.0, 20.0)  # greedy cycles settle within seconds


def policies(quick: bool) -> Iterator[Finding]:
    """V8; the quick form leaves out the flow steps of the slower cells, which take a minute."""
    cases = (
        ("shortest queue", (1.03, 1.22, 2.49)),
        ("greedy on 1/l' + tau", (1.01, 1.15, 1.80)),
        ("flow at 1 x rule (9)", (1.00, 1.00, 1.00)),
        ("flow at 3 x rule (9)", (1.04, 1.40, 3.07)),
    )
    for name, costs in cases:
        for size, (expected, (alpha_s, _, _)) in enumerate(zip(costs, _SIZES, strict=True)):
            if quick and name.startswith("flow") and size < 2:
                continue
            yield within(
                "V8", f"{name}, N0 = C * {alpha_s:g} s: cost / optimum", "theory 2.9", "fluid",
                expected=expected, measured=cost_of(name, size), relative=0.03,
            )  # fmt: skip


def cost_of(name: str, size: int) -> float:
    """F over its optimum, in the second half of the time."""
    alpha_s, spacing_s, flow_s = _SIZES[size]
    cells = hyperbolic(CAPACITY, CAPACITY * alpha_s)
    optimum = _optimum(alpha_s)

    def marginal(seen: np.ndarray) -> np.ndarray:
        return np.asarray(cells.marginal_s(seen) + DELAY_S)

    looks = Periodic(np.full(3, INTERVAL_S), np.zeros((3, 1)), np.full((3, 1), INTERVAL_S))
    cost: CostOf = marginal
    if name.startswith("flow"):
        factor = float(name.split()[2])
        rule: Rule = Gradient(factor * _rule_nine(optimum) * np.ones(3), looks)
        duration_s = flow_s
    else:
        rule, duration_s = Greedy(looks), _GREEDY_S[size]
        cost = marginal if "tau" in name else np.asarray
    start = np.tile(CAPACITY / CAPACITY.sum(), (3, 1))
    fluid = Fluid(cells, (Streams(RATES, DELAY_S, DELAY_S, _ALL, start, cost, rule),))
    path = solve(fluid, duration_s, spacing_s=spacing_s).after(duration_s / 2)
    return float(path.in_system(RATES, DELAY_S).mean()) / optimum.in_system


def _optimum(alpha_s: float) -> OperatingPoint:
    curves = tuple(RateCurve(alpha_s, 1.0 / capacity) for capacity in CAPACITY.tolist())
    lines = tuple((f"root-{i}", 0) for i in range(3))
    return at_optimum(Demand(lines, ("a", "b", "c", "d"), np.ones(4), RATES, (curves,) * 3, DELAY_S, _ALL))


def _rule_nine(optimum: OperatingPoint) -> float:
    a_per_s = np.array([cell.a_per_s for cell in optimum.cells])
    sigma_s = np.array([cell.sigma_s for cell in optimum.cells])
    return rule_nine_factor(a_per_s, np.tile(sigma_s, (3, 1)), RATES, 2.0 * DELAY_S)
