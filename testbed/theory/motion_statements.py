"""What the theory says of large motions: the limit cycle of greedy routing, the nonlinear fluid, the deviation bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from testbed.scenario.quantity import format_s
from testbed.theory.deviation_bound import centred_norm, deviation_bound
from testbed.theory.fluid import Trajectory, solve
from testbed.theory.fluid_form import ASSUMES, FluidForm
from testbed.theory.ground import Ground
from testbed.theory.limit_cycle import greedy_cycle
from testbed.theory.statement import Statement
from testbed.theory.swing import Swing, long_run

_LOOPS = 80.0  # loop delays that the fluid is followed, at least
_PERIODS = 16.0  # periods at the edge of stability, at least
_MOST_STEPS = 100_000  # of the fluid's grid


def greedy_statements(ground: Ground) -> Iterator[Statement]:
    """The limit cycle of two cells, for arms in which everyone is greedy."""
    kinds = {ground.scenario.policies[ground.policy(i)].kind for i in range(len(ground.wanted.lines))}
    if not kinds & {"least_cost", "jsq", "gmsr"}:
        return
    what = "limit cycle (11)"
    why = _no_cycle(ground, kinds)
    if why:
        yield Statement("greedy", what, refused_because=why)
        return
    loop, cell = ground.loops[0], ground.optimum.cells[0]
    cycle = greedy_cycle(float(ground.wanted.rates_per_s.sum()), cell.a_per_s, loop.loop_delay_s)
    swing = cycle.peak / (2.0 * cell.in_flight)
    yield Statement(
        "greedy", what, value=f"period {format_s(cycle.period_s)}, requests in flight +-{100 * swing:.3g} % of their mean",
        assumes=("two equal cells, all roots greedy at one loop delay", "T/W up to 1", "decisions and reports without pause"),
        figures={"period_s": cycle.period_s, "relative_swing": swing},
    )  # fmt: skip


def _no_cycle(ground: Ground, kinds: set[str]) -> str:
    if len(kinds) > 1:
        return "not all traffic is routed alike"
    if len(ground.wanted.cells) != 2:
        return f"it is solved for two cells, not {len(ground.wanted.cells)}; see the fluid"
    if not ground.loops:
        return "no policy acts on reports, or the cells are asked for more than they can carry"
    if ground.scenario.faults:
        return "faults change delays or speeds during the run"
    ratio = ground.loops[0].loop_delay_s / ground.loops[0].sojourn_s
    if ratio > 1.0:
        return f"T/W is {ratio:.3g}: beyond 1 the cells run empty; see the fluid"
    return ground.not_alike()


def followed(ground: Ground, form: FluidForm) -> Trajectory | None:
    """The fluid over the run and as long as it takes to see where it goes, from empty."""
    if form.fluid is None:
        return None
    delays_s = [loop.loop_delay_s for loop in ground.loops if math.isfinite(loop.loop_delay_s)]
    periods_s = [
        loop.flow.period_s for loop in ground.loops if loop.flow and math.isfinite(loop.flow.period_s)
    ]
    wanted_s = max(
        [ground.scenario.duration, *(_LOOPS * d for d in delays_s), *(_PERIODS * p for p in periods_s)]
    )
    duration_s = max(ground.scenario.duration, min(wanted_s, _MOST_STEPS * form.spacing_s))
    return solve(form.fluid, duration_s, in_flight=form.in_flight, primed=False, spacing_s=form.spacing_s)


def fluid_statements(ground: Ground, form: FluidForm, path: Trajectory | None) -> Iterator[Statement]:
    """What the trajectory does in the long run."""
    what = "trajectory from empty"
    if path is None:
        yield Statement("fluid", what, refused_because=form.refused_because)
        return
    swing = long_run(path)
    yield Statement(
        "fluid", what, value=_said_of(swing), assumes=ASSUMES,
        figures={"amplitude": swing.amplitude, "period_s": swing.period_s, "settles": swing.settles},
    )  # fmt: skip
    yield Statement(
        "fluid", "in flight in the long run", value=ground.by_cell([f"{n:.4g}" for n in swing.in_flight.tolist()]),
        assumes=ASSUMES,
        figures=ground.figures(swing.in_flight.tolist()),
    )  # fmt: skip


def _said_of(swing: Swing) -> str:
    if swing.settles:
        return "settles"
    period = f", period {format_s(swing.period_s)}" if swing.period_s is not None else ", no period"
    return f"oscillates: amplitude {swing.amplitude:.3g}{period}"


def deviation_statements(ground: Ground, form: FluidForm, path: Trajectory | None) -> Iterator[Statement]:
    """The bound on the mean deviation from the optimum."""
    what = "bound on the mean of (F - F*)/F*"
    if path is None or form.fluid is None:
        yield Statement("deviation", what, refused_because=form.refused_because)
        return
    bound = deviation_bound(ground.scenario, ground.scenario.duration, _gradient_norms(ground, form, path))
    if bound.fraction is None:
        yield Statement("deviation", what, refused_because=bound.refused_because)
        return
    label = (
        f"a conjecture here: {'; '.join(bound.conjecture_because)}" if bound.conjecture_because else "proven"
    )
    yield Statement(
        "deviation", what, value=f"{bound.fraction:.3g}: {bound.from_start:.2g} from the start, {bound.from_steps:.2g} from the steps",
        assumes=(label, "the largest gradient of the noise-free trajectory"),
        figures={"fraction": bound.fraction, "from_start": bound.from_start, "from_steps": bound.from_steps},
    )  # fmt: skip


def _gradient_norms(ground: Ground, form: FluidForm, path: Trajectory) -> dict[tuple[str, int], float]:
    """The largest centred gradient that each line meets along the trajectory."""
    assert form.fluid is not None, "there is a trajectory"
    during = path.in_flight[: math.ceil(ground.scenario.duration / path.spacing_s) + 1]
    norms: list[float] = []
    for group in form.fluid.streams:
        costs = group.cost(np.repeat(during[:, None, :], len(group.rates_per_s), axis=1))
        for i, allowed in enumerate(group.allowed):
            norms.append(max(centred_norm(row, allowed) for row in costs[:, i]))
    return dict(zip(form.lines, norms, strict=True))
