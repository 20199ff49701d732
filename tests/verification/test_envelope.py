"""Growth and period of an oscillation under drift and jitter."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.verification.envelope import envelope, measured_mode

AT_S = np.arange(0.0, 60.0, 0.05)


@pytest.mark.parametrize("growth", [-0.02, 0.0, 0.03])
def test_growth_and_period_come_out_under_drift_and_jitter(growth):
    """The period is 8 % off the guess; jitter as large as the swing, a slow drift five times as large."""
    wave = np.exp(growth * AT_S) * np.cos(2 * np.pi * AT_S / 5.4 + 0.3)
    jitter = np.random.default_rng(4).normal(0.0, 1.0, len(AT_S))

    mode = measured_mode(100.0 + 5.0 * np.sin(AT_S / 60.0) + wave + jitter, 0.05, 5.0)

    assert mode.growth == pytest.approx(growth, abs=0.006)
    assert mode.period == pytest.approx(5.4, rel=0.01)


def test_the_envelope_is_the_amplitude_where_it_stands():
    amplitude, _ = envelope(3.0 * np.cos(2 * np.pi * AT_S / 5.0), 0.05, 5.0)

    assert amplitude == pytest.approx(np.full(len(amplitude), 3.0), rel=1e-2)


def test_a_series_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="less than three periods"):
        envelope(np.zeros(200), 0.05, 5.0)
