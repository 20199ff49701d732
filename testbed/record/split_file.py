"""The optimal split of an arm on file: solved before the run, read by its processes, kept with its records."""

from __future__ import annotations

import json

from testbed.record.run_folder import ArmFolder


def save_split(folder: ArmFolder, shares: dict[str, list[float]]) -> None:
    """Write the shares of each line of traffic, by its name, in the order of the cells; no file for none."""
    if shares:
        folder.optimal_split.write_text(json.dumps(shares, indent=1) + "\n")


def load_split(folder: ArmFolder) -> dict[str, list[float]]:
    """The shares that were written; none where there is no file."""
    if not folder.optimal_split.exists():
        return {}
    shares: dict[str, list[float]] = json.loads(folder.optimal_split.read_text())
    return shares
