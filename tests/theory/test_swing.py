"""What a trajectory does in the long run."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.theory.fluid import Trajectory
from testbed.theory.swing import long_run


def trajectory(swing: np.ndarray, spacing_s: float) -> Trajectory:
    in_flight = np.stack([100.0 * (1.0 + swing), 40.0 * (1.0 - swing)], axis=1)
    return Trajectory(spacing_s, in_flight, np.full((len(swing), 1, 2), 0.5))


def test_a_lasting_sine_has_its_amplitude_and_period() -> None:
    at_s = np.arange(0.0, 80.0, 0.05)

    found = long_run(trajectory(0.3 * np.sin(2 * np.pi * at_s / 2.5), 0.05))

    assert not found.settles
    assert found.amplitude == pytest.approx(0.3, rel=0.01)
    assert found.period_s == pytest.approx(2.5, rel=1e-3)
    assert found.in_flight == pytest.approx([100.0, 40.0], rel=0.01)


def test_a_swing_that_dies_away_settles() -> None:
    at_s = np.arange(0.0, 80.0, 0.05)

    found = long_run(trajectory(0.9 * np.exp(-at_s / 15.0) * np.sin(at_s), 0.05))

    assert found.settles
    assert found.period_s is None


def test_a_common_swing_of_all_cells_is_none() -> None:
    load = 1.0 + 0.5 * np.sin(np.arange(0.0, 60.0, 0.1))
    path = Trajectory(0.1, np.stack([50 * load, 20 * load], axis=1), np.full((600, 1, 2), 0.5))

    assert long_run(path).amplitude == pytest.approx(0.0, abs=1e-12)
