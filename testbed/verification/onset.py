"""The critical step in event simulation: where an oscillation between two cells neither grows nor dies.

Noise is taken out: evenly spaced arrivals, low-discrepancy sampling at the root, work without chance, hundreds of
requests in each cell; one share starts 2 % off. Runs below and above the predicted step give the slope of the
log-envelope over twelve periods; the onset is where the line through them crosses 0. The settings are not those of
theory.md. Source: measures.md, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from testbed.analysis.in_flight import in_flight_by_cell
from testbed.scenario.schema import Scenario
from testbed.serving.delayed_loop import CellResponse, critical_gain_of_work, fixed_work
from testbed.theory.stability import Edge, Floats
from testbed.verification.envelope import envelope, measured_mode
from testbed.verification.finding import Finding, Illustration, within
from testbed.verification.mode import Mode
from testbed.verification.trial import run_trial, scenario_of

BELOW_AND_ABOVE = (0.92, 1.08)  # of the predicted step
PERIODS = 12
_FILL = 6.0  # relaxation times until the cells are full, after which the linear loop holds
_FILL_PERIODS = 2.0
_UPDATES_PER_DELAY = 12
_GRID_PER_PERIOD = 40
_GRID_PER_DELAY = 20


class Setting(NamedTuple):
    """Two equal cells under one root; the mean sojourn W is 1 s.

    Attributes:
        rho: utilisation of a cell, at the rate curve C N / (N0 + N).
        delay_s: T, half of it travel, half of it the age of observations.
        rate_per_s: that each cell gets.
        work: `exponential` or `fixed`.
    """

    rho: float
    delay_s: float
    rate_per_s: float
    work: str

    @property
    def capacity_per_s(self) -> float:
        """C."""
        return self.rate_per_s / self.rho

    @property
    def half(self) -> float:
        """N0 = (1 - rho) C W."""
        return (1.0 - self.rho) * self.capacity_per_s

    @property
    def a_per_s(self) -> float:
        """(1 - rho) / W."""
        return 1.0 - self.rho

    @property
    def predicted(self) -> Edge:
        """Critical step and period by the general loop."""
        cell = CellResponse(self.a_per_s, 1.0, fixed_work if self.work == "fixed" else None)
        edge = critical_gain_of_work(cell, self.delay_s)
        sigma_s = 2.0 / (self.capacity_per_s * (1.0 - self.rho))
        return Edge(edge.gain / (2.0 * self.rate_per_s * sigma_s), edge.period_s)

    @property
    def filled_s(self) -> float:
        """When the measurement begins."""
        return max(_FILL / self.a_per_s, _FILL_PERIODS * self.predicted.period_s)

    @property
    def words(self) -> str:
        """The setting for the table."""
        return f"rho {self.rho:g}, T/W {self.delay_s:g}, {self.work} work"


SETTINGS = tuple(
    Setting(rho, delay_s, rate_per_s, work)
    for rho, delay_s, rate_per_s in ((0.75, 0.2, 300.0), (0.6, 0.5, 400.0), (0.5, 1.5, 400.0))
    for work in ("exponential", "fixed")
)
_QUICK = 2  # settings in the quick form, and in the figure


def critical_steps(quick: bool) -> Iterator[Finding]:
    """Onset and period in six settings; the quick form takes the first two."""
    for setting in SETTINGS[: _QUICK if quick else None]:
        found, predicted = onset_of(setting), setting.predicted
        source = "measures 5, general loop"
        yield within(
            "onset", f"critical step in events: {setting.words}", source, "virtual",
            expected=predicted.gain, measured=found.gain, relative=0.1, unit="/s^2",
        )  # fmt: skip
        yield within(
            "onset", f"period there: {setting.words}", source, "virtual",
            expected=predicted.period_s, measured=found.period_s, relative=0.05, unit="s",
        )  # fmt: skip


def envelopes(quick: bool) -> Iterator[Illustration]:
    """The envelopes below and above the onset."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained", dpi=150)
    panels: Sequence[Any] = figure.subplots(1, _QUICK, sharey=False)
    for setting, panel in zip(SETTINGS[:_QUICK], panels, strict=True):
        period_s = setting.predicted.period_s
        for fraction, colour in zip(BELOW_AND_ABOVE, ("#0072B2", "#D55E00"), strict=True):
            difference, spacing_s = swing(setting, fraction)
            at = np.arange(len(difference)) * spacing_s / period_s
            amplitude, _ = envelope(difference, spacing_s, period_s)
            middle = at[: len(amplitude)] + (len(difference) - len(amplitude)) / 2 * spacing_s / period_s
            panel.plot(at, _calmed(difference, spacing_s, period_s), color=colour, lw=0.8, alpha=0.6)
            panel.plot(middle, amplitude, color=colour, lw=1.8, label=f"{fraction:g} of the predicted step")
        panel.set_title(setting.words, loc="left", fontsize=10)
        panel.set_xlabel("time (predicted periods)")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("N1 - N2 (requests)")
    panels[0].legend(frameon=False, fontsize=8.5, loc="upper left")
    yield Illustration(
        "verification_onset",
        "Event simulation without noise, one share started 2 % off: the difference of two cells (thin) and its envelope"
        " (thick) die away 8 % below the predicted critical step, down to a few requests that the roundness of requests"
        " keeps going, and grow 8 % above it. Thin lines are averaged over a twelfth of a period.",
        figure,
    )


def _calmed(difference: Floats, spacing_s: float, period_s: float) -> Floats:
    width = max(1, round(period_s / 12 / spacing_s))
    return np.convolve(difference, np.full(width, 1.0 / width), mode="same")


def onset_of(setting: Setting) -> Edge:
    """The step and the period at which the envelope neither grows nor dies, between the two runs."""
    below, above = (_mode(setting, fraction) for fraction in BELOW_AND_ABOVE)
    way = -below.growth / (above.growth - below.growth)
    low, high = BELOW_AND_ABOVE
    fraction = low + way * (high - low)
    return Edge(fraction * setting.predicted.gain, below.period + way * (above.period - below.period))


def _mode(setting: Setting, fraction: float) -> Mode:
    difference, spacing_s = swing(setting, fraction)
    return measured_mode(difference, spacing_s, setting.predicted.period_s)


@cache
def swing(setting: Setting, fraction: float) -> tuple[Floats, float]:
    """N_1 - N_2 of a run at a fraction of the predicted step, once the cells are full; and the spacing of its grid."""
    scenario = _scenario(setting, fraction)
    spacing_s = min(setting.delay_s / _GRID_PER_DELAY, setting.predicted.period_s / _GRID_PER_PERIOD)
    edges_s = np.arange(setting.filled_s, scenario.duration, spacing_s)
    trial = run_trial(scenario)
    first, second = in_flight_by_cell(trial.tables["requests"], ["a", "b"], edges_s)
    return np.asarray(first - second), spacing_s


def _scenario(setting: Setting, fraction: float) -> Scenario:
    service: dict[str, Any] = {
        "rate_curve": {"capacity": f"{setting.capacity_per_s!r} /s", "half": setting.half},
        "work": setting.work,
    }
    if setting.work == "exponential":
        service["sampling"] = "low_discrepancy"
    half_s = f"{setting.delay_s / 2!r} s"
    flow = {
        "kind": "flow",
        "step": f"{fraction * setting.predicted.gain!r} /s^2",
        "update": "on_report",
        "model": "profile",
        "sampling": "low_discrepancy",
        "start": {"a": 0.51, "b": 0.49},
    }
    line = {
        "class": "c",
        "rate": f"{2 * setting.rate_per_s!r} /s",
        "policy": "flow",
        "arrivals": "evenly_spaced",
    }
    return scenario_of(
        {
            "name": "onset",
            "duration": f"{setting.filled_s + PERIODS * setting.predicted.period_s!r} s",
            "drain": "0 s",
            "cells": {name: {"servers": 1, "service": service} for name in "ab"},
            "roots": {"root": {"traffic": [line]}},
            "reports": {"every": f"{setting.delay_s / _UPDATES_PER_DELAY!r} s", "phase": "in_phase"},
            "classes": {"c": {"timeout": "1000 s"}},
            "policies": {"flow": flow},
            "records": {"decisions": "0 %", "samples": "1000 s"},
            "links": [
                {"from": "root.*", "to": "cell.*", "path": "request", "delay": half_s},
                {"from": "cell.*", "to": "root.*", "path": "observation", "delay": half_s},
            ],
        }
    )
