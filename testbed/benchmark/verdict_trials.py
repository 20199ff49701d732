"""Can the verdict tell a busy machine from a quiet one? The same short run beside four hogs and alone, in turn.

Beside hogs no run may be valid, and its reasons have to name the lateness or the pressure. Alone at most one in twenty
may be invalid, apart from those in whose records the machine itself shows: time stolen, pressure of others, spells of
slow processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from testbed.analysis.host import MOST_PRESSURE
from testbed.benchmark.figure import Figure
from testbed.benchmark.hogs import hogs
from testbed.benchmark.scenes import Ran, run, shipped

HOGS = 4
COUNT = 20
RUN_S = 5.0
RATE_PER_S = 1_000
NAMING = ("release lateness", "injection", "server step", "generator slip", "timer lag", "stall", "pressure")
MOST_STEAL = 0.01  # of the time, in a run that is to count as undisturbed
FALSE_ALARMS = 0.05
GAP = "-"


class Trial(NamedTuple):
    """One run.

    Attributes:
        hogs: that ran beside it.
        verdict: its word.
        named: the checks that spoke against it.
        lateness_p99_s: of the worst link.
        pressure: share of the time in which a task waited for a core; None: unknown.
        steal: share of the time that was stolen; None: unknown.
        slow_spells: of the processors.
        slowdown: the largest; None: unknown.
    """

    hogs: int
    verdict: str
    named: tuple[str, ...]
    lateness_p99_s: float | None
    pressure: float | None
    steal: float | None
    slow_spells: int
    slowdown: float | None

    @property
    def is_named(self) -> bool:
        """Whether lateness or pressure speaks against it."""
        return any(check in NAMING for check in self.named)

    @property
    def is_disturbed(self) -> bool:
        """Whether the machine itself shows in its records."""
        return (
            (self.pressure or 0.0) > MOST_PRESSURE or (self.steal or 0.0) > MOST_STEAL or self.slow_spells > 0
        )


def trials(count: int, seconds: float = RUN_S, beside: int = HOGS) -> Iterator[Trial]:
    """Runs alone and beside hogs in turn, `count` of each.

    Raises:
        RunError: a process died.
        InterruptError: the user stopped one of the runs.
    """
    for _ in range(count):
        yield _trial(0, seconds)
        with hogs(beside):
            yield _trial(beside, seconds)


def trial_figures(found: Sequence[Trial]) -> list[Figure]:
    """What the trials show, against what they are to show."""
    alone = [each for each in found if not each.hogs]
    beside = [each for each in found if each.hogs]
    invalid = [each for each in alone if each.verdict == "invalid"]
    undisturbed = [each for each in alone if not each.is_disturbed]
    blamed = [each for each in invalid if not each.is_disturbed]
    return [
        Figure(
            f"of {len(beside)} runs beside {HOGS} hogs: valid",
            sum(each.verdict == "valid" for each in beside),
            "",
            0.0,
            False,
        ),
        Figure(
            f"of {len(beside)} runs beside {HOGS} hogs: neither lateness nor pressure named",
            sum(not each.is_named for each in beside),
            "",
            0.0,
            False,
        ),
        Figure(
            f"of {len(alone)} runs alone: invalid, though the machine shows no steal, pressure or slow spell",
            len(blamed),
            "",
            max(1.0, FALSE_ALARMS * len(undisturbed)) if alone else 0.0,
            False,
            f"{len(undisturbed)} were undisturbed",
        ),
        Figure(f"of {len(alone)} runs alone: invalid", len(invalid), ""),
    ]


def trial_table(found: Sequence[Trial]) -> Table:
    """A line for each run."""
    table = Table(title=f"the verdict, alone and beside {HOGS} hogs", title_justify="left")
    for name in (
        "run",
        "hogs",
        "verdict",
        "lateness p99",
        "pressure",
        "steal",
        "slow spells",
        "at worst",
        "named",
    ):
        table.add_column(name, justify="left" if name in ("verdict", "named") else "right")
    for number, each in enumerate(found):
        table.add_row(
            str(number + 1),
            str(each.hogs),
            each.verdict,
            GAP if each.lateness_p99_s is None else f"{1e3 * each.lateness_p99_s:.3g} ms",
            _share(each.pressure),
            _share(each.steal),
            str(each.slow_spells),
            GAP if each.slowdown is None else f"1/{each.slowdown:.0f}",
            ", ".join(each.named),
        )
    return table


def trial_data(found: Sequence[Trial]) -> list[dict[str, Any]]:
    """The same, for JSON."""
    return [each._asdict() for each in found]


def _trial(beside: int, seconds: float, run_once: Callable[[float], Ran] | None = None) -> Trial:
    ran = (run_once or _run)(seconds)
    summary = ran.summary
    host = summary["host"] if summary["host"]["watched"] else {}
    return Trial(
        beside,
        summary["verdict"],
        tuple(
            check for check, word in summary["checks"].items() if word in ("suspect", "invalid", "incomplete")
        ),
        summary["release_lateness_s"]["p99"],
        host.get("pressure"),
        host.get("steal"),
        host.get("slow_spells", 0),
        host.get("slowdown"),
    )


def _run(seconds: float) -> Ran:
    changes = [("roots.load.traffic.0.rate", f"{RATE_PER_S} /s")]
    return run(shipped("throughput.yaml", changes, seconds))


def _share(value: float | None) -> str:
    return GAP if value is None else f"{value:.0%}"
