"""Whether the emulator did everything when it was due: releases, arrivals, passes of the loops, faults; wall time.

Each finding names the process and the instant, says what the machine did then, and what to try.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from testbed.analysis.host import NEAR_S, HostSeries
from testbed.analysis.lateness import LEAST_MESSAGES, LinkLateness
from testbed.analysis.limits import Finding, Limit, exceeded, graded
from testbed.analysis.reason import Places, reason
from testbed.analysis.records import Mask, Table, Tables, quantile, row_count
from testbed.scenario.fault_plan import fault_plan
from testbed.scenario.quantity import format_s
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

MOST_NODES = 4  # named of a fault; more would not be read
SECOND_S = 1.5  # before the instant of a row that stands for a second; both ends of a link write at their own


class Punctuality:
    """What may have been late in one live run."""

    def __init__(
        self,
        scenario: Scenario,
        topology: Topology,
        host: HostSeries,
        *,
        limit: Limit,
        stall_limit: Limit,
    ) -> None:
        """Args:
        scenario: unscaled.
        topology: of the unscaled scenario.
        host: what the machine did.
        limit: of lateness.
        stall_limit: of stalls.
        """
        self._scenario, self._topology, self._host = scenario, topology, host
        self._scale = scenario.time_scale
        self._limit, self._stall_limit = limit, stall_limit
        self._limit_s, self._stall_limit_s = limit.at(self._scale), stall_limit.at(self._scale)
        self._places = Places(scenario, topology)

    def links(self, lateness: Sequence[LinkLateness], links: Table) -> Iterable[Finding]:
        """The worst link against the limit, and the worst against its own delay.

        Args:
            lateness: of each link, and of pools of those with few messages.
            links: the table of links by second.
        """
        counted = [link for link in lateness if link.messages >= LEAST_MESSAGES]
        late = [(word, link) for link in counted if (word := graded(link.p99_low_s, self._limit_s))]
        if late:
            word, worst = max(late, key=lambda each: each[1].p99_low_s)
            others = f" ({len(late) - 1} more links above half the limit)" if len(late) > 1 else ""
            when, why = self._when_latest(worst, links)
            yield Finding(
                word,
                reason(
                    "release lateness",
                    f"p99 {format_s(worst.p99_s)} on {worst.name} ({worst.messages} messages)",
                    process=self._process(worst),
                    when=when,
                    limit=f"{format_s(exceeded(word, self._limit_s))}{others}",
                    advice="try a larger time_scale, a lower rate or an idle host",
                    why=why,
                ),
                "release lateness",
                self._limit.least_scale(worst.p99_low_s, self._scale),
            )
        yield from self._later_than_delay(counted, links)

    def slips(self, requests: Table) -> Iterable[Finding]:
        """The root that was latest with its arrivals."""
        worst = max(self._slips(requests), default=None)
        if worst is not None and (word := graded(worst[0], self._limit_s)):
            slip, root, at_s = worst
            yield Finding(
                word,
                reason(
                    "generator slip",
                    f"p99 {format_s(slip)} at {root}",
                    process=self._places.process(root),
                    when=f"largest at {at_s:.3f} s",
                    limit=format_s(exceeded(word, self._limit_s)),
                    advice="try a lower rate, more roots or an idle host",
                    why=self._explain(at_s, NEAR_S),
                ),
                "generator slip",
                self._limit.least_scale(slip, self._scale),
            )

    def _slips(self, requests: Table) -> list[tuple[float, str, float]]:
        """(p99 of sent less planned, root, when it was largest) of the roots that sent enough requests."""
        slip_s = (requests["sent_at_s"] - requests["held_s"] - requests["planned_at_s"]) * self._scale
        if "attempts" in requests:  # the instants are those of the last attempt, which is late by design
            slip_s = np.where(requests["attempts"] > 1, np.nan, slip_s)
        slip_s = np.where(self._held_up(requests), np.nan, slip_s)
        found = []
        for root in dict.fromkeys(requests["root"].tolist()):
            mine = np.where(requests["root"] == root, slip_s, np.nan)
            if np.isfinite(mine).sum() >= LEAST_MESSAGES:
                at_s = float(requests["planned_at_s"][int(np.nanargmax(mine))])
                found.append((quantile(mine, 0.99), root, at_s))
        return found

    def stalls(self, processes: Table) -> Iterable[Finding]:
        """The longest pass of a loop, and the latest timer."""
        if not row_count(processes):
            return
        for column, what in (("stall_s", "stall"), ("loop_lag_s", "timer lag")):
            values = np.nan_to_num(processes[column])
            i = int(np.argmax(values))
            word = graded(float(values[i]), self._stall_limit_s)
            if word:
                when, at_s, near_s = self._instant(processes, i, column)
                yield Finding(
                    word,
                    reason(
                        what,
                        f"{format_s(float(values[i]))} at {processes['node'][i]}",
                        process="",  # which is what such a row stands for
                        when=when,
                        limit=format_s(exceeded(word, self._stall_limit_s)),
                        advice="try fewer processes, a lower rate or an idle host",
                        why=f"{_inner_pauses(processes, i)}{self._explain(at_s, near_s)}",
                    ),
                    what,
                    self._stall_limit.least_scale(float(values[i]), self._scale),
                )

    def faults(self, faults: Table, ended_s: float) -> Iterable[Finding]:
        """The fault that its nodes made or healed latest, and any that a node did not make."""
        if not row_count(faults) or "applied_at_s" not in faults:
            return
        latest: tuple[float, str, float, int] = (0.0, "", 0.0, 0)
        for planned, done, what in (
            ("planned_at_s", "applied_at_s", "set in"),
            ("heal_planned_at_s", "healed_at_s", "healed"),
        ):
            late_s = np.nan_to_num((faults[done] - faults[planned]) * self._scale)
            i = int(np.argmax(late_s))
            if late_s[i] > latest[0] and faults[planned][i] < ended_s:
                text = f"{faults['target'][i]}, {faults['parameters'][i]}, {what}"
                latest = (float(late_s[i]), text, float(faults[planned][i]), int(faults["fault"][i]))
        word = graded(latest[0], self._stall_limit_s)
        if word:
            yield Finding(
                word,
                reason(
                    "fault latency",
                    f"{format_s(latest[0])} until the last of its nodes had done it ({latest[1]})",
                    process=self._fault_nodes(latest[3]),
                    when=f"planned at {latest[2]:.3f} s",
                    limit=format_s(exceeded(word, self._stall_limit_s)),
                    advice="try an idle host",
                    why=self._explain(latest[2], latest[0] + NEAR_S),
                ),
                "fault latency",
                self._stall_limit.least_scale(latest[0], self._scale),
            )
        yield from self._unapplied(faults, ended_s)

    def unknown(
        self, lateness: Sequence[LinkLateness], tables: Tables, faults: Table, ended_s: float
    ) -> dict[str, str]:
        """Checks that this run has no data for, with `unknown`; with `not asked` those that do not apply.

        Args:
            lateness: of each link, and of pools of those with few messages.
            tables: of the run.
            faults: the table of these.
            ended_s: scenario time.
        """
        has_rows = row_count(tables.get("processes", {})) > 0
        has_data = {
            "release lateness": any(link.messages >= LEAST_MESSAGES for link in lateness),
            "generator slip": bool(self._slips(tables["requests"])),
            "stall": has_rows,
            "timer lag": has_rows,
            "fault latency": "applied_at_s" in faults,
        }
        found = {check: "unknown" for check, has in has_data.items() if not has}
        if not row_count(faults) or not bool((faults["planned_at_s"] < ended_s).any()):
            found["fault latency"] = "not asked"
        return found

    def _unapplied(self, faults: Table, ended_s: float) -> Iterable[Finding]:
        """Faults that fewer nodes acknowledged than they touch, other than those whose process was dead all the while."""
        due = faults["planned_at_s"] < ended_s - NEAR_S / self._scale
        short = due & (faults["nodes_applied"] + faults.get("nodes_missed", 0) < faults["nodes_expected"])
        if short.any():
            i = int(np.argmax(short))
            yield Finding(
                "invalid",
                reason(
                    "fault latency",
                    f"{faults['nodes_applied'][i]} of {faults['nodes_expected'][i]} nodes made the fault "
                    f"({faults['target'][i]}, {faults['parameters'][i]})",
                    process=self._fault_nodes(int(faults["fault"][i])),
                    when=f"planned at {faults['planned_at_s'][i]:.3f} s",
                    advice="see what these nodes say in the folder stderr of the arm, or try an idle host",
                ),
                "fault latency",
            )

    def _later_than_delay(self, counted: Sequence[LinkLateness], links: Table) -> Iterable[Finding]:
        scale = self._scale
        delays = {
            (link.source, link.target, link.path): link.effect.delay_s * scale
            for link in self._topology.links
        }
        beyond = [
            (link, delay_s)
            for link in counted
            if link.p99_low_s > (delay_s := max(delays.get(key, 0.0) for key in link.keys)) > 0
        ]
        if beyond:
            worst, delay_s = max(beyond, key=lambda each: each[0].p99_low_s / each[1])
            when, why = self._when_latest(worst, links)
            whose = "the largest delay among them" if worst.pool else "that link's own delay"
            yield Finding(
                "suspect",
                reason(
                    "release lateness",
                    f"p99 {format_s(worst.p99_s)} on {worst.name} exceeds {whose} of "
                    f"{format_s(delay_s)} in run time",
                    process=self._process(worst),
                    when=when,
                    advice="try a larger time_scale",
                    why=why,
                ),
                "release lateness",
                scale * worst.p99_low_s / delay_s,
            )

    def _when_latest(self, link: LinkLateness, links: Table) -> tuple[str, str]:
        """The second in which a link was latest, and what the machine did then; empty where no table tells."""
        if not row_count(links) or "lateness_s_max" not in links:
            return "", ""
        keys, ends = set(link.keys), (links[name].tolist() for name in ("source", "target", "path"))
        mine = np.fromiter(map(keys.__contains__, zip(*ends, strict=True)), bool, row_count(links))
        late_s = np.where(mine, np.nan_to_num(links["lateness_s_max"]), -1.0)
        i = int(np.argmax(late_s))
        if late_s[i] <= 0.0:
            return "", ""
        at_s, scale = float(links["at_s"][i]), self._scale
        said = f"largest {format_s(float(late_s[i]))} in the second up to {at_s:.1f} s"
        return said, self._host.explain(at_s - SECOND_S / scale, at_s + 0.5 / scale)

    def _instant(self, processes: Table, row: int, column: str) -> tuple[str, float, float]:
        """When it was, in words; the instant; how far around it to look, wall time."""
        at_s = float(processes["at_s"][row])
        began_s = float(processes["stall_at_s"][row]) if "stall_at_s" in processes else math.nan
        if column == "stall_s" and math.isfinite(began_s):
            return f"at {began_s:.3f} s", began_s, NEAR_S + float(processes["stall_s"][row])
        return f"in the second up to {at_s:.3f} s", at_s, 1.0

    def _held_up(self, requests: Table) -> Mask:
        """The requests that arrived while a fault had stopped their root: it sent them late by no fault of the host."""
        at_s = requests["planned_at_s"]
        held_up = np.zeros(len(at_s), dtype=bool)
        for fault in fault_plan(self._scenario, self._topology):
            if fault.words.pause:
                for node in fault.nodes:
                    held_up |= (requests["root"] == node) & (at_s >= fault.at_s) & (at_s < fault.until_s)
        return held_up

    def _process(self, link: LinkLateness) -> str:
        """The process that a link ends in; the name of a pool says it."""
        return "" if link.pool else self._places.process(link.target)

    def _fault_nodes(self, number: int) -> str:
        """The nodes that were to make a fault, and their processes."""
        plan = fault_plan(self._scenario, self._topology)
        if number >= len(plan):
            return ""
        nodes = sorted(plan[number].appliers(self._topology))
        more = f" and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
        process = self._places.process(*nodes[:MOST_NODES])
        return f"at {', '.join(nodes[:MOST_NODES])}{more}{' ' if process else ''}{process}"

    def _explain(self, at_s: float, near_s: float) -> str:
        near_s /= self._scale
        return self._host.explain(at_s - near_s, at_s + near_s)


def _inner_pauses(processes: Table, row: int) -> str:
    """What the process itself did in that second that takes time: writing its log, collecting garbage."""
    said = []
    for column, what in (("log_pause_s", "writing its log"), ("collector_pause_s", "collecting garbage")):
        pause_s = float(processes[column][row]) if column in processes else 0.0
        if pause_s > float(processes["stall_s"][row]) / 2.0 and pause_s > 0.0:
            said.append(f"{what} took {format_s(pause_s)} of it")
    return f"; {', '.join(said)}" if said else ""
