"""Which module reproduces which results, in the order of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from testbed.errors import UsageError
from testbed.verification import (
    board,
    board_oscillation,
    fluid,
    herd,
    noise,
    onset,
    pictures,
    prequal,
    queueing,
    real_herd,
    snapshot_age,
    three_by_four,
)
from testbed.verification.finding import Finding, Findings, Illustration, Illustrations


class Entry(NamedTuple):
    """The targets that one function reproduces, and what it draws of them."""

    targets: tuple[str, ...]
    findings: Findings
    illustrations: Illustrations | None = None


CATALOGUE = (
    Entry(("V1",), fluid.delayed_integrator),
    Entry(("V2",), fluid.critical_step),
    Entry(("V3",), fluid.root_count),
    Entry(("V4",), fluid.headroom_law, pictures.headroom),
    Entry(("V5",), herd.period_and_swing, pictures.herding),
    Entry(("V6",), herd.cost_of_herding),
    Entry(("V7",), herd.many_cells),
    Entry(("V8",), three_by_four.policies),
    Entry(("V9",), noise.amplification),
    Entry(("V10",), board.bulletin_board),
    Entry(("V11",), board.fresh_news),
    Entry(("V12",), prequal.nine_rules, prequal.illustrate_rules),
    Entry(("V13",), prequal.load_ramp, prequal.illustrate_ramp),
    Entry(("V14",), prequal.sensitivities, prequal.illustrate_sensitivities),
    Entry(("V15",), snapshot_age.old_snapshots, snapshot_age.illustrate),
    Entry(("V16",), board_oscillation.oscillation),
    Entry(("onset",), onset.critical_steps, onset.envelopes),
    Entry(("queueing",), queueing.laws),
    Entry(("herd",), real_herd.on("virtual")),
)
LIVE = (Entry(("herd",), real_herd.on("live")),)  # with real processes: they take the time they take


def all_findings(*, quick: bool, only: Sequence[str] = (), live: bool = False) -> Iterator[Finding]:
    """The findings of the catalogue one after another, or of some targets alone; with `live`, those of real processes.

    Raises:
        UsageError: a target in `only` stands nowhere in the catalogue.
    """
    for entry in _chosen(only, LIVE if live else CATALOGUE):
        for finding in entry.findings(quick):
            if not only or finding.target in only:
                yield finding


def all_illustrations(*, quick: bool, only: Sequence[str] = ()) -> Iterator[Illustration]:
    """The figures of the same entries.

    Raises:
        UsageError: as `all_findings`.
    """
    for entry in _chosen(only, CATALOGUE):
        if entry.illustrations is not None:
            yield from entry.illustrations(quick)


def _chosen(only: Sequence[str], catalogue: Sequence[Entry]) -> list[Entry]:
    known = list(dict.fromkeys(target for entry in catalogue for target in entry.targets))
    for target in only:
        if target not in known:
            raise UsageError(f"--only {target}: no such target; accepted: {', '.join(known)}")
    return [entry for entry in catalogue if not only or set(only) & set(entry.targets)]
