"""The public incidents: whether each shows its fault in one arm and not in the cure, over several seeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed.verification.finding import Finding
from testbed.verification.full_length import run_at_full_length

FOLDER = Path(__file__).parents[2] / "scenarios" / "incidents"
SEEDS = (1, 2, 3, 4, 5)
MOST_MISSED = 1
QUICK = ("ties_to_the_first",)  # the shortest; the others are in the test suite, with one seed
NOTE = (
    "A seed counts where all expectations of the file hold in it, for the fault and for the cure; what they are stands"
    " in `scenarios/incidents`, what one sees in [incidents.md](incidents.md)."
)


def staged(quick: bool) -> Iterator[Finding]:
    """A finding per incident: in how many seeds all of its expectations hold."""
    paths = sorted(FOLDER.glob("*.yaml"))
    assert paths, f"no scenario in {FOLDER}: the incidents are part of the checkout"
    for path in paths:
        if not quick or path.stem in QUICK:
            yield _finding(path, SEEDS[:1] if quick else SEEDS)


def unmet(path: Path, seed: int) -> list[str]:
    """What does not hold of an incident's file in a run with this seed, with the numbers."""
    checked = run_at_full_length(path, seed).summary["expectations"]
    return [f"{each['text']}: {each['said']}" for each in checked if not each["met"]]


def _finding(path: Path, seeds: tuple[int, ...]) -> Finding:
    missed = {seed: said for seed in seeds if (said := unmet(path, seed))}
    held = len(seeds) - len(missed)
    told = "".join(f"; seed {seed}: {', '.join(said)}" for seed, said in missed.items())
    least = max(1, len(seeds) - MOST_MISSED)
    return Finding(
        "incidents",
        f"{path.stem}: fault and cure as expected",
        _reported(path),
        "virtual",
        f"{len(seeds)} of {len(seeds)} seeds",
        f"{held} of {len(seeds)} seeds{told}",
        f"at least {least}",
        held >= least,
    )


def _reported(path: Path) -> str:
    """Where the incident was reported, from the comment that opens the file."""
    comment = " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
    for opening in ("Reported in ", "Generalised from "):
        _, found, rest = comment.partition(opening)
        if found:
            return rest.partition(":")[0]
    raise AssertionError(f"{path} names no public report")
