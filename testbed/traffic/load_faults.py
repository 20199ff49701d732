"""Faults of the load: spikes, steps, bursts, requests that arrive elsewhere, a class that turns heavy.

They are part of the plan of a run, as all arrivals are: fixed before it begins. So arms that share their faults face
the very same requests, and arms whose load faults differ do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.draw import key_base, uniform
from testbed.scenario.fault_plan import Fault, fault_plan
from testbed.scenario.fault_words import LOAD_KEYS
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import build_topology, root_name
from testbed.scenario.words import MOST_TOKENS
from testbed.traffic.arrivals import Piece, numpy_stream
from testbed.traffic.sharing import Sharing, nothing_shared
from testbed.traffic.work import draw_tokens


class Stream(NamedTuple):
    """The requests of one line of traffic; arrays of shape (requests,)."""

    root: int
    traffic: int
    class_index: int
    at_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    sharing: Sharing


def load_faults(scenario: Scenario) -> list[Fault]:
    """The faults of the load, in the order of the timeline."""
    keys = (*sorted(LOAD_KEYS), "shift")
    lines = [kind for line in scenario.faults for kind in (line.random.kinds if line.random else (line,))]
    if not any(getattr(line.setting, key) is not None for line in lines for key in keys):
        return []
    plan = fault_plan(scenario, build_topology(scenario))
    return [fault for fault in plan if any(getattr(fault.words, key) is not None for key in keys)]


def with_demand(pieces: list[Piece], faults: Sequence[Fault], root: str, class_name: str) -> list[Piece]:
    """The spans of constant rate of a line of traffic, each times the demand of the faults at work in it."""
    for fault in faults:
        if fault.words.demand is not None and touches(fault, root, class_name):
            pieces = [part for piece in pieces for part in _split(piece, fault, fault.words.demand)]
    return pieces


def with_load_faults(scenario: Scenario, faults: Sequence[Fault], streams: list[Stream]) -> list[Stream]:
    """The requests as bursts, shifts and heavy classes make them."""
    for fault in faults:
        if fault.words.burst:
            streams = streams + bursts(scenario, fault)
        if fault.words.prompt_tokens is not None or fault.words.output_tokens is not None:
            streams = [_heavier(scenario, fault, stream) for stream in streams]
        if fault.words.shift is not None:
            streams = [part for stream in streams for part in _shifted(scenario, fault, stream)]
    return streams


def touches(fault: Fault, root: str, class_name: str) -> bool:
    """Whether a fault of the load touches the traffic of this class at this root."""
    return root_name(root) in fault.nodes and fault.class_name in (None, class_name)


def _split(piece: Piece, fault: Fault, factor: float) -> list[Piece]:
    """A span, cut where the fault begins and ends."""
    low_s = min(max(fault.at_s, piece.at_s), piece.until_s)
    high_s = min(max(fault.until_s, piece.at_s), piece.until_s)
    parts = (
        Piece(piece.at_s, low_s, piece.rate_per_s),
        Piece(low_s, high_s, piece.rate_per_s * factor),
        Piece(high_s, piece.until_s, piece.rate_per_s),
    )
    return [part for part in parts if part.until_s > part.at_s]


def bursts(scenario: Scenario, fault: Fault) -> list[Stream]:
    """More requests for each root: at once, or evenly over the time of the fault; in turn over its lines."""
    found: list[Stream] = []
    for position, (root, words) in enumerate(scenario.roots.items()):
        lines = [(i, line) for i, line in enumerate(words.traffic) if touches(fault, root, line.class_)]
        at_s = _burst_instants(fault, scenario.duration)
        for turn, (i, line) in enumerate(lines):
            mine = at_s[turn :: len(lines)]
            tokens = scenario.classes[line.class_]
            found.append(
                Stream(
                    position,
                    i,
                    list(scenario.classes).index(line.class_),
                    mine,
                    draw_tokens(
                        tokens.prompt_tokens, len(mine), _numbers(scenario, fault, root, i, "prompt_tokens")
                    ),
                    draw_tokens(
                        tokens.output_tokens, len(mine), _numbers(scenario, fault, root, i, "output_tokens")
                    ),
                    nothing_shared(len(mine)),
                )
            )
    return found


def _numbers(scenario: Scenario, fault: Fault, root: str, index: int, purpose: str) -> np.random.Generator:
    return numpy_stream(scenario.seed, root, index, f"fault {fault.number} {purpose}")


def _burst_instants(fault: Fault, duration_s: float) -> NDArray[np.float64]:
    count = fault.words.burst or 0
    length_s = 0.0 if math.isinf(fault.until_s) else fault.until_s - fault.at_s
    at_s = fault.at_s + length_s * np.arange(count) / max(count, 1)
    return at_s[at_s < duration_s]


def _heavier(scenario: Scenario, fault: Fault, stream: Stream) -> Stream:
    """The requests that arrive while the fault lasts bring so many times as many tokens, from 1 to `MOST_TOKENS`."""
    root = list(scenario.roots)[stream.root]
    if not touches(fault, root, list(scenario.classes)[stream.class_index]):
        return stream
    during = _during(fault, stream)
    return stream._replace(
        prompt_tokens=_times(stream.prompt_tokens, during, fault.words.prompt_tokens),
        output_tokens=_times(stream.output_tokens, during, fault.words.output_tokens),
    )


def _times(tokens: NDArray[np.int64], where: NDArray[np.bool_], factor: float | None) -> NDArray[np.int64]:
    if factor is None:
        return tokens
    return np.where(where, np.clip(np.rint(tokens * factor), 1, MOST_TOKENS), tokens).astype(np.int64)


def _shifted(scenario: Scenario, fault: Fault, stream: Stream) -> list[Stream]:
    """A stream in two: what stays, and what arrives at the other root's line of the same class."""
    shift = fault.words.shift
    assert shift is not None, "only shifts come here"
    roots = list(scenario.roots)
    root = roots[stream.root]
    if shift.to == root or not touches(fault, root, list(scenario.classes)[stream.class_index]):
        return [stream]
    base = key_base(scenario.seed, "shift", str(fault.number), root, str(stream.traffic))
    draws = np.array([uniform(base, i) for i in range(len(stream.at_s))])
    goes = _during(fault, stream) & (draws < shift.share)
    name = list(scenario.classes)[stream.class_index]
    line = next(i for i, each in enumerate(scenario.roots[shift.to].traffic) if each.class_ == name)
    moved = _where(stream, goes)._replace(root=roots.index(shift.to), traffic=line)
    return [_where(stream, ~goes), moved]


def _during(fault: Fault, stream: Stream) -> NDArray[np.bool_]:
    return np.asarray((stream.at_s >= fault.at_s) & (stream.at_s < fault.until_s))


def _where(stream: Stream, kept: NDArray[np.bool_]) -> Stream:
    return stream._replace(
        at_s=stream.at_s[kept],
        prompt_tokens=stream.prompt_tokens[kept],
        output_tokens=stream.output_tokens[kept],
        sharing=stream.sharing.taken(np.flatnonzero(kept)),
    )
