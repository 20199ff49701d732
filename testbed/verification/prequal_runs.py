"""The runs behind V12 to V14, each made once: the nine rules, the load ramp, the probe rates and the quantiles of Prequal."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from testbed.verification.replicas import RULES, Measured, Scene, measure

# Published p99 at 70 % and 90 % of the allocation, milliseconds; 5000 is the deadline.
PUBLISHED_P99_MS = {
    "RoundRobin": (5000, 5000),
    "Random": (5000, 5000),
    "WRR": (314, 5000),
    "LeastLoaded": (1804, 2654),
    "LL-Po2C": (569, 1918),
    "YARP-Po2C": (2642, 1169),
    "Linear": (698, 1036),
    "C3": (299, 304),
    "Prequal": (281, 286),
}
LOADS = (0.75, 0.83, 0.93, 1.03, 1.14, 1.27, 1.41, 1.57, 1.74)  # of the published ramp
PROBE_RATES = (4.0, 2.83, 2.0, 1.41, 1.0, 0.707, 0.5)
QUANTILES = (0.0, 0.35, 0.59, 0.73, 0.90, 0.99, 0.999, 1.0)


SMALL = Scene(servers=20, leaves=20, duration_s=8.0, warmup_s=2.0)
RULES_SCENE = Scene(servers=100, leaves=100, duration_s=24.0, warmup_s=6.0)
RAMP_SCENE = Scene(servers=100, leaves=20, duration_s=16.0, warmup_s=4.0)
PROBE_SCENE = Scene(servers=100, leaves=20, duration_s=10.0, warmup_s=2.5)
QUANTILE_SCENE = Scene(servers=100, leaves=20, duration_s=16.0, warmup_s=4.0, slow=50)


@cache
def _measured(scene: Scene, rule: str, load: float, changes: tuple[tuple[str, Any], ...] = ()) -> Measured:
    return measure(scene, rule, load, **dict(changes))


def rule_names(quick: bool) -> list[str]:
    """The names of the rules compared."""
    return ["Random", "WRR", "LL-Po2C", "C3", "Prequal"] if quick else list(RULES)


def rule_runs(quick: bool) -> Callable[[str, float], Measured]:
    """A function of a rule and a load that gives its run."""
    scene = SMALL if quick else RULES_SCENE
    return lambda rule, load: _measured(scene, rule, load)


def ramp_runs(rule: str, quick: bool) -> dict[float, Measured]:
    """The runs of a rule by load."""
    scene = SMALL if quick else RAMP_SCENE
    return {load: _measured(scene, rule, load) for load in ((0.75, 1.14) if quick else LOADS)}


def probed_run(rate: float, quick: bool) -> Measured:
    """Prequal at load 1.5 with so many probes a request."""
    changes = (("probes_per_request", rate), ("removals_per_request", 0.25), ("hot_quantile", 0.84))
    return _measured(SMALL if quick else PROBE_SCENE, "Prequal", 1.5, changes)


def hot_run(quantile: float, quick: bool) -> Measured:
    """Prequal at load 0.75, half of the servers slow, with this quantile that counts as hot."""
    scene = SMALL._replace(slow=SMALL.servers // 2) if quick else QUANTILE_SCENE
    return _measured(scene, "Prequal", 0.75, (("hot_quantile", quantile),))
