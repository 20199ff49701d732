"""What policies that tune themselves settled on, in scenario time."""

from __future__ import annotations

import numpy as np

from testbed.record.gather import Rows
from testbed.record.streams import stream_places, streams_of
from testbed.scenario.schema import Scenario


def tunings_table(tunings: Rows, scenario: Scenario) -> Rows:
    """The logged table with its steps in the unit that each policy's cost gives them; the scenario is not scaled."""
    streams = streams_of(scenario)
    powers = np.array([each.step_time_power for each in streams])
    scale = scenario.time_scale ** powers[stream_places(streams, tunings["root"], tunings["class"])]
    return {
        **tunings,
        "step": tunings["step"] / scale,
        "critical_step": tunings["critical_step"] / scale,
    }
