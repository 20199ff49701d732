"""Figures of the findings of the noise-free model: the law of the critical step, and the herd of greedy routing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from testbed.figures.page import STYLE
from testbed.theory.limit_cycle import greedy_cycle
from testbed.verification.finding import Illustration
from testbed.verification.fluid import EXPONENTIAL, HYPERBOLIC, onset_of
from testbed.verification.herd import herd, linear_cycle

_RHOS = (0.5, 0.7, 0.9)
_COLOURS = ("#0072B2", "#D55E00")
_MANY = (2, 3, 4, 6, 8)


def headroom(quick: bool) -> Iterator[Illustration]:
    """The critical step over the load, predicted and found."""
    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        panel = figure.subplots()
        rhos = np.linspace(0.4, 0.94, 80)
        for setting, colour in zip((HYPERBOLIC, EXPONENTIAL), _COLOURS, strict=True):
            steps = [setting._replace(rho=rho).edge.gain for rho in rhos.tolist()]
            panel.plot(rhos, steps, color=colour, ls="--", lw=1.4, label=f"{setting.family}, (5) to (7)")
            found = [onset_of(setting._replace(rho=rho)).gain for rho in _RHOS]
            panel.plot(_RHOS, found, "o", color=colour, ms=6, label=f"{setting.family}, fluid")
        panel.set(xlabel="utilisation of a cell", ylabel="critical step (per s^2)", yscale="log")
        panel.legend()
        figure.draw_without_rendering()
    yield Illustration(
        "verification_critical_step",
        "V4: the critical step falls with the third power of the headroom (hyperbolic rates) or its square (exponential);"
        " dashed: theory, dots: found by following a disturbance in the noise-free model.",
        figure,
    )


def herding(quick: bool) -> Iterator[Illustration]:
    """Period and peak of greedy routing between two cells, and how it grows with the number of cells."""
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 3.4), layout="constrained")
        period, peak, many = figure.subplots(1, 3)
        curve = np.geomspace(0.05, 10.0, 80)
        dots = (0.1, 0.3, 0.5, 1.0, 2.0, 5.0)
        for panel, name, place in ((period, "period / T", 0), (peak, "peak of |N1 - N2| / (Lambda T)", 1)):
            panel.plot(
                curve,
                [greedy_cycle(1.0, a, 1.0)[place] for a in curve.tolist()],
                "--",
                color="#444444",
                label="equation (11)",
            )
            panel.plot(dots, [linear_cycle(a)[place] for a in dots], "o", color=_COLOURS[0], label="fluid")
            panel.set(xlabel="a T", ylabel=name, xscale="log", ylim=(0, None))
            _plain_ticks(panel)
        period.legend()
        for of_two, name, colour in (
            (False, "shortest queue", _COLOURS[1]),
            (True, "better of two", _COLOURS[0]),
        ):
            many.plot(
                _MANY, [herd(cells, 0.5, of_two).peak for cells in _MANY], "o-", color=colour, label=name
            )
        many.set(xlabel="cells, T/W = 0.5", ylabel="peak in flight / optimum", ylim=(0, None))
        many.legend()
        figure.draw_without_rendering()
    yield Illustration(
        "verification_herd",
        "V5 and V7: greedy routing on delayed counts. Left and middle, two linear cells: the limit cycle of equation (11)"
        " and the fluid. Right: the herd grows with the number of cells, the better of two does not.",
        figure,
    )


def _plain_ticks(panel: Any) -> None:
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
