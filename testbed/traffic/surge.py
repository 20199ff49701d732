"""Requests that are ordered by hand while a run goes on: planned from the order on, on top of the plan of the run.

They are drawn from streams of their own, named after the order, so whoever knows the order (the launcher, the roots, and the
merge afterwards) has the very same requests. Their ids follow those of the plan, in the order of the orders.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from testbed.roles.messages import Surge
from testbed.scenario.fault_plan import Fault
from testbed.scenario.schema import Scenario
from testbed.traffic.arrivals import Piece, draw_arrivals, numpy_stream, pieces_of
from testbed.traffic.capacity import stage_rates
from testbed.traffic.load_faults import Stream, bursts, touches
from testbed.traffic.plan import Plan, RootPlan, joined_plan
from testbed.traffic.sharing import nothing_shared
from testbed.traffic.work import draw_tokens

LEAD_S = 0.05  # run time from an order until its first request: every root is to hear of it before
BY_HAND = frozenset(("demand", "burst"))  # what may be ordered of the load


def surge(scenario: Scenario, fault: Fault) -> Plan:
    """The requests of an order, by their instants: its burst, and what its demand has above the planned one.

    Args:
        scenario: in run time, as the order is; without sessions and prefixes.
        fault: that was ordered.
    """
    later = replace(fault, at_s=fault.at_s + LEAD_S, until_s=fault.until_s + LEAD_S)
    streams = bursts(scenario, later) if fault.words.burst else []
    if fault.words.demand is not None:
        streams += _more(scenario, later, fault.words.demand - 1.0)
    return joined_plan(streams)


def with_surges(plan: Plan, surges: Sequence[Plan]) -> Plan:
    """The plan of a run and behind it the requests that were ordered: a request's id is its position."""
    parts = (plan, *surges)
    return Plan(
        np.concatenate([each.at_s for each in parts]),
        np.concatenate([each.root for each in parts]),
        np.concatenate([each.traffic for each in parts]),
        np.concatenate([each.class_index for each in parts]),
        np.concatenate([each.prompt_tokens for each in parts]),
        np.concatenate([each.output_tokens for each in parts]),
    )


def surge_of_root(found: Plan, root: int, first_id: int, from_s: float) -> Surge:
    """What one root is told of an order: its own requests from this instant on, whose ids begin with `first_id`."""
    mine = np.flatnonzero((found.root == root) & (found.at_s >= from_s))
    return Surge(
        tuple((mine + first_id).tolist()),
        *(
            tuple(getattr(found, name)[mine].tolist())
            for name in ("at_s", "traffic", "class_index", "prompt_tokens", "output_tokens")
        ),
    )


def joined(plan: RootPlan, done: int, more: Surge) -> RootPlan:
    """The plan of a root with more requests among those to come; the first `done` stay where they are."""
    at_s = np.concatenate([np.frombuffer(plan.at_s), np.array(more.at_s, np.float64)])
    order = np.concatenate(
        [np.arange(done), done + np.argsort(at_s[done:], kind="stable")]
    )  # of one instant: the planned ones first

    def column(typecode: str, planned: array[int], added: Sequence[int]) -> array[int]:
        both = array(typecode, planned)
        both.extend(added)
        return array(typecode, [both[i] for i in order])

    return RootPlan(
        column("q", plan.request_ids, more.request_ids),
        array("d", at_s[order].tobytes()),
        column("i", plan.traffic, more.traffic),
        column("i", plan.class_index, more.class_index),
        column("q", plan.prompt_tokens, more.prompt_tokens),
        column("q", plan.output_tokens, more.output_tokens),
    )


def _more(scenario: Scenario, fault: Fault, share: float) -> list[Stream]:
    """Arrivals as the lines of traffic have them, at a share of their rates, while the fault lasts."""
    found = []
    for position, (root, words) in enumerate(scenario.roots.items()):
        for index, line in enumerate(words.traffic):
            if line.trace is not None or not touches(fault, root, line.class_):
                continue
            purpose = f"fault {fault.number}"
            pieces = pieces_of(line, stage_rates(scenario, root, index), scenario.duration)
            during = [part for piece in pieces if (part := _during(piece, fault, share)).arrivals > 0]
            if not during:
                continue
            at_s = draw_arrivals(
                line.arrivals, during, numpy_stream(scenario.seed, root, index, f"{purpose} arrivals")
            )
            words_of_class = scenario.classes[line.class_]
            prompt, output = (
                draw_tokens(
                    tokens, len(at_s), numpy_stream(scenario.seed, root, index, f"{purpose} more {name}")
                )
                for name, tokens in (
                    ("prompt_tokens", words_of_class.prompt_tokens),
                    ("output_tokens", words_of_class.output_tokens),
                )
            )
            class_index = list(scenario.classes).index(line.class_)
            found.append(
                Stream(position, index, class_index, at_s, prompt, output, nothing_shared(len(at_s)))
            )
    return found


def _during(piece: Piece, fault: Fault, share: float) -> Piece:
    """The part of a span in which the fault lasts, at a share of its rate; empty outside of it."""
    low_s = min(max(fault.at_s, piece.at_s), piece.until_s)
    high_s = max(low_s, min(fault.until_s, piece.until_s))
    return Piece(low_s, high_s, piece.rate_per_s * share)
