"""Can the verdict tell a busy machine from a quiet one? The same short run beside four hogs and alone, in turn.

Beside hogs no run may be valid, and its reasons have to name the lateness or the pressure. Alone at most one in twenty
may be invalid, of those in whose records the machine itself does not show: by stolen time, by pressure of others, or by spells
of slow processors. Such a run is repeated, and every try is told. A false alarm is excused by stolen time and pressure; runs with
slow spells are a class of their own, of which it is not known whose fault an alarm is. Where no run was undisturbed, nothing is
known of false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from testbed.analysis.host import LEAST_OTHERS, MOST_PRESSURE
from testbed.benchmark.figure import Figure
from testbed.benchmark.hogs import hogs
from testbed.benchmark.neighbours import MOST_TRIES
from testbed.benchmark.scenes import Ran, run, shipped

HOGS = 4
COUNT = 20
RUN_S = 5.0
RATE_PER_S = 1_000
NAMING = ("release lateness", "injection", "server step", "generator slip", "timer lag", "stall", "pressure")
MOST_STEAL = 0.01  # of the time, in a run that is to count as undisturbed
FALSE_ALARMS = 0.05
STEAL, PRESSURE, SLOW = "stolen time", "pressure of others", "slow spells of the processors"
GAP = "-"


class Trial(NamedTuple):
    """One run.

    Attributes:
        hogs: that ran beside it.
        verdict: its word.
        named: the checks that spoke against it.
        lateness_p99_s: of the worst link.
        pressure: share of the time in which a task waited for a core; None: unknown.
        others_cores: cores in use by others than the run, hogs among them; None: unknown.
        steal: share of the time that was stolen; None: unknown.
        slow_spells: of the processors.
        slowdown: the largest; None: unknown.
    """

    hogs: int
    verdict: str
    named: tuple[str, ...]
    lateness_p99_s: float | None
    pressure: float | None
    others_cores: float | None
    steal: float | None
    slow_spells: int
    slowdown: float | None

    @property
    def is_named(self) -> bool:
        """Whether lateness or pressure speaks against it."""
        return any(check in NAMING for check in self.named)

    @property
    def disturbed_by(self) -> str:
        """What the machine did, of the kinds below; empty: nothing that it tells of."""
        if (self.steal or 0.0) > MOST_STEAL:
            return STEAL
        if (self.pressure or 0.0) > MOST_PRESSURE and (self.others_cores or 0.0) > LEAST_OTHERS:
            return PRESSURE
        return SLOW if self.slow_spells > 0 else ""


def _run(seconds: float) -> Ran:
    changes = [("roots.load.traffic.0.rate", f"{RATE_PER_S} /s")]
    return run(shipped("throughput.yaml", changes, seconds))


def trials(
    count: int, seconds: float = RUN_S, beside: int = HOGS, run_once: Callable[[float], Ran] = _run
) -> Iterator[Trial]:
    """Runs alone and beside hogs in turn, `count` of each, and one alone again, up to twice, where it was disturbed.

    Raises:
        RunError: a process died.
        InterruptError: the user stopped one of the runs.
    """
    for _ in range(count):
        for _ in range(MOST_TRIES):
            alone = _trial(0, run_once(seconds))
            yield alone
            if not alone.disturbed_by:
                break
        with hogs(beside):
            yield _trial(beside, run_once(seconds))


def trial_figures(found: Sequence[Trial]) -> list[Figure]:
    """What the trials show, against what they are to show."""
    beside = [each for each in found if each.hogs]
    alone = [each for each in found if not each.hogs]
    undisturbed = [each for each in alone if not each.disturbed_by]
    slow = [each for each in alone if each.disturbed_by == SLOW]
    of_beside = f"of {len(beside)} runs beside {HOGS} hogs"
    return [
        Figure(f"{of_beside}: valid", sum(each.verdict == "valid" for each in beside), "", 0.0, False),
        Figure(
            f"{of_beside}: neither lateness nor pressure named",
            sum(not each.is_named for each in beside),
            "",
            0.0,
            False,
        ),
        Figure(
            f"of {len(undisturbed)} undisturbed runs alone: invalid",
            _invalid(undisturbed) if undisturbed else math.nan,
            "",
            math.floor(FALSE_ALARMS * len(undisturbed)),
            False,
            _told(alone),
        ),
        Figure(f"of {len(slow)} runs alone with slow spells: invalid", _invalid(slow), ""),
        Figure(f"of {len(alone)} runs alone: invalid", _invalid(alone), ""),
    ]


def _invalid(found: Sequence[Trial]) -> int:
    return sum(each.verdict == "invalid" for each in found)


def _told(alone: Sequence[Trial]) -> str:
    """How many runs alone were disturbed by what; empty: none."""
    counts = {kind: sum(each.disturbed_by == kind for each in alone) for kind in (STEAL, PRESSURE, SLOW)}
    said = [f"{count} with {kind}" for kind, count in counts.items() if count]
    return f"of {len(alone)} runs alone: {', '.join(said)}" if said else ""


def trial_table(found: Sequence[Trial]) -> Table:
    """A line for each run."""
    table = Table(title=f"the verdict, alone and beside {HOGS} hogs", title_justify="left")
    for name in (
        "run",
        "hogs",
        "verdict",
        "lateness p99",
        "pressure",
        "others",
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
            GAP if each.others_cores is None else f"{each.others_cores:.2f} cores",
            _share(each.steal),
            str(each.slow_spells),
            GAP if each.slowdown is None else f"1/{each.slowdown:.0f}",
            ", ".join(each.named),
        )
    return table


def trial_data(found: Sequence[Trial]) -> list[dict[str, Any]]:
    """The same, for JSON."""
    return [{**each._asdict(), "disturbed_by": each.disturbed_by} for each in found]


def _trial(beside: int, ran: Ran) -> Trial:
    summary, others_cores = ran.summary, ran.others_cores
    host = summary["host"] if summary["host"]["watched"] else {}
    return Trial(
        beside,
        summary["verdict"],
        tuple(
            check for check, word in summary["checks"].items() if word in ("suspect", "invalid", "incomplete")
        ),
        summary["release_lateness_s"]["p99"],
        host.get("pressure"),
        None if math.isnan(others_cores) else others_cores,
        host.get("steal"),
        host.get("slow_spells", 0),
        host.get("slowdown"),
    )


def _share(value: float | None) -> str:
    return GAP if value is None else f"{value:.0%}"
