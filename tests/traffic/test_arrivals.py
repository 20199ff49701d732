"""Planned arrivals: counts, spacing, stages, and time that stretches to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.scenario.schema import GammaArrivals
from testbed.traffic.arrivals import Piece, draw_arrivals, even_phase, numpy_stream

KINDS = ["poisson", "evenly_spaced", GammaArrivals.model_validate({"gamma": {"cv": 3.0}})]


def stream(seed: int = 1) -> np.random.Generator:
    return numpy_stream(seed, "west", 0, "arrivals")


def test_poisson_arrivals_come_at_their_rate_and_with_their_variation() -> None:
    """1,000/s for 60 s: 60,000 +- 4 sqrt(60,000); counts per second vary as their mean; gaps have cv 1."""
    at_s = draw_arrivals("poisson", [Piece(0.0, 60.0, 1000.0)], stream())

    counts = np.histogram(at_s, bins=60, range=(0.0, 60.0))[0]
    gaps_s = np.diff(at_s)
    assert abs(len(at_s) - 60_000) < 4 * math.sqrt(60_000)
    assert counts.var(ddof=1) / counts.mean() == pytest.approx(1.0, abs=4 * math.sqrt(2 / 59))
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(1.0, abs=0.02)


def test_evenly_spaced_arrivals_are_counted_to_a_thousandth_and_begin_at_half_a_gap() -> None:
    at_s = draw_arrivals("evenly_spaced", [Piece(0.0, 60.0, 1000.0)], stream())

    assert len(at_s) == 60_000
    assert at_s[0] == 0.0005
    assert np.diff(at_s) == pytest.approx(0.001)


def test_evenly_spaced_lines_of_equal_rate_interleave_evenly() -> None:
    """Three roots of 10/s together are one stream of 30/s."""
    lines = [
        draw_arrivals("evenly_spaced", [Piece(0.0, 5.0, 10.0)], stream(), even_phase(i, 3)) for i in range(3)
    ]

    together = np.sort(np.concatenate(lines))

    assert len(together) == 150
    assert np.diff(together) == pytest.approx(1 / 30)


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_gamma_gaps_have_their_mean_and_variation(cv: float) -> None:
    gamma = GammaArrivals.model_validate({"gamma": {"cv": cv}})

    at_s = draw_arrivals(gamma, [Piece(0.0, 200.0, 1000.0)], stream())

    gaps_s = np.diff(at_s)
    assert gaps_s.mean() == pytest.approx(0.001, rel=5 * cv / math.sqrt(200_000))
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.03)


def test_bursty_arrivals_are_stationary_from_the_start() -> None:
    """Mean count over many seeds is rate * time; a process that began at an arrival would have (cv^2 - 1)/2 more."""
    gamma = GammaArrivals.model_validate({"gamma": {"cv": 3.0}})

    counts = [len(draw_arrivals(gamma, [Piece(0.0, 1.0, 20.0)], stream(seed))) for seed in range(2000)]

    assert np.mean(counts) == pytest.approx(20.0, abs=4 * float(np.std(counts)) / math.sqrt(2000))
    assert 4 * float(np.std(counts)) / math.sqrt(2000) < (3.0**2 - 1) / 2


@pytest.mark.parametrize("kind", KINDS, ids=["poisson", "evenly_spaced", "gamma"])
def test_stages_hold_their_own_rates_exactly(kind: str | GammaArrivals) -> None:
    """100/s, nothing, 400/s: the counts of each span, and not one arrival in the empty one."""
    pieces = [Piece(0.0, 50.0, 100.0), Piece(50.0, 60.0, 0.0), Piece(60.0, 110.0, 400.0)]

    at_s = draw_arrivals(kind, pieces, stream())

    tolerance = 1 if kind == "evenly_spaced" else 5 * 3.0 * math.sqrt(20_000)
    assert abs((at_s < 50.0).sum() - 5_000) <= tolerance / 2 + 1
    assert not ((at_s >= 50.0) & (at_s < 60.0)).any()
    assert abs((at_s >= 60.0).sum() - 20_000) <= tolerance
    assert (np.diff(at_s) >= 0.0).all()
    assert at_s[-1] < 110.0


@pytest.mark.parametrize("kind", KINDS, ids=["poisson", "evenly_spaced", "gamma"])
def test_time_scale_two_doubles_every_instant_to_the_bit(kind: str | GammaArrivals) -> None:
    pieces = [Piece(0.0, 3.3, 70.7), Piece(3.3, 7.9, 191.3)]
    doubled = [Piece(2 * piece.at_s, 2 * piece.until_s, piece.rate_per_s / 2) for piece in pieces]

    once = draw_arrivals(kind, pieces, stream())
    twice = draw_arrivals(kind, doubled, stream())

    assert (2 * once).tolist() == twice.tolist()


@pytest.mark.parametrize("kind", KINDS, ids=["poisson", "evenly_spaced", "gamma"])
def test_a_longer_run_begins_with_the_shorter_one(kind: str | GammaArrivals) -> None:
    short = draw_arrivals(kind, [Piece(0.0, 20.0, 500.0)], stream())
    long = draw_arrivals(kind, [Piece(0.0, 40.0, 500.0)], stream())

    assert long[: len(short)].tolist() == short.tolist()


@pytest.mark.parametrize("kind", KINDS, ids=["poisson", "evenly_spaced", "gamma"])
def test_no_rate_means_no_arrivals(kind: str | GammaArrivals) -> None:
    assert len(draw_arrivals(kind, [Piece(0.0, 20.0, 0.0)], stream())) == 0
    assert len(draw_arrivals(kind, [], stream())) == 0
