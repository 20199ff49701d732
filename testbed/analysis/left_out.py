"""How often balancers left a target out by themselves."""

from __future__ import annotations

from testbed.analysis.records import Table, row_count

CAUSES = ("breaker", "health")


def left_out(rotations: Table) -> dict[str, int]:
    """Times that a breaker, and that health checks left a target out, over all balancers of the run.

    Args:
        rotations: a row each time a balancer left a target out or took it in again.
    """
    if not row_count(rotations):
        return dict.fromkeys(CAUSES, 0)
    return {cause: int(((rotations["cause"] == cause) & ~rotations["inside"]).sum()) for cause in CAUSES}
