"""How exactly a link keeps its delay: handled minus (sent + drawn), at several rates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from testbed.analysis.lateness import link_lateness
from testbed.benchmark.figure import Figure
from testbed.benchmark.neighbours import undisturbed
from testbed.benchmark.scenes import Ran, run, shipped

RATES = (100, 1_000, 5_000, 20_000)
QUICK_RATES = (1_000,)
AIMS_US = {1_000: (60.0, 300.0)}  # p50 and p99
RUN_S = 10.0


def errors(quick: bool) -> Iterator[Figure]:
    """p50, p99 and the largest lateness of the request link."""
    for rate in QUICK_RATES if quick else RATES:
        ran, note = undisturbed(partial(_run, rate, RUN_S / 2 if quick else RUN_S))
        aims = AIMS_US.get(rate, (float("nan"), float("nan")))
        for name, value, aim in zip(
            ("p50", "p99", "largest"), _errors_us(ran), (*aims, float("nan")), strict=True
        ):
            yield Figure(
                f"one link of 20 ms, {rate} messages/s: lateness {name}", value, "us", aim, False, note
            )


def _run(rate: int, seconds: float) -> Ran:
    scenario = shipped("injection.yaml", duration_s=seconds)
    root = next(iter(scenario.roots))
    return run(shipped("injection.yaml", [(f"roots.{root}.traffic.0.rate", f"{rate} /s")], seconds))


def _errors_us(ran: Ran) -> tuple[float, float, float]:
    links = link_lateness(ran.tables["lateness"])
    link = next(each for each in links if each.source.startswith("root.") and each.path == "request")
    return 1e6 * link.p50_s, 1e6 * link.p99_s, 1e6 * link.max_s
