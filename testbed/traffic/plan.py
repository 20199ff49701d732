"""The plan of a run: every request's arrival, class and tokens, fixed by the seed before the run begins.

It hangs on the seed, the roots, their traffic and the faults of the load alone; every arm and engine that shares
these faces the very same requests. A request's id is its position in the plan.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.errors import RunError
from testbed.scenario.fault_plan import Fault
from testbed.scenario.schema import Scenario, Traffic
from testbed.traffic.arrivals import Piece, draw_arrivals, even_phase, numpy_stream, pieces_of
from testbed.traffic.capacity import stage_rates, trace_lines, trace_window
from testbed.traffic.load_faults import Stream, load_faults, with_demand, with_load_faults
from testbed.traffic.sessions import prompts_in_sessions, shares_prompts
from testbed.traffic.sharing import RootSharing, Sharing, joined_sharing, nothing_shared
from testbed.traffic.trace import deal
from testbed.traffic.work import draw_tokens

# A plan takes 48 bytes a request, in all arrays: this many fit into 5 GB, drawing them included. In a class with
# sessions or prefixes a request takes twice as much, and counts twice.
MOST_REQUESTS = 50_000_000


class RootPlan(NamedTuple):
    """The requests of one root, in the order of their arrival: plain arrays, fast to index, without numpy."""

    request_ids: array[int]
    at_s: array[float]
    traffic: array[int]
    class_index: array[int]
    prompt_tokens: array[int]
    output_tokens: array[int]
    sharing: RootSharing | None = None


@dataclass(frozen=True)
class Plan:
    """All requests of a run; every array of shape (requests,), in the order of the planned instants.

    Attributes:
        at_s: planned arrival, seconds of run time; requests of one instant in the order of their roots.
        root: index of the root.
        traffic: index in the root's lines of traffic.
        class_index: index of the class in the scenario.
        prompt_tokens: at least 1.
        output_tokens: at least 1.
        sharing: sessions and shared prefixes; None where no request has any.
    """

    at_s: NDArray[np.float64]
    root: NDArray[np.int32]
    traffic: NDArray[np.int32]
    class_index: NDArray[np.int32]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    sharing: Sharing | None = None

    @property
    def requests(self) -> int:
        """How many requests are planned; their ids are 0, 1, ... up to it."""
        return len(self.at_s)

    def of_root(self, index: int) -> RootPlan:
        """The requests of the root with this index."""
        ids = np.flatnonzero(self.root == index)
        return RootPlan(
            array("q", ids.astype(np.int64).tobytes()),
            array("d", self.at_s[ids].tobytes()),
            array("i", self.traffic[ids].tobytes()),
            array("i", self.class_index[ids].tobytes()),
            array("q", self.prompt_tokens[ids].tobytes()),
            array("q", self.output_tokens[ids].tobytes()),
            None if self.sharing is None else self.sharing.of_root(ids),
        )


def build_plan(scenario: Scenario) -> Plan:
    """The plan of a scenario in run time (`scaled()`); it may be empty.

    Raises:
        RunError: a trace is missing or malformed, or there would be more than `MOST_REQUESTS` requests.
    """
    faults = load_faults(scenario)
    streams = _drawn_streams(scenario, faults)
    for name in scenario.traces:
        streams += _replayed_streams(scenario, name)
    streams = with_load_faults(scenario, faults, streams)
    return joined_plan(streams)


def joined_plan(streams: list[Stream]) -> Plan:
    """The requests of all lines of traffic as one plan."""
    streams = sorted(streams, key=lambda stream: (stream.root, stream.traffic))
    sharing = joined_sharing([stream.sharing for stream in streams])
    at_s = _joined([stream.at_s for stream in streams], np.float64)
    order = np.argsort(at_s, kind="stable")  # stable: requests of one instant keep the order of the roots
    return Plan(
        at_s[order],
        _joined([np.full(len(s.at_s), s.root) for s in streams], np.int32)[order],
        _joined([np.full(len(s.at_s), s.traffic) for s in streams], np.int32)[order],
        _joined([np.full(len(s.at_s), s.class_index) for s in streams], np.int32)[order],
        _joined([stream.prompt_tokens for stream in streams], np.int64)[order],
        _joined([stream.output_tokens for stream in streams], np.int64)[order],
        sharing.taken(order) if sharing else None,
    )


def _drawn_streams(scenario: Scenario, faults: Sequence[Fault]) -> list[Stream]:
    """The requests of the lines that are drawn, not replayed."""
    lines = [
        (position, root, index, line)
        for position, (root, words) in enumerate(scenario.roots.items())
        for index, line in enumerate(words.traffic)
        if line.trace is None
    ]
    pieces = [
        with_demand(
            pieces_of(line, stage_rates(scenario, root, index), scenario.duration), faults, root, line.class_
        )
        for _, root, index, line in lines
    ]
    _refuse_too_many(
        [2 if shares_prompts(scenario.classes[line.class_]) else 1 for *_, line in lines], pieces
    )
    phases = _even_phases([line for *_, line in lines])
    return [
        _drawn(scenario, *line, spans, phase)
        for line, spans, phase in zip(lines, pieces, phases, strict=True)
    ]


def _drawn(
    scenario: Scenario,
    position: int,
    root: str,
    index: int,
    line: Traffic,
    pieces: list[Piece],
    phase: float,
) -> Stream:
    words = scenario.classes[line.class_]
    streams = {
        purpose: numpy_stream(scenario.seed, root, index, purpose)
        for purpose in ("arrivals", "prompt_tokens", "output_tokens")
    }
    at_s = draw_arrivals(line.arrivals, pieces, streams["arrivals"], phase)
    prompt_tokens = draw_tokens(words.prompt_tokens, len(at_s), streams["prompt_tokens"])
    output_tokens = draw_tokens(words.output_tokens, len(at_s), streams["output_tokens"])
    sharing = nothing_shared(len(at_s))
    if shares_prompts(words):
        rate_per_s = sum(piece.arrivals for piece in pieces) / scenario.duration
        prompt_tokens, sharing = prompts_in_sessions(
            scenario, root, index, rate_per_s, prompt_tokens, output_tokens
        )
    class_index = list(scenario.classes).index(line.class_)
    return Stream(position, index, class_index, at_s, prompt_tokens, output_tokens, sharing)


def _replayed_streams(scenario: Scenario, name: str) -> list[Stream]:
    """The requests of a trace, dealt to the lines that replay it by their weights."""
    lines = trace_lines(scenario, name)
    if not lines:
        return []
    rows = trace_window(scenario, name)
    dealt = deal(rows, [weight for *_, weight in lines], seed=scenario.seed, name=name)
    roots, classes = list(scenario.roots), list(scenario.classes)
    streams = []
    for number, (root, index, _) in enumerate(lines):
        mine = rows.where(dealt == number)
        class_index = classes.index(scenario.roots[root].traffic[index].class_)
        streams.append(
            Stream(
                roots.index(root),
                index,
                class_index,
                mine.at_s,
                mine.prompt_tokens,
                mine.output_tokens,
                mine.sharing,
            )
        )
    return streams


def _even_phases(lines: list[Traffic]) -> list[float]:
    """The phase of every line: evenly spaced lines share a gap among them, in the order of the file."""
    even = [i for i, line in enumerate(lines) if line.arrivals == "evenly_spaced"]
    phases = {i: even_phase(position, len(even)) for position, i in enumerate(even)}
    return [phases.get(i, 0.5) for i in range(len(lines))]


def _refuse_too_many(weights: list[int], pieces: list[list[Piece]]) -> None:
    planned = sum(
        weight * piece.arrivals for weight, spans in zip(weights, pieces, strict=True) for piece in spans
    )
    if planned > MOST_REQUESTS:
        raise RunError(
            f"the scenario plans {planned:.3g} requests; a plan holds at most {MOST_REQUESTS:.3g}:"
            " lower the rates or the duration"
        )


def _joined(parts: list[NDArray[Any]], dtype: type[Any]) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype=dtype)
