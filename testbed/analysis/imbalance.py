"""How unevenly the cells are loaded, counted in requests and in work.

At each sample of the truth every cell has a load per capacity: requests in flight over the requests per second that it
can complete, or work left over its servers. The imbalance of that instant is max/mean - 1 over the cells; what is
reported is its mean over the instants at which anything was in flight. 0.5 means that at a typical instant the fullest
cell holds half as much again as an even load would give it. The same among the equal servers of a cell, as the mean
over the cells that have several.

The work left of a request is prefill_b * (prompt left) + (b + c * context) * (output left), seconds of its server; the
context of running sequences is what they hold of the KV memory. A service model without tokens has work 1/capacity
a request, so both counts agree.

Source: measures.md, section 4.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.analysis.records import Floats, Table, Window, codes, row_count, rows
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology
from testbed.traffic.capacity import cell_divisor_per_s, cell_profile


class Imbalance(NamedTuple):
    """max/mean - 1 of the load per capacity, in requests and in work; NaN where nothing was in flight."""

    requests: float
    work: float


class ServerLoads(NamedTuple):
    """Requests in flight and work left of every server, by sample period: shapes (servers, periods), NaN: no sample."""

    requests: Floats
    work_s: Floats


def imbalance_of_cells(
    scenario: Scenario, loads: dict[str, ServerLoads], prompt_mean: float, output_mean: float
) -> Imbalance:
    """Among the cells.

    Args:
        scenario: of the arm.
        loads: of the servers of each cell.
        prompt_mean: mean prompt tokens of the requests, for the capacities.
        output_mean: mean output tokens.
    """
    requests = [
        _sum_known(each.requests) / cell_divisor_per_s(scenario, cell, prompt_mean, output_mean)
        for cell, each in loads.items()
    ]
    work = [_sum_known(each.work_s) / scenario.cells[cell].servers for cell, each in loads.items()]
    return Imbalance(mean_imbalance(np.array(requests)), mean_imbalance(np.array(work)))


def imbalance_within_cells(loads: dict[str, ServerLoads]) -> Imbalance:
    """Among the servers of a cell: the mean over the cells with several servers."""
    several = [each for each in loads.values() if len(each.requests) > 1]
    return Imbalance(
        _mean_known([mean_imbalance(each.requests) for each in several]),
        _mean_known([mean_imbalance(each.work_s) for each in several]),
    )


def mean_imbalance(loads: Floats) -> float:
    """Mean over time of max/mean - 1 over the rows, at instants where all are known and not all are 0.

    Args:
        loads: load per capacity, shape (targets, instants).
    """
    if len(loads) == 0:
        return math.nan
    means = loads.mean(axis=0)
    known = means > 0  # False for NaN, too
    return float(np.mean(loads.max(axis=0)[known] / means[known]) - 1.0) if known.any() else math.nan


def server_loads(scenario: Scenario, samples: Table, window: Window) -> dict[str, ServerLoads]:
    """The samples of every cell's servers in the window, those of one sample period as if of one instant."""
    if not row_count(samples) or "prompt_tokens" not in samples:
        return {}
    samples = rows(samples, window.holds(samples["at_s"]))
    period_s = scenario.records.samples
    period = np.floor((samples["at_s"] - window.from_s) / period_s * (1 + 1e-12)).astype(np.int64)
    count = int(period.max()) + 1 if len(period) else 0
    servers = build_topology(scenario).servers
    return {
        cell: ServerLoads(*_pivoted(scenario, cell, list(servers[cell]), samples, period, count))
        for cell in scenario.cells
    }


def work_left_s(
    scenario: Scenario,
    cell: str,
    requests: Floats,
    running: Floats,
    prompt: Floats,
    output: Floats,
    kv: Floats,
) -> Floats:
    """Seconds of its server that each sample's requests still need; all of shape (samples,).

    Args:
        scenario: unscaled.
        cell: of the servers.
        requests: in flight.
        running: of these, in the batch.
        prompt: prompt tokens still to prefill.
        output: output tokens still to make.
        kv: share of the KV memory in use.
    """
    profile = cell_profile(scenario.cells[cell], scenario.stretch)
    if profile is None:
        return requests * scenario.cells[cell].servers / cell_divisor_per_s(scenario, cell, 1.0, 1.0)
    context = kv * profile.kv_tokens / np.maximum(running, 1)
    per_token_s = profile.decode_b_s + profile.decode_c_s * context
    return np.asarray(profile.prefill_b_s * prompt + per_token_s * output, np.float64)


def _pivoted(
    scenario: Scenario,
    cell: str,
    servers: list[str],
    samples: Table,
    period: npt.NDArray[np.int64],
    count: int,
) -> tuple[Floats, Floats]:
    server = codes(samples["server"], servers)
    mine = server >= 0
    place = (server[mine], period[mine])
    columns = {
        name: samples[name][mine].astype(np.float64)
        for name in ("queued", "running", "prompt_tokens", "output_tokens", "kv_fraction")
    }
    requests = columns["queued"] + columns["running"]
    work_s = work_left_s(
        scenario,
        cell,
        requests,
        columns["running"],
        columns["prompt_tokens"],
        columns["output_tokens"],
        columns["kv_fraction"],
    )
    both = np.full((2, len(servers), count), np.nan)
    both[0][place], both[1][place] = requests, work_s
    return both[0], both[1]


def _sum_known(values: Floats) -> Floats:
    """Sum over the servers that have a sample; NaN where none has."""
    return np.where(np.isfinite(values).any(axis=0), np.nansum(values, axis=0), np.nan)


def _mean_known(values: list[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else math.nan
