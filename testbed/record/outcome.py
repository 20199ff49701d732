"""How an arm's run ended, as the engine saw it: written beside the logs, read by the verdict."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Death:
    """A process that ended without being told to: `how` is 'exit status 1' or 'signal 9'."""

    node: str
    how: str
    at_s: float
    stderr_tail: str = ""


@dataclass(frozen=True)
class LedgerLine:
    """One link at the end of a run: sent = lost + delivered + under_way, or there is a gap."""

    source: str
    target: str
    path: str
    sent: int
    lost: int
    delivered: int
    under_way: int  # held by the delay line when the run ended

    @property
    def gap(self) -> int:
        """Messages that neither end can account for; 0 in a sound run."""
        return self.sent - self.lost - self.delivered - self.under_way


@dataclass(frozen=True)
class RunOutcome:
    """How the run of one arm ended.

    Attributes:
        engine: 'live' or 'virtual'.
        dating: 'actual' or 'due': what `now_s` told the roles.
        ended_at_s: run time at which the nodes were stopped.
        drained: nothing was open any more when they were.
        interrupted: the user stopped the run early.
        deaths: processes that died unplanned.
        ledger: one line per link.
        wall_s: wall time of the run, without start-up.
        start_s: wall time from the first fork until every path was greeted (0 in virtual).
        pass_spacing_s: least spacing of passes that the live engine kept (0 in virtual).
        notes: what else the engine has to say.
        log_problems: what merging found wrong with logs, such as a missing end marker.
    """

    engine: str
    dating: str
    ended_at_s: float
    drained: bool
    interrupted: bool = False
    deaths: tuple[Death, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    wall_s: float = 0.0
    start_s: float = 0.0
    pass_spacing_s: float = 0.0
    notes: tuple[str, ...] = ()
    log_problems: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def load_outcome(path: Path) -> RunOutcome:
    """Read what `RunOutcome.save` wrote."""
    raw = json.loads(path.read_text())
    raw["deaths"] = tuple(Death(**death) for death in raw["deaths"])
    raw["ledger"] = tuple(LedgerLine(**line) for line in raw["ledger"])
    raw["notes"] = tuple(raw["notes"])
    raw["log_problems"] = tuple(raw["log_problems"])
    return RunOutcome(**raw)
