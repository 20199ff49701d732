"""Whose memory is told, and what share of a core an idle process takes; on rows made up."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.benchmark.start_up import idle_percent, largest_mb


def processes(*rows: tuple[str, float, float]) -> dict[str, np.ndarray]:
    """The table: node, end of the row, processor time in it."""
    node, at_s, cpu_s = zip(*rows, strict=True)
    return {"node": np.array(node, dtype=object), "at_s": np.array(at_s), "cpu_s": np.array(cpu_s)}


def test_an_idle_share_is_that_of_the_time_that_the_rows_cover():
    """Rows of 1, 0.5 and 1.5 s with 1 % of a core each; start, end and other kinds do not count."""
    table = processes(
        ("c0/leaf-1", 1.0, 0.9),
        ("c0/server-1", 1.0, 0.9),
        ("c0/leaf-1", 2.0, 0.010),
        ("c0/leaf-1", 2.5, 0.005),
        ("c0/server-1", 2.0, 0.7),
        ("c0/leaf-1", 4.0, 0.015),
        ("c0/leaf-1", 4.1, 0.9),
        ("root.one", 3.0, 0.8),
    )

    assert idle_percent(table, "leaf") == pytest.approx(1.0)


def test_a_kind_is_the_mean_of_its_processes():
    rows = [
        (name, at_s, cpu_s)
        for name, cpu_s in (("root.a", 0.01), ("root.b", 0.03))
        for at_s in (1.0, 2.0, 3.0, 4.0)
    ]

    assert idle_percent(processes(*rows), "root") == pytest.approx(2.0)
    assert idle_percent(processes(*rows), "leaf") != idle_percent(processes(*rows), "leaf")  # NaN: none there


def test_memory_is_that_of_the_largest_of_each_kind_and_of_no_helper():
    sizes = [
        ("host-watcher", 30_000_000),
        ("nursery", 40_000_000),
        ("root.one", 7_000_000),
        ("c0/leaf-1", 5_000_000),
        ("c1/leaf-1", 6_000_000),
        ("c0/server-12", 4_000_000),
    ]

    assert largest_mb(sizes) == {"root": 7.0, "leaf": 6.0, "server": 4.0}
