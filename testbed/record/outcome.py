"""How an arm's run ended, as the engine saw it: written beside the logs, read by the verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from testbed.links.counts import DROP_CAUSES
from testbed.record.whole_file import write_whole
from testbed.scenario.topology import Link


@dataclass(frozen=True)
class Death:
    """A process that ended without being told to: `how` is 'exit status 1' or 'signal 9'."""

    node: str
    how: str
    at_s: float
    stderr_tail: str = ""


@dataclass(frozen=True)
class LedgerLine:
    """One link at the end of a run: sent + duplicated = delivered + dropped + under way, or there is a gap.

    Attributes:
        dropped: messages that the link dropped, by cause (see `links.counts.DROP_CAUSES`).
        under_way: held by the delay line when the run ended.
    """

    source: str
    target: str
    path: str
    sent: int
    duplicated: int
    dropped: dict[str, int]
    delivered: int
    under_way: int

    @property
    def gap(self) -> int:
        """Messages that neither end can account for; 0 in a sound run."""
        return self.sent + self.duplicated - sum(self.dropped.values()) - self.delivered - self.under_way


def ledger_line(
    link: Link, sent: Sequence[int], delivered: int, under_way: int, died_with: int = 0
) -> LedgerLine:
    """The line of a link.

    Args:
        link: of the topology.
        sent: messages sent, then what `LinkCounts.take` gives of them.
        delivered: to the role at its end.
        under_way: held when the run ended.
        died_with: messages that were on their way to a process when it died.
    """
    total, *dropped, duplicated, _ = sent
    causes = dict(zip(DROP_CAUSES, dropped, strict=True))
    causes["dead"] += died_with
    return LedgerLine(link.source, link.target, link.path, total, duplicated, causes, delivered, under_way)


def carried(sent: Sequence[int]) -> int:
    """How many messages of a link are to reach its end, of counts as `ledger_line` takes them."""
    total, *dropped, duplicated, _ = sent
    return total + duplicated - sum(dropped)


SurgeWords: TypeAlias = tuple[int, float, float | None, dict[str, Any], int]


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
        notes: what else the engine has to say.
        by_hand: the faults that were ordered while the run went on, as lines of the timeline.
        surges: those of them that added requests, as the fields of `runtime.ordered.Ordered`, exact, so
            that their requests can be drawn again.
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
    notes: tuple[str, ...] = ()
    log_problems: tuple[str, ...] = ()
    by_hand: tuple[dict[str, Any], ...] = ()
    surges: tuple[SurgeWords, ...] = ()

    def save(self, path: Path) -> None:
        """Write it as JSON, the ledger a line per link.

        The encoder that indents is a hundred times slower, which counts where links are many.
        """
        words = {**vars(self), "deaths": [vars(each) for each in self.deaths], "ledger": []}
        text = json.dumps(words, indent=1) + "\n"
        if self.ledger:
            lines = ",\n  ".join(json.dumps(vars(line)) for line in self.ledger)
            text = text.replace('"ledger": []', f'"ledger": [\n  {lines}\n ]', 1)
        write_whole(path, text)


def load_outcome(path: Path) -> RunOutcome:
    """Read what `RunOutcome.save` wrote."""
    raw = json.loads(path.read_text())
    raw["deaths"] = tuple(Death(**death) for death in raw["deaths"])
    raw["ledger"] = tuple(LedgerLine(**line) for line in raw["ledger"])
    raw["notes"] = tuple(raw["notes"])
    raw["log_problems"] = tuple(raw["log_problems"])
    raw["by_hand"] = tuple(raw.get("by_hand", ()))
    raw["surges"] = tuple(tuple(each) for each in raw.get("surges", ()))
    return RunOutcome(**raw)
