"""The words of a reason: each names the check, what was found and in which process, the instant, and what to try.

release lateness: p99 3 ms on root.a -> us/leaf-1 (request) (900 messages), in process cells-1, largest 9 ms in the
second up to 4.0 s, limit 2 ms; try a larger time_scale, a lower rate or an idle host; the processors ran at ...
"""

from __future__ import annotations

from testbed.scenario.process_map import homes, process_map
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology

WHOLE_RUN = "over the whole run"


def reason(
    check: str, found: str, *, process: str, when: str, advice: str, limit: str = "", why: str = ""
) -> str:
    """A reason.

    Args:
        check: its name, or a longer one that begins with it.
        found: the figure, and the node or link at which it was.
        process: what `Places.process` says of that node.
        when: the instant or the stretch of time, in words; empty where nothing tells it.
        advice: what to try, as a sentence without its full stop.
        limit: that was exceeded, with its unit.
        why: what else happened then; begins with '; '.
    """
    parts = (f"{check}: {found}", process, when, f"limit {limit}" if limit else "")
    return f"{', '.join(part for part in parts if part)}; {advice}{why}"


class Places:
    """In which process each node of a run was."""

    def __init__(self, scenario: Scenario, topology: Topology) -> None:
        """Args:
        scenario: whose keys say which nodes share a process.
        topology: of the scenario.
        """
        self._homes = homes(process_map(scenario, topology))

    def process(self, *nodes: str) -> str:
        """Words for the processes of these nodes; empty where each has its own."""
        found = list(dict.fromkeys(home for node in nodes if (home := self._homes.get(node, node)) != node))
        return f"in process{'es' if len(found) > 1 else ''} {' and '.join(found)}" if found else ""
