"""Whether a run means the same when every duration is doubled: the check for constants hidden in code or host.

In scenario time nothing may change but what the host adds: under virtual time every sojourn doubles to the bit, and
with real processes the lateness of the host counts half as much.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from testbed.analysis.compare import Difference, differing_keys
from testbed.analysis.spread import WALL_TIME

# (where in the summary of an arm, largest relative difference with real processes)
MEASURES = (
    (("sojourn_s", "p50"), 0.05),
    (("sojourn_s", "p90"), 0.05),
    (("sojourn_s", "p99"), 0.05),
    (("oscillation", "amplitude"), 0.15),
)
OF_THE_SCALE = ("time_scale", *WALL_TIME)  # what is to differ
EXACT = 1e-9  # under virtual time: a scale that is no power of two rounds


class ScaleFinding(NamedTuple):
    """One figure at the two scales: in scenario time, so equal unless something does not scale.

    Attributes:
        arm: its name.
        measure: the figure's key, such as 'sojourn_s.p50'.
        once: at the scenario's scale, in the unit of the figure.
        doubled: the same at twice that.
        difference: between them, as a fraction of the first.
        tolerance: the most that it may be.
    """

    arm: str
    measure: str
    once: float
    doubled: float
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the two are as near as they have to be."""
        return self.difference <= self.tolerance


def compare_scales(once: dict[str, Any], doubled: dict[str, Any], engine: str) -> list[ScaleFinding]:
    """The figures of every arm at a time scale and at twice that.

    Args:
        once: summary of the run at the scenario's scale.
        doubled: summary of the same run with every duration doubled.
        engine: 'virtual' (the figures are to be equal) or 'live' (within 5 %, the amplitude within 15 %).

    A figure that neither run has is left out; one that only one of them has differs without bound.
    """
    findings = []
    for arm in once["arms"]:
        for path, near in MEASURES:
            pair = [_figure(summary["arms"][arm], path) for summary in (once, doubled)]
            if pair == [None, None]:
                continue
            a, b = (float("nan") if each is None else each for each in pair)
            difference = 0.0 if a == b else abs(b - a) / abs(a) if a else float("inf")
            tolerance = near if engine == "live" else EXACT
            findings.append(
                ScaleFinding(
                    arm,
                    ".".join(path),
                    a,
                    b,
                    difference if difference == difference else float("inf"),
                    tolerance,
                )
            )
    return findings


def unequal_keys(once: dict[str, Any], doubled: dict[str, Any]) -> list[Difference]:
    """Every key of every arm's summary whose values differ by more than rounding: none may under virtual time.

    Args:
        once: summary of the run at the scenario's scale.
        doubled: summary of the same run with every duration doubled.
    """
    return [
        found._replace(key=f"{arm}.{found.key}")
        for arm in once["arms"]
        for found in differing_keys(_timeless(once["arms"][arm]), _timeless(doubled["arms"][arm]))
        if not _is_rounding(found.left, found.right)
    ]


def _timeless(words: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in words.items() if key not in OF_THE_SCALE}


def _is_rounding(left: Any, right: Any) -> bool:
    return isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=EXACT)


def _figure(words: Any, path: tuple[str, ...]) -> float | None:
    for key in path:
        words = words[key]
    return None if words is None else float(words)
