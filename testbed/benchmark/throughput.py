"""Requests a second through root, leaf, server and back, records on, against a bare pipeline in the same minutes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from testbed.benchmark.figure import Figure
from testbed.benchmark.neighbours import undisturbed
from testbed.benchmark.pipeline import requests_per_s
from testbed.benchmark.scenes import Ran, run, shipped

RATES = (5_000, 10_000, 20_000, 40_000)
MOST_LATE_MS = 2.0  # p99 of the worst link
RUN_S, PIPELINE_S = 10.0, 4.0


def carried(quick: bool) -> Iterator[Figure]:
    """Each rate in turn, until one is not carried; the pipeline before and after each, so that both see the same host."""
    seconds = RUN_S / 2 if quick else RUN_S
    bare = [requests_per_s(PIPELINE_S)]
    best = 0
    for rate in RATES:
        ran, note = undisturbed(partial(_run, rate, seconds))
        bare.append(requests_per_s(PIPELINE_S))
        late_ms = 1e3 * ran.summary["release_lateness_s"]["p99"]
        is_carried = late_ms <= MOST_LATE_MS and not ran.summary["requests"]["lost"]
        said = "; ".join(part for part in (ran.summary["verdict"], note) if part)
        yield Figure(
            f"{rate} requests/s: lateness p99 of the worst link", late_ms, "ms", MOST_LATE_MS, False, said
        )
        yield Figure(
            f"{rate} requests/s: processor time a request",
            1e6 * ran.cpu_s / max(ran.completed, 1),
            "us",
            50.0,
            False,
        )
        if not is_carried:
            break
        best = rate
    pipeline = sum(bare) / len(bare)
    yield Figure("requests/s carried with p99 up to 2 ms on every link", best, "/s", 20_000)
    yield Figure(
        "bare pyzmq and msgpack pipeline, window 256", pipeline, "/s", how=f"{len(bare)} runs interleaved"
    )
    yield Figure("carried, of the bare pipeline", best / pipeline, "", 0.10)


def _run(rate: int, seconds: float) -> Ran:
    changes = [("roots.load.traffic.0.rate", f"{rate} /s")]
    return run(shipped("throughput.yaml", changes, seconds))
