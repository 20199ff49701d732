"""The age of the newest observation at a root over time, against what periodic reports over a link lead to.

Reports that are measured every P and arrive d later leave the newest one d + P/2 old on average; where a share p of them
is lost, the gaps between those that arrive are geometric, and it is d + P/2 * (1 + p) / (1 - p). (A saw-tooth of which
the mean is E[gap^2] / 2 E[gap].) That holds for reports that do not overtake each other, so for a jitter well below the
period.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from testbed.analysis.hops import untouched_links
from testbed.analysis.host import HostSeries
from testbed.analysis.limits import Finding
from testbed.analysis.reason import Places, reason
from testbed.analysis.records import Floats, Table, Window, row_count
from testbed.links.delay import delay_quantile, mean_delay_s
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Effect, Topology, reports_of

LEAST_REPORTS = 20
MOST_LOSS = 0.2  # beyond it, gaps vary too much for a run to tell
TOLERANCE = 0.1
ERRORS = 6.0  # standard errors that chance may add where reports are lost
_TAIL = 1e-3


class ObservationAge(NamedTuple):
    """Of a leaf's reports at a root, scenario seconds."""

    root: str
    leaf: str
    reports: int
    mean_s: float
    expected_s: float
    allowed_s: float  # of difference


def observation_ages(
    scenario: Scenario, topology: Topology, observations: Table, window: Window
) -> list[ObservationAge]:
    """For every root and leaf where the theory holds, and enough reports came within the window."""
    if not row_count(observations):
        return []
    expected = expected_ages(scenario, topology)
    found = []
    for root in dict.fromkeys(observations["root"].tolist()):
        of_root = observations["root"] == root
        for leaf in dict.fromkeys(observations["leaf"][of_root].tolist()):
            if (root, leaf) not in expected:
                continue
            mine = of_root & (observations["leaf"] == leaf)
            gaps, mean_s = _mean_age_s(
                observations["measured_at_s"][mine], observations["received_at_s"][mine], window
            )
            if gaps >= LEAST_REPORTS:
                due_s, spread_s = expected[root, leaf]
                allowed_s = TOLERANCE * due_s + ERRORS * spread_s / gaps**0.5
                found.append(ObservationAge(root, leaf, gaps, mean_s, due_s, allowed_s))
    return found


def worst_age(ages: list[ObservationAge]) -> ObservationAge | None:
    """The one furthest from what is expected."""
    return max(ages, key=lambda each: abs(each.mean_s - each.expected_s) / each.allowed_s, default=None)


def age_findings(
    ages: list[ObservationAge], host: HostSeries, limit_s: float, window: Window, places: Places
) -> Iterator[Finding]:
    """The root and leaf whose reports are furthest from what is expected, if beyond what is allowed.

    Args:
        ages: of all.
        host: what the machine did.
        limit_s: of lateness, scenario time: so much later is judged elsewhere.
        window: in which they were received.
        places: of the nodes.
    """
    worst = worst_age(ages)
    if worst is not None and abs(worst.mean_s - worst.expected_s) > worst.allowed_s + limit_s:
        yield Finding(
            "suspect",
            reason(
                "observation age",
                f"mean {format_s(worst.mean_s)} of {worst.leaf} at {worst.root}, where its period and link lead to "
                f"{format_s(worst.expected_s)}",
                process=places.process(worst.leaf, worst.root),
                when=f"from {window.from_s:.3f} to {window.to_s:.3f} s",
                advice="reports were skipped or late: try a longer period or an idle host",
                why=host.explain(window.from_s, window.to_s),
            ),
            "observation age",
        )


def expected_ages(scenario: Scenario, topology: Topology) -> dict[tuple[str, str], tuple[float, float]]:
    """(root, leaf) -> mean age, and the spread of one gap's part in it; those of which theory tells it."""
    found = {}
    for link in untouched_links(scenario, topology):
        source = topology.nodes[link.source]
        if link.path != "observation" or source.kind != "leaf":
            continue
        reports = reports_of(scenario, source.cell)
        effect = link.effect
        if reports.send != "periodic" or not effect.is_simple or effect.loss > MOST_LOSS:
            continue
        if not _is_narrow(effect, reports.every):
            continue
        half_s = reports.every / 2.0 * (1.0 + effect.loss) / (1.0 - effect.loss)
        spread_s = half_s * effect.loss**0.5 * 4.0  # of the square of a geometric gap, rounded up
        found[link.target, link.source] = (mean_delay_s(effect) + half_s, spread_s)
    return found


def _is_narrow(effect: Effect, period_s: float) -> bool:
    """Whether reports hardly ever overtake each other."""
    if effect.jitter is None:
        return True
    quantile = delay_quantile(effect)
    return quantile(1.0 - _TAIL) - quantile(_TAIL) < period_s


def _mean_age_s(measured_s: Floats, received_s: Floats, window: Window) -> tuple[int, float]:
    """Number of gaps between receipts within the window, and the mean age of the newest observation over them."""
    order = np.argsort(received_s, kind="stable")
    measured_s, received_s = np.maximum.accumulate(measured_s[order]), received_s[order]
    inside = window.holds(received_s)
    measured_s, received_s = measured_s[inside], received_s[inside]
    if len(received_s) < 2 or received_s[-1] <= received_s[0]:
        return 0, float("nan")
    young_s, old_s = received_s[:-1] - measured_s[:-1], received_s[1:] - measured_s[:-1]
    area = float(((old_s**2 - young_s**2) / 2.0).sum())
    return len(young_s), area / float(received_s[-1] - received_s[0])
