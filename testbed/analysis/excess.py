"""What the noise of arrivals and service alone makes swing, and what a policy adds to it.

`amplitude_noise` is the amplitude of an arm of the same run that splits the same requests statically: by fixed weights
where there is such an arm, else at random. `excess` = sqrt(max(0, amplitude^2 - amplitude_noise^2)): variances of
independent swings add up.

Source: measures.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# In the order of preference; taking turns would have less noise than chance.
STATIC_KINDS = ("weighted", "static_optimal", "random")


def static_amplitude(arms: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The amplitude of the arm that splits statically; None where there is none.

    Args:
        arms: what `summarize_arm` gave for each arm.
    """
    for kind in STATIC_KINDS:
        for arm in arms.values():
            if arm["policy"]["kind"] == kind and arm["oscillation"]["amplitude"] is not None:
                return float(arm["oscillation"]["amplitude"])
    return None


def with_noise(swing: Mapping[str, Any], noise: float | None) -> dict[str, Any]:
    """An arm's oscillation with the noise beside it, and the excess over it; both null without a static arm."""
    amplitude = swing["amplitude"]
    excess = None
    if noise is not None and amplitude is not None:
        excess = math.sqrt(max(0.0, amplitude**2 - noise**2))
    return {**swing, "amplitude_noise": noise, "excess": excess}
