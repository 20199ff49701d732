"""What tests of laws share besides their runs."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.roles.leaf import Leaf
from testbed.roles.root import Root
from tests.laws.in_flight_counts import assert_no_count_is_off


@pytest.fixture
def counts_are_checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every root and leaf that stops, or is killed, is looked at first; the names of those that were."""
    seen: list[str] = []
    for kind in (Root, Leaf):
        stop = kind.stop

        def checked(role: Any, *, killed: bool = False, stop: Any = stop) -> None:
            assert_no_count_is_off(role)
            seen.append(role._name)
            stop(role, killed=killed)

        monkeypatch.setattr(kind, "stop", checked)
    return seen
