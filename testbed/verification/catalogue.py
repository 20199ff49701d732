"""Which module reproduces which results, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from testbed.errors import UsageError
from testbed.verification import (
    board,
    board_oscillation,
    fluid,
    herd,
    incidents,
    noise,
    onset,
    pictures,
    prequal,
    prequal_pictures,
    queueing,
    real_herd,
    shipped,
    snapshot_age,
    three_by_four,
)
from testbed.verification.finding import Findings, Illustrations


class Entry(NamedTuple):
    """The targets that one function reproduces, and what it draws of them.

    Attributes:
        targets: names of results.
        findings: works them out.
        illustrations: draws them, from the same runs.
        note: what a reader of the table should know about them; sentences.
    """

    targets: tuple[str, ...]
    findings: Findings
    illustrations: Illustrations | None = None
    note: str = ""


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
    Entry(("V10",), board.bulletin_board, note=board.NOTE),
    Entry(("V11",), board.fresh_news),
    Entry(("V12",), prequal.nine_rules, prequal_pictures.illustrate_rules, prequal.NOTE_OF_RULES),
    Entry(("V13",), prequal.load_ramp, prequal_pictures.illustrate_ramp, prequal.NOTE_OF_RAMP),
    Entry(
        ("V14",),
        prequal.sensitivities,
        prequal_pictures.illustrate_sensitivities,
        prequal.NOTE_OF_SENSITIVITIES,
    ),
    Entry(("V15",), snapshot_age.old_snapshots, snapshot_age.illustrate, snapshot_age.NOTE),
    Entry(("V16",), board_oscillation.oscillation),
    Entry(("onset",), onset.critical_steps, onset.envelopes),
    Entry(("queueing",), queueing.laws),
    Entry(("herd",), real_herd.on("virtual")),
    Entry(("incidents",), incidents.staged, note=incidents.NOTE),
    Entry(("shipped",), shipped.as_expected, note=shipped.NOTE),
)
LIVE = (Entry(("herd",), real_herd.on("live")),)  # with real processes: they take the time they take


def entries(live: bool = False) -> Sequence[Entry]:
    """The catalogue: in the fluid and in virtual time, or with real processes."""
    return LIVE if live else CATALOGUE


def chosen(only: Sequence[str] = (), live: bool = False) -> list[int]:
    """The places in `entries` of those that have one of these targets, or of all.

    Raises:
        UsageError: a target in `only` stands nowhere in the catalogue.
    """
    known = list(dict.fromkeys(target for entry in entries(live) for target in entry.targets))
    for target in only:
        if target not in known:
            raise UsageError(f"--only {target}: no such target; accepted: {', '.join(known)}")
    return [i for i, entry in enumerate(entries(live)) if not only or set(only) & set(entry.targets)]
