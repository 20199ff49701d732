"""What balancers count as in flight, held against what they have open: for tests that run roles in this process."""

from __future__ import annotations

from typing import Any

from testbed.roles.root import Root


def assert_no_count_is_off(role: Any) -> None:
    """A balancer counts as its own what is open there and sent, and what a fault made it forget to count down."""
    still_open = sum(len(requests) for requests in role._open)
    undecided = sum(map(len, role._deciding)) if isinstance(role, Root) else len(role._deciding)
    targets = role._targets.values() if isinstance(role, Root) else role._view.targets
    counted = [target.own_in_flight for target in targets]
    said = f"{role._name}: counted {counted}, open {still_open}, undecided {undecided}, leaked {role._miscount.count}"
    assert sum(counted) == still_open - undecided + role._miscount.count, said
    assert min(counted) >= 0 or role._miscount.count < 0, said
