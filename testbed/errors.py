"""Every exception that a caller may want to catch, and the exit status of a command that it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, order=True)
class Fault:
    """One thing that is wrong with a scenario file, said so that its author can mend it at once.

    `line` counts from 1 and is 0 where no line is to blame (an override on the command line, say).
    """

    line: int
    key: str
    problem: str
    accepted: str = ""

    def text(self, file: str) -> str:
        """The fault as one line: file:line: key: problem; accepted: what."""
        place = f"{file}:{self.line}" if self.line else file
        accepted = f"; accepted: {self.accepted}" if self.accepted else ""
        return (
            f"{place}: {self.key}: {self.problem}{accepted}"
            if self.key
            else f"{place}: {self.problem}{accepted}"
        )


class ScenarioError(Exception):
    """The user's mistake: all faults of one scenario file, in the order of its lines."""

    exit_status: ClassVar[int] = 2

    def __init__(self, file: str, faults: list[Fault]) -> None:
        """Keep the faults sorted by line; the message has one fault a line."""
        self.file = file
        self.faults = sorted(faults)
        super().__init__("\n".join(fault.text(file) for fault in self.faults))


class UsageError(Exception):
    """The command line asks for something that does not exist or does not fit."""

    exit_status: ClassVar[int] = 2


class RunError(Exception):
    """The world's failure (a file vanished, the disk is full): says what was attempted."""

    exit_status: ClassVar[int] = 1


class PolicyError(RunError):
    """A user's own policy cannot be made, raised, or returned what no policy may; says which, where and what is accepted."""


class InterruptError(RunError):
    """The user stopped the run; what was recorded is kept and merged."""

    exit_status: ClassVar[int] = 130


TOLD = (
    ScenarioError,
    UsageError,
    RunError,
)  # to the user, in their own words; all others are faults of the program


def told(error: Exception) -> str:
    """What the user reads of one of these: the faults of a file name their place themselves."""
    return str(error) if isinstance(error, ScenarioError) else f"testbed: {error}"
