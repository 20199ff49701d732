"""Slowdown: the sojourn of a request over what it would be in an empty system.

The empty system has the same links, at their mean delays, and the same servers, at the speed of their profiles: the
request travels to the nearest of its allowed cells (in travel and service together), is prefilled in chunks, decoded
alone, and travels back. Where service is drawn and not made of tokens, its mean stands for it. So a heavy request
and a light one can be compared: a slowdown of 2 means that half of the stay was waiting or sharing.

A request without an answer counts with the sojourn that it is known to have had at least, as in `sojourn.py`.
"""

from __future__ import annotations

import numpy as np

from testbed.analysis.records import Floats, Table
from testbed.analysis.sojourn import Waits, percentiles, sojourns
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology, root_name
from testbed.serving.profile import Profile
from testbed.theory.path_delays import PathDelays
from testbed.traffic.capacity import allowed_cells, cell_curve, cell_profile


def slowdown(requests: Table, scenario: Scenario, topology: Topology, end_s: float) -> dict[str, float]:
    """Mean and percentiles of the slowdown, the number of requests, and how many are lower bounds.

    Args:
        requests: rows of the table.
        scenario: in scenario time.
        topology: of the scenario.
        end_s: when the run ended.
    """
    waits = sojourns(requests, scenario, end_s)
    alone_s = empty_sojourns_s(requests, scenario, topology)
    return percentiles(Waits(waits.seconds / alone_s, waits.censored))


def empty_sojourns_s(requests: Table, scenario: Scenario, topology: Topology) -> Floats:
    """Sojourn of each request in an empty system, seconds, in the order of the rows."""
    delays = PathDelays(topology)
    found = np.full(len(requests["root"]), np.nan)
    for root, words in scenario.roots.items():
        for index, line in enumerate(words.traffic):
            mine = (requests["root"] == root_name(root)) & (requests["class"] == line.class_)
            prompt, output = requests["prompt_tokens"][mine], requests["output_tokens"][mine]
            of_cells = [
                _travel_s(delays, root, cell) + _service_s(scenario, cell, prompt, output)
                for cell in allowed_cells(scenario, root, index)
            ]
            # several lines of one class: the nearest of all their cells
            found[mine] = np.fmin(found[mine], np.min(of_cells, axis=0))
    return found


def alone_s(profile: Profile, prompt_tokens: Floats, output_tokens: Floats) -> Floats:
    """Time of requests on an idle server of this profile, seconds; all of shape (requests,).

    The steps of its prefill, the last of which makes the first token, then one step for each further token, with its
    growing context.
    """
    chunks = np.maximum(1.0, np.ceil(prompt_tokens / profile.step_tokens))
    further = output_tokens - 1
    context = further * prompt_tokens + further * output_tokens / 2
    return np.asarray(
        (chunks + further) * profile.decode_a_s
        + profile.prefill_b_s * prompt_tokens
        + profile.decode_b_s * further
        + profile.decode_c_s * context
    )


def _service_s(scenario: Scenario, cell: str, prompt: Floats, output: Floats) -> Floats:
    profile = cell_profile(scenario.cells[cell], scenario.stretch)
    if profile is not None:
        return alone_s(profile, prompt, output)
    curve = cell_curve(scenario, cell, 1.0, 1.0)
    # k slots alone take their mean service, S = alpha; a shared server alpha + beta with the request itself
    service = scenario.cells[cell].service
    by_itself = 0.0 if service is not None and service.slots is not None else 1.0
    return np.full(len(prompt), curve.latency_s(by_itself))


def _travel_s(delays: PathDelays, root: str, cell: str) -> float:
    outside = [delays.between(root, cell, path) for path in ("request", "reply")]
    inside = [delays.inside(cell, path) for path in ("request", "reply")]
    return sum(delay.mean_s for delay in (*outside, *inside) if delay is not None)
