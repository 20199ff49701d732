"""The manifest of a run: what was to be run, by what and where; written before anything starts."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from testbed import FORM, __version__

PACKAGES = ("pyzmq", "msgpack", "numpy", "scipy", "pyarrow", "pydantic", "PyYAML", "matplotlib", "psutil")


def manifest(
    *,
    name: str,
    scenario_text: str,
    engine: str,
    seed: int,
    arms: list[str],
    overrides: list[tuple[str, str]],
) -> dict[str, Any]:
    """Everything that somebody needs to run it again years later.

    Args:
        name: of the scenario.
        scenario_text: the file as the user wrote it.
        engine: 'live' or 'virtual'.
        seed: of the run.
        arms: in the order in which they are run.
        overrides: (key path, value) from the command line.
    """
    return {
        "name": name,
        "scenario_sha256": scenario_hash(scenario_text),
        "engine": engine,
        "seed": seed,
        "arms": arms,
        "overrides": [list(each) for each in overrides],
        "command": sys.argv,
        **surroundings(),
    }


def surroundings() -> dict[str, Any]:
    """When, by which code, on which machine and with which packages something is run."""
    return {
        # the one place for the wall clock: when a person started it
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "testbed": __version__,
        "modules": "compiled" if FORM == "compiled" else "interpreted",
        "python": platform.python_version(),
        "packages": {package: metadata.version(package) for package in PACKAGES},
        "host": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "processors": psutil.cpu_count(),
            "usable_processors": len(psutil.Process().cpu_affinity() or []),
            "memory_bytes": psutil.virtual_memory().total,
        },
    }


def scenario_hash(scenario_text: str) -> str:
    """SHA-256 of a scenario's text, in hexadecimal."""
    return hashlib.sha256(scenario_text.encode()).hexdigest()


def save_manifest(path: Path, words: dict[str, Any]) -> None:
    """Write it as JSON."""
    path.write_text(json.dumps(words, indent=1) + "\n")
