import math

import numpy as np
import pytest

from testbed.analysis.records import Window
from testbed.analysis.utilisation import utilisations
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import made_scenario


def test_a_cell_is_as_busy_as_its_servers_in_the_mean():
    """One server of us busy for 3 of 4 s, one for 1 of 2 s; samples before the window do not count."""
    samples = {
        "server": np.array(
            ["us/server-1", "us/server-2", "us/server-1", "us/server-2", "us/server-1"], object
        ),
        "at_s": np.array([1.0, 6.0, 6.0, 8.0, 10.0]),
        "busy_s": np.array([0.0, 2.0, 1.0, 3.0, 4.0]),
    }

    found = utilisations(build_topology(made_scenario()), samples, Window(5.0, 20.0))

    assert found["us"] == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert math.isnan(found["eu"])
