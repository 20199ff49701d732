"""How exactly a link keeps its delay: handled minus (sent + drawn), at several rates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from testbed.analysis.lateness import LinkLateness, link_lateness
from testbed.benchmark.figure import Figure
from testbed.benchmark.neighbours import undisturbed
from testbed.benchmark.scenes import Ran, run, shipped, written

RATES = (100, 1_000, 5_000, 20_000)
QUICK_RATES = (1_000,)
AIMS_US = {1_000: (60.0, 300.0)}  # p50 and p99
RUN_S = 10.0
MANY, PER_LINK = 20, 500
MOST_OF_MANY_MS = 1.5  # p99 of the latest link
TEXT = """
name: many_links
duration: {duration} s
warmup: 1 s
cells: {{{cells}}}
roots: {{load: {{traffic: [{{class: ping, rate: {rate} /s, arrivals: evenly_spaced, policy: only}}]}}}}
reports: {{every: 1 s}}
classes: {{ping: {{timeout: 5 s}}}}
policies: {{only: {{kind: round_robin}}}}
links:
  - {{from: root.*, to: cell.*, path: request, delay: 20 ms}}
  - {{from: cell.*, to: root.*, path: reply,   delay: 20 ms}}
processes: {{cells: {links}}}
"""


def errors(quick: bool) -> Iterator[Figure]:
    """p50, p99 and the largest lateness of the request link; and the p99 where many links share the machine."""
    yield from _one_link(quick)
    yield _many_links(RUN_S / 2 if quick else RUN_S)


def _one_link(quick: bool) -> Iterator[Figure]:
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
    link = next(_request_links(ran))
    return 1e6 * link.p50_s, 1e6 * link.p99_s, 1e6 * link.max_s


def _request_links(ran: Ran) -> Iterator[LinkLateness]:
    links = link_lateness(ran.tables["lateness"])
    return (each for each in links if each.source.startswith("root.") and each.path == "request")


def _many_links(seconds: float) -> Figure:
    """One root in turn to as many cells, each a process: as many links, all with the same messages a second."""
    cells = ", ".join(f"c{i}: {{servers: 1, service: {{slots: 1000, fixed: 1 ms}}}}" for i in range(MANY))
    text = TEXT.format(duration=seconds, cells=cells, rate=MANY * PER_LINK, links=MANY)
    ran, note = undisturbed(lambda: run(written(text)))
    worst_ms = 1e3 * max(link.p99_s for link in _request_links(ran))
    name = f"{MANY} links of 20 ms, {PER_LINK} messages/s each: lateness p99 of the worst"
    return Figure(name, worst_ms, "ms", MOST_OF_MANY_MS, False, note)
