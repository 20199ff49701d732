"""The folder that a run leaves behind: where everything lies in it.

RUN/
  scenario.yaml        the file as the user wrote it
  manifest.json        written before the run: versions, host, seed, command line
  summary.json         written after it: schema_version, arms, expectations
  figures/             figures that compare the arms
  arms/ARM/
    scenario.yaml      the resolved scenario of the arm, defaults filled in
    optimal_split.json shares that `static_optimal` was told, where a policy is of that kind
    outcome.json       how it ended, as the engine saw it
    logs/NODE.log      framed chunks, one file a node; NODE.2.log of its second life, and so on
    host.log           the same of the machine, while the run went on; live runs alone
    stderr/NODE.txt    what the node's process said
    tables/*.parquet   the merged tables
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError


def file_name(node: str) -> str:
    """A node's name as part of a file name: `us/leaf-1` is `us_leaf-1`."""
    return node.replace("/", "_")


def life_suffix(life: int) -> str:
    """What tells the files of a later life of a node from those of its first: `.2` of the second."""
    return f".{life + 1}" if life else ""


@dataclass(frozen=True)
class ArmFolder:
    """The folder of one arm."""

    path: Path

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.path.name

    @property
    def scenario(self) -> Path:
        """The resolved scenario."""
        return self.path / "scenario.yaml"

    @property
    def outcome(self) -> Path:
        """How the run ended."""
        return self.path / "outcome.json"

    @property
    def optimal_split(self) -> Path:
        """The shares that `static_optimal` was told, where a policy is of that kind."""
        return self.path / "optimal_split.json"

    @property
    def tables(self) -> Path:
        """The folder of the merged tables."""
        return self.path / "tables"

    @property
    def logs(self) -> Path:
        """The folder of the nodes' logs."""
        return self.path / "logs"

    def log(self, node: str, life: int = 0) -> Path:
        """The log of a node; each of its lives has its own."""
        return self.logs / f"{file_name(node)}{life_suffix(life)}.log"

    @property
    def host_log(self) -> Path:
        """The log of the machine; live runs alone have it."""
        return self.path / "host.log"

    def stderr(self, node: str) -> Path:
        """What a node's process said."""
        return self.path / "stderr" / f"{file_name(node)}.txt"

    def make(self) -> None:
        """Make the folder and those below it, for this user alone."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in (self.logs, self.tables, self.path / "stderr"):
            each.mkdir(exist_ok=True)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run."""

    path: Path

    @property
    def scenario(self) -> Path:
        """The scenario file as the user wrote it."""
        return self.path / "scenario.yaml"

    @property
    def manifest(self) -> Path:
        """What was to be run, by what and where."""
        return self.path / "manifest.json"

    @property
    def summary(self) -> Path:
        """What came of it."""
        return self.path / "summary.json"

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        return self.path / "figures"

    def arm(self, name: str) -> ArmFolder:
        """The folder of one arm."""
        return ArmFolder(self.path / "arms" / name)

    def arms(self) -> list[ArmFolder]:
        """The arms that this run has, in the order of its manifest.

        Raises:
            RunError: the folder holds no readable manifest, so it is not a run.
        """
        try:
            names = json.loads(self.manifest.read_text())["arms"]
        except (OSError, ValueError, KeyError) as error:
            raise RunError(
                f"{self.path} is not a run: reading {self.manifest.name} failed: {error}"
            ) from error
        return [self.arm(name) for name in names if self.arm(name).path.is_dir()]
