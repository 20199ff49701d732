"""What the processes of a live run used, and how their loops kept up; wall time."""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.analysis.records import Table, codes, row_count

PAUSES = ("log_pause_s", "collector_pause_s")
KEYS = (
    "cpu_s", "memory_bytes", "loop_lag_s", "stall_s", "stall_node", "stall_at_s", *PAUSES, "would_blocks",
)  # fmt: skip


def process_figures(processes: Table) -> dict[str, Any]:
    """Over the whole run; null where nothing was counted, as under virtual time.

    Args:
        processes: a row per process and second.

    Returns:
        cpu_s: processor time of all processes; memory_bytes: sum of their largest resident sets; loop_lag_s and
        stall_s: the largest; stall_node and stall_at_s: whose it was, and when it began; log_pause_s and
        collector_pause_s: the longest; would_blocks: frames that had to wait for a full socket.
    """
    if not row_count(processes) or "would_blocks" not in processes:
        return dict.fromkeys(KEYS)
    longest = int(np.argmax(processes["stall_s"]))
    names = list(dict.fromkeys(processes["node"].tolist()))
    largest = np.zeros(len(names))
    np.maximum.at(largest, codes(processes["node"], names), processes["memory_bytes"])
    return {
        "cpu_s": float(processes["cpu_s"].sum()),
        "memory_bytes": int(largest.sum()),
        "loop_lag_s": float(processes["loop_lag_s"].max()),
        "stall_s": float(processes["stall_s"][longest]),
        "stall_node": processes["node"][longest],
        "stall_at_s": float(processes["stall_at_s"][longest]),
        **{name: float(processes[name].max()) for name in PAUSES},
        "would_blocks": int(processes["would_blocks"].sum()),
    }


def full_sockets(processes: Table) -> str:
    """A note on frames that had to wait for a full socket, and whose they were most; empty without any."""
    if not row_count(processes) or "would_blocks" not in processes:
        return ""
    names = list(dict.fromkeys(processes["node"].tolist()))
    waited = np.bincount(codes(processes["node"], names), weights=processes["would_blocks"])
    if not waited.any():
        return ""
    return f"{waited.sum():.0f} frames had to wait for a full socket, most of them at {names[int(np.argmax(waited))]}"
