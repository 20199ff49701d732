"""When the reports of a cell reach a root: how often, how surely, and how they lie to those of other cells.

Reports of changes alone are taken as if every look were reported: where none comes, nothing has changed by as much as
the threshold, so what is believed is as good as the last look. A report that was polled for comes if neither the
question nor the answer is lost. Polls in series that take longer than the period go on into the next ones, each of which
hurries the round on, and the next round begins with the first period after all have been asked. Jitter is left out.

Source: measures.md, section 2; the roles that report and poll.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.scenario.schema import Scenario
from testbed.scenario.topology import reports_of
from testbed.theory.path_delays import PathDelays
from testbed.theory.report_gap import Reporter


def report_loss(scenario: Scenario, delays: PathDelays, root: str, cell: str) -> float:
    """The probability that a report that is due does not come."""
    loss = delays.between(root, cell, "observation").loss
    if reports_of(scenario, cell).send != "when_polled":
        return loss
    return 1.0 - (1.0 - delays.between(root, cell, "probe").loss) * (1.0 - loss)


def report_period_s(scenario: Scenario, delays: PathDelays, root: str, cell: str) -> float:
    """Time between two reports of a leaf that are due."""
    words = reports_of(scenario, cell)
    if words.polls != "serial":
        return words.every
    return words.every * len(_round(_round_trips_s(scenario, delays, root, cell), words.every))


def reporters(scenario: Scenario, delays: PathDelays, root: str) -> list[Reporter]:
    """The leaves whose reports can reach a root, at their mean delays."""
    found = []
    leaves = sum(cell.leaf.count for cell in scenario.cells.values())
    place = 0
    for name, cell in scenario.cells.items():
        loss = report_loss(scenario, delays, root, name)
        period_s = report_period_s(scenario, delays, root, name)
        for k in range(cell.leaf.count):
            measured_at_s = _measured_at_s(scenario, delays, root, name, k, place / leaves)
            place += 1
            if loss < 1.0:
                news_s = delays.between(root, name, "observation").mean_s
                found.append(Reporter(period_s, measured_at_s + news_s, loss))
    return found


def _measured_at_s(
    scenario: Scenario, delays: PathDelays, root: str, cell: str, leaf: int, turn: float
) -> float:
    """An instant at which a leaf measures for this root; `turn` is its place among all leaves, from 0 to 1."""
    words = reports_of(scenario, cell)
    if words.send != "when_polled":
        return 0.0 if words.phase == "in_phase" else words.every * turn
    asked_at_s = 0.0
    if words.polls == "serial":
        asked = _round(_round_trips_s(scenario, delays, root, cell), words.every)
        asked_at_s = [at_s for each in asked for at_s in each][_leaves_before(scenario, cell) + leaf]
    return asked_at_s + delays.between(root, cell, "probe").mean_s


def _round(round_trips_s: Sequence[float], period_s: float) -> list[list[float]]:
    """When each reporter is asked in a round in series, by the period of the root's timer in which it is.

    The next is asked when an answer comes, and at the beginning of each further period whether it has come or not; then
    an answer to an earlier question asks nobody.
    """
    asked: list[list[float]] = [[0.0]]
    answered_at_s = round_trips_s[0]
    for trip_s in round_trips_s[1:]:
        begins_s = len(asked) * period_s
        if answered_at_s <= begins_s:
            asked[-1].append(answered_at_s)
        else:
            asked.append([begins_s])
        answered_at_s = asked[-1][-1] + trip_s
    return asked


def _asked_together(scenario: Scenario, cell: str) -> list[str]:
    """The cells that a root polls in the same rounds as this one."""
    words = reports_of(scenario, cell)
    return [each for each in scenario.cells if reports_of(scenario, each) == words]


def _leaves_before(scenario: Scenario, cell: str) -> int:
    together = _asked_together(scenario, cell)
    return sum(scenario.cells[each].leaf.count for each in together[: together.index(cell)])


def _round_trips_s(scenario: Scenario, delays: PathDelays, root: str, cell: str) -> list[float]:
    """Of a question and its answer, for each leaf that is polled together with those of a cell, in order."""
    return [
        delays.between(root, each, "probe").mean_s + delays.between(root, each, "observation").mean_s
        for each in _asked_together(scenario, cell)
        for _ in range(scenario.cells[each].leaf.count)
    ]
