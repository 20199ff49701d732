"""Requests a second through root, leaf, server and back, records on, against a bare pipeline in the same minutes.

A rate is carried where every request was answered, every message is accounted for, the p99 of every link is at most 2 ms
and the verdict believes the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from testbed.benchmark import pipeline
from testbed.benchmark.figure import Figure
from testbed.benchmark.neighbours import undisturbed
from testbed.benchmark.scenes import Ran, run, shipped

AIM_RATE = 20_000
RATES = (5_000, 10_000, AIM_RATE)  # always measured
HIGHER_RATES = (30_000, 40_000)  # where that of the aim was carried
MOST_LATE_MS = 2.0  # p99 of the worst link
MOST_CPU_US = 50.0  # of a request, at the rate of the aim
BELIEVED = ("valid", "suspect")
RUN_S, PIPELINE_S = 10.0, 4.0


def _run(rate: int, seconds: float) -> Ran:
    changes = [("roots.load.traffic.0.rate", f"{rate} /s")]
    return run(shipped("throughput.yaml", changes, seconds))


def carried(
    quick: bool,
    run_at: Callable[[int, float], Ran] = _run,
    pipeline_per_s: Callable[[float], float] = pipeline.requests_per_s,
) -> Iterator[Figure]:
    """Each rate in turn; the pipeline before and after each, so that both see the same host."""
    seconds = RUN_S / 2 if quick else RUN_S
    bare = [pipeline_per_s(PIPELINE_S)]
    best = 0
    for rate in (*RATES, *HIGHER_RATES):
        if rate > AIM_RATE > best:
            break
        ran, note = undisturbed(partial(run_at, rate, seconds))
        bare.append(pipeline_per_s(PIPELINE_S))
        yield from _figures(rate, ran, note)
        if _is_carried(ran):
            best = rate
    bare_per_s = sum(bare) / len(bare)
    yield Figure(
        "requests/s carried: all answered, p99 up to 2 ms on every link", best, "/s", float(AIM_RATE)
    )
    yield Figure(
        "bare pyzmq and msgpack pipeline, window 256", bare_per_s, "/s", how=f"{len(bare)} runs interleaved"
    )
    yield Figure("carried, of the bare pipeline", best / bare_per_s, "", 0.10)


def _figures(rate: int, ran: Ran, note: str) -> Iterator[Figure]:
    """Of one rate, with the aims where they are stated for it."""
    late_ms, cpu_us, unanswered = MOST_LATE_MS, MOST_CPU_US, 0.0
    if rate != AIM_RATE:
        late_ms = cpu_us = unanswered = math.nan
    said = "; ".join(part for part in (ran.summary["verdict"], *_missing(ran), note) if part)
    yield Figure(
        f"{rate} requests/s: lateness p99 of the worst link", _late_ms(ran), "ms", late_ms, False, said
    )
    yield Figure(f"{rate} requests/s: not answered", ran.planned - ran.completed, "", unanswered, False)
    yield Figure(
        f"{rate} requests/s: processor time a request",
        1e6 * ran.cpu_s / max(ran.completed, 1),
        "us",
        cpu_us,
        False,
    )


def _is_carried(ran: Ran) -> bool:
    return not _missing(ran) and _late_ms(ran) <= MOST_LATE_MS and ran.summary["verdict"] in BELIEVED


def _missing(ran: Ran) -> list[str]:
    """Requests without an answer, and links whose messages are not all accounted for, in words."""
    unanswered = ran.planned - ran.completed
    gaps = sum(line.gap != 0 for line in ran.outcome.ledger)
    found = {f"not answered: {unanswered}": unanswered, f"gaps in the ledger: {gaps}": gaps}
    return [said for said, count in found.items() if count]


def _late_ms(ran: Ran) -> float:
    """NaN: no link delivered enough to tell."""
    p99_s = ran.summary["release_lateness_s"]["p99"]
    return math.nan if p99_s is None else 1e3 * p99_s
