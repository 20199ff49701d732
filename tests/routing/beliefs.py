"""Hand-made beliefs for the tests of policies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from testbed.roles.messages import ProbeReply, Report, Request
from testbed.routing.view import Target, View
from testbed.serving.rate_curve import RateCurve

CURVE = RateCurve(alpha_s=0.1, beta_s=0.01, n_cap=30.0)


def request(request_id: int = 0) -> Request:
    return Request(request_id, 0, 0, 48, 8)


def report(
    in_flight: int = 0,
    *,
    sequence: int = 0,
    measured_at_s: float = 0.0,
    running: int = 0,
    error_fraction: float = 0.0,
    speed: float = 1.0,
    fitted_a_s: float = math.nan,
    fitted_b_s: float = math.nan,
    arrivals: int = 0,
) -> Report:
    return Report(
        sequence,
        0,
        measured_at_s,
        in_flight - running,
        running,
        (in_flight,),
        0,
        0,
        arrivals,
        error_fraction,
        speed,
        fitted_a_s,
        fitted_b_s,
        0.0,
    )


def answer(in_flight: int, latency_s: float, probe_id: int = 0, measured_at_s: float = 0.0) -> ProbeReply:
    return ProbeReply(probe_id, 0, in_flight, latency_s, measured_at_s)


def view_of(in_flight: Sequence[int], curve: RateCurve = CURVE, servers: Sequence[int] | None = None) -> View:
    """A view of targets a, b, c, ... that have reported so many requests in flight."""
    counts = servers or [1] * len(in_flight)
    targets = [Target(name_of(i), curve, counts[i], i) for i in range(len(in_flight))]
    for target, reported in zip(targets, in_flight, strict=True):
        target.on_report(target.name, report(reported), 0.0)
    return View(targets)


def name_of(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"t{index}"
