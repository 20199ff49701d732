"""Growth and period from a series with one oscillation."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.verification.mode import dominant_mode


@pytest.mark.parametrize("growth", [-0.03, 0.0, 0.02])
@pytest.mark.parametrize("period", [5.3, 40.0])
def test_growth_and_period_of_a_pure_mode_come_out_exactly(growth, period):
    at = np.arange(0.0, 4 * period, 0.5)

    mode = dominant_mode(1e-6 * np.exp(growth * at) * np.cos(2 * np.pi * at / period + 0.4), 0.5)

    assert mode.growth == pytest.approx(growth, abs=1e-9)
    assert mode.period == pytest.approx(period, rel=1e-9)


def test_a_series_that_does_not_oscillate_is_refused():
    with pytest.raises(ValueError, match="no oscillation"):
        dominant_mode(np.exp(-0.1 * np.arange(50.0)))
