"""The measurements of the benchmark, in the order of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.benchmark import decision, injection, merging, start_up, throughput, virtual_rate
from testbed.benchmark.figure import Figure, Measurement
from testbed.errors import UsageError

CATALOGUE: dict[str, Measurement] = {
    "throughput": throughput.carried,
    "injection": injection.errors,
    "start": start_up.processes,
    "virtual": virtual_rate.rates,
    "merging": merging.times,
    "decision": decision.costs,
}


def all_figures(*, quick: bool, only: Sequence[str] = ()) -> Iterator[Figure]:
    """Every figure, or those of some measurements alone.

    Raises:
        UsageError: there is no measurement of a name in `only`.
    """
    for name in only:
        if name not in CATALOGUE:
            raise UsageError(f"--only {name}: no such measurement; accepted: {', '.join(CATALOGUE)}")
    for name, measure in CATALOGUE.items():
        if not only or name in only:
            yield from measure(quick)
