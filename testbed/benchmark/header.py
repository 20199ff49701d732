"""What figures of the benchmark were measured with: where, when, by which code and which packages."""

from __future__ import annotations

import subprocess
from importlib import metadata
from typing import Any

from testbed.benchmark.scenes import FOLDER
from testbed.record.manifest import surroundings

COMPARED_WITH = "simpy"  # the other side of a ratio, which a run does not need


def header() -> dict[str, Any]:
    """As a manifest has it of a run, with the commit of the checkout; null: it cannot be told."""
    found = surroundings()
    try:
        found["packages"][COMPARED_WITH] = metadata.version(COMPARED_WITH)
    except metadata.PackageNotFoundError:
        found["packages"][COMPARED_WITH] = None
    return {**found, "commit": _commit()}


def _commit() -> str | None:
    """Of the checkout, with `-dirty` behind it where a file differs from it."""
    words = [
        "git",
        "-C",
        str(FOLDER.parents[1]),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
