"""What the traffic asks for and what the cells can carry: rates, token means, rate curves, capacities.

Everything is in the time of the scenario that is handed in: run time if it is `scaled()`, scenario time if not.
Speeds that faults set do not count: a plan is made for servers in health. Nor does what prefix caches may save: every
prompt counts whole.

Source of the definitions: measures.md, section 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from testbed.scenario.schema import Cell, Root, Scenario, Service, Traffic
from testbed.serving.profile import PROFILES, Profile
from testbed.serving.rate_curve import RateCurve
from testbed.serving.service import clipped_normal_mean
from testbed.traffic.arrivals import pieces_of
from testbed.traffic.sessions import mean_prompt_tokens
from testbed.traffic.trace import TraceRows, read_trace
from testbed.traffic.work import mean_tokens

# Loads and the mix of a root define each other; a fixed point is reached in a few rounds, or as near as n_cap,
# a whole number, lets it come.
_ROUNDS = 100
_CLOSE_ENOUGH = 1e-12


class LineRate(NamedTuple):
    """The mean rate of a line of traffic and the mean tokens of its requests."""

    rate_per_s: float
    prompt_mean: float
    output_mean: float


def allowed_cells(scenario: Scenario, root: str, index: int | None = None) -> tuple[str, ...]:
    """The cells that a root may use, or one line of its traffic; in the scenario's order."""
    words = scenario.roots[root]
    allowed = words.allowed
    if index is not None and words.traffic[index].allowed is not None:
        allowed = words.traffic[index].allowed
    return tuple(name for name in scenario.cells if allowed is None or name in allowed)


def cell_profile(cell: Cell, stretch: float) -> Profile | None:
    """The GPU profile of a cell's servers, with the cell's own limits; None for a simple service model."""
    if cell.profile is None:
        return None
    return _profile(cell.profile, cell.max_sequences, cell.kv_tokens, cell.step_tokens, stretch)


@lru_cache(maxsize=1024)
def _profile(
    name: str, max_sequences: int | None, kv_tokens: int | None, step_tokens: int | None, stretch: float
) -> Profile:
    profile = PROFILES[name].with_limits(
        max_sequences=max_sequences, kv_tokens=kv_tokens, step_tokens=step_tokens
    )
    return profile if stretch == 1.0 else profile.scaled(stretch)


def cell_curve(scenario: Scenario, cell: str, prompt_mean: float, output_mean: float) -> RateCurve:
    """The rate curve of ONE server of a cell for requests of these mean tokens.

    k slots of mean service S, or k shared cores allotted: S + (S/k) n, of capacity k/S; a rate curve C n/(half + n): half/C + n/C.
    """
    words = scenario.cells[cell]
    profile = cell_profile(words, scenario.stretch)
    if profile is not None:
        return profile.rate_curve(prompt_mean, output_mean)
    assert words.service is not None, f"{cell}: a cell has a profile or a service"
    return _service_curve(words.service)


def cell_capacity_per_s(scenario: Scenario, cell: str, prompt_mean: float, output_mean: float) -> float:
    """The most requests of these mean tokens that a cell completes per second: its servers' rates at n_cap."""
    return scenario.cells[cell].servers * cell_curve(scenario, cell, prompt_mean, output_mean).capacity_per_s


def cell_divisor_per_s(scenario: Scenario, cell: str, prompt_mean: float, output_mean: float) -> float:
    """The same to divide counts of a cell by: above 0 also where no mean request fits (see `RateCurve`)."""
    return scenario.cells[cell].servers * cell_curve(scenario, cell, prompt_mean, output_mean).divisor_per_s


def token_means(scenario: Scenario, root: str) -> tuple[float, float]:
    """Mean prompt and output tokens of a root's requests, its lines weighted by their mean rates."""
    return _mix(line_rates(scenario, root))


def cell_token_means(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """Mean prompt and output tokens of the requests that may come to each cell, weighted by the roots' rates.

    Where none may come both are 1.
    """
    sums = dict.fromkeys(scenario.cells, (0.0, 0.0, 0.0))
    for root in scenario.roots:
        lines = line_rates(scenario, root)
        rate = sum(line.rate_per_s for line in lines)
        prompt_mean, output_mean = _mix(lines)
        for cell in allowed_cells(scenario, root):
            weight, prompt, output = sums[cell]
            sums[cell] = (weight + rate, prompt + rate * prompt_mean, output + rate * output_mean)
    return {
        cell: (prompt / weight, output / weight) if weight else (1.0, 1.0)
        for cell, (weight, prompt, output) in sums.items()
    }


def traffic_rates(scenario: Scenario) -> dict[tuple[str, int], float]:
    """Mean rate over the run of every line of traffic: (root, index in its traffic) -> requests per second.

    Raises:
        RunError: a trace is missing or malformed.
    """
    return {
        (root, index): line.rate_per_s
        for root in scenario.roots
        for index, line in enumerate(line_rates(scenario, root))
    }


def line_rates(scenario: Scenario, root: str) -> list[LineRate]:
    """Mean rates and tokens of a root's lines of traffic, in their order.

    `load` is a share of the capacity of the cells that the line may use, for the mix of the whole root.
    """
    words = scenario.roots[root]
    lines = [LineRate(1.0, *line_means(scenario, line)) for line in words.traffic]
    for _ in range(_ROUNDS):
        capacities = _capacities(scenario, root, *_mix(lines))
        rates = [_mean_rate(scenario, words, i, capacity) for i, capacity in enumerate(capacities)]
        settled = all(
            abs(rate - line.rate_per_s) <= _CLOSE_ENOUGH * rate
            for rate, line in zip(rates, lines, strict=True)
        )
        lines = [line._replace(rate_per_s=rate) for line, rate in zip(lines, rates, strict=True)]
        if settled:
            break
    return lines


def stage_rates(scenario: Scenario, root: str, index: int) -> list[float]:
    """The rate of each stage of a line of traffic, requests per second; of the line where it has no stages."""
    line = scenario.roots[root].traffic[index]
    capacity_per_s = _capacities(scenario, root, *token_means(scenario, root))[index]
    return _stage_rates(line, capacity_per_s)


def peak_rates(scenario: Scenario) -> dict[tuple[str, int], float]:
    """The highest rate of every line of traffic while the run lasts; of a trace, its mean rate."""
    return {
        (root, index): mean
        if scenario.roots[root].traffic[index].trace is not None
        else _peak_rate(scenario, root, index)
        for (root, index), mean in traffic_rates(scenario).items()
    }


def trace_window(scenario: Scenario, name: str) -> TraceRows:
    """The requests of a trace that arrive before the run's arrivals stop.

    Raises:
        RunError: the trace is missing or malformed.
    """
    rows = read_trace(scenario.traces[name], seed=scenario.seed, stretch=scenario.stretch)
    return rows.where(rows.at_s < scenario.duration)


def trace_lines(scenario: Scenario, name: str) -> list[tuple[str, int, float]]:
    """The lines of traffic that replay a trace: (root, index in its traffic, weight)."""
    return [
        (root, index, line.weight)
        for root, words in scenario.roots.items()
        for index, line in enumerate(words.traffic)
        if line.trace == name
    ]


def service_mean_s(service: Service) -> float:
    """Mean service time of slots or shared cores, what is clipped counted in."""
    if service.normal is not None:
        return clipped_normal_mean(service.normal.mean, service.normal.sd)
    mean_s = service.exponential if service.exponential is not None else service.fixed
    assert mean_s is not None, "slots and sharing have a service time"
    return mean_s


def _service_curve(service: Service) -> RateCurve:
    at_once = service.slots if service.sharing is None else service.sharing.allocation
    if at_once is not None:
        mean_s = service_mean_s(service)
        return RateCurve(mean_s, mean_s / at_once)
    curve = service.rate_curve
    assert curve is not None, "a service has slots, sharing or a rate curve"
    return RateCurve(curve.half / curve.capacity, 1.0 / curve.capacity)


def _mix(lines: list[LineRate]) -> tuple[float, float]:
    """Mean prompt and output tokens, weighted by rate; of the lines alike where all rates are 0."""
    total = sum(line.rate_per_s for line in lines)
    weights = [line.rate_per_s / total for line in lines] if total > 0.0 else [1.0 / len(lines)] * len(lines)
    return (
        sum(weight * line.prompt_mean for weight, line in zip(weights, lines, strict=True)),
        sum(weight * line.output_mean for weight, line in zip(weights, lines, strict=True)),
    )


def _capacities(scenario: Scenario, root: str, prompt_mean: float, output_mean: float) -> list[float]:
    """Capacity of the allowed cells of each of a root's lines, requests per second."""
    per_cell = {
        name: cell_capacity_per_s(scenario, name, prompt_mean, output_mean) for name in scenario.cells
    }
    return [
        sum(per_cell[name] for name in allowed_cells(scenario, root, index))
        for index in range(len(scenario.roots[root].traffic))
    ]


def line_means(scenario: Scenario, line: Traffic) -> tuple[float, float]:
    """Mean prompt and output tokens of one line of traffic."""
    if line.trace is None:
        words = scenario.classes[line.class_]
        return mean_prompt_tokens(scenario, line.class_), mean_tokens(words.output_tokens)
    rows = trace_window(scenario, line.trace)
    if len(rows) == 0:
        return 1.0, 1.0
    return float(rows.prompt_tokens.mean()), float(rows.output_tokens.mean())


def _mean_rate(scenario: Scenario, root: Root, index: int, capacity_per_s: float) -> float:
    line = root.traffic[index]
    if line.trace is not None:
        return _trace_rate(scenario, line.trace, line.weight)
    rates = _stage_rates(line, capacity_per_s)
    if line.stages is None:
        return rates[0]
    return sum(piece.arrivals for piece in pieces_of(line, rates, scenario.duration)) / scenario.duration


def _peak_rate(scenario: Scenario, root: str, index: int) -> float:
    line = scenario.roots[root].traffic[index]
    pieces = pieces_of(line, stage_rates(scenario, root, index), scenario.duration)
    return max((piece.rate_per_s for piece in pieces), default=0.0)


def _stage_rates(line: Traffic, capacity_per_s: float) -> list[float]:
    stages = [line] if line.stages is None else list(line.stages)
    rates = []
    for stage in stages:
        assert stage.rate is not None or stage.load is not None, "a trace has no stages"
        rates.append(stage.rate if stage.rate is not None else (stage.load or 0.0) * capacity_per_s)
    return rates


def _trace_rate(scenario: Scenario, name: str, weight: float) -> float:
    """A line's share of the rows of the window, over the length of the window or of the run, if that is shorter."""
    rows = trace_window(scenario, name)
    total = sum(each for _, _, each in trace_lines(scenario, name))
    return len(rows) / _window_s(scenario, name) * weight / total


def _window_s(scenario: Scenario, name: str) -> float:
    trace = scenario.traces[name]
    if trace.for_ is not None:
        return min(scenario.duration, trace.for_ / trace.rate_factor)
    # Without `for` the window ends with the file, which may be before the run does.
    all_rows = read_trace(trace, seed=scenario.seed, stretch=scenario.stretch)
    last_s = float(all_rows.at_s[-1]) if len(all_rows) else 0.0
    return min(scenario.duration, last_s) if last_s > 0.0 else scenario.duration
