"""How exactly a link keeps its delay: handled minus (sent + drawn), at several rates."""

from __future__ import annotations

import math
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
LINKS = """
  - {from: root.*, to: cell.*, delay: 20 ms}
  - {from: cell.*, to: root.*, delay: 20 ms}
"""
TEXT = """
name: many_links
duration: {duration} s
warmup: 1 s
cells: {{{cells}}}
roots: {{load: {{traffic: [{{class: ping, rate: {rate} /s, arrivals: evenly_spaced, policy: only}}]}}}}
reports: {{every: {report_every}}}
classes: {{ping: {{timeout: 5 s}}}}
policies: {{only: {{kind: round_robin}}}}
links: {links}
processes: {{cells: {count}}}
"""


def errors(quick: bool) -> Iterator[Figure]:
    """p50, p99 and the largest lateness of the request link; and the p99 where many links share the machine."""
    yield from _one_link(quick)
    yield from _many_links(RUN_S / 2 if quick else RUN_S)


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
    link = next(_links(ran, "request"))
    return 1e6 * link.p50_s, 1e6 * link.p99_s, 1e6 * link.max_s


def _links(ran: Ran, path: str) -> Iterator[LinkLateness]:
    """The links between the root and the cells that carry this."""
    for link in link_lateness(ran.tables["lateness"]):
        if link.path == path and "root." in link.source + link.target:
            yield link


def _many_links(seconds: float) -> Iterator[Figure]:
    """As many cells, each a process, and one root: reports, which have no answer, and requests with all that they cause."""
    said = f"{MANY} links of 20 ms, {PER_LINK}"
    for path, rate, report_every, name, aim_ms in (
        ("observation", MANY, f"{1000 / PER_LINK:g} ms", f"{said} reports/s each", MOST_OF_MANY_MS),
        ("request", MANY * PER_LINK, "1 s", f"{said} requests/s each, and replies", math.nan),
    ):
        text = _many_cells(seconds, rate, report_every)
        ran, note = undisturbed(partial(run, written(text)))
        links = list(_links(ran, path))
        assert len(links) == MANY, f"{len(links)} links carried messages"
        worst_ms = 1e3 * max(link.p99_s for link in links)
        yield Figure(f"{name}: lateness p99 of the worst", worst_ms, "ms", aim_ms, False, note)


def _many_cells(seconds: float, rate: int, report_every: str) -> str:
    """A scenario in which one root deals requests in turn to the cells, at this rate a second in all."""
    cells = ", ".join(f"c{i}: {{servers: 1, service: {{slots: 1000, fixed: 1 ms}}}}" for i in range(MANY))
    return TEXT.format(
        duration=seconds, cells=cells, rate=rate, report_every=report_every, links=LINKS, count=MANY
    )
