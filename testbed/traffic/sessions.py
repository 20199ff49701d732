"""Sessions and shared prefixes: which conversation each planned request continues, and how long its prompt becomes.

A line of traffic has a fixed number of sessions under way. Each of its requests is the next turn of one of them,
drawn at random; after each turn a session ends with probability 1 / `turns`, and a new one takes its place. So the
arrivals keep the process and the rate that the line asks for, the time between two turns of a session is exponential
with mean count / rate (for Poisson arrivals), and the number of turns is geometric. At the beginning of the run the
sessions are as old as they are at any time: they have had turns before it, whose tokens stand in their prompts.

The prompt of a turn is the shared prefix of its session, all earlier turns with their answers, and the turn's own
`prompt_tokens`. It is an open loop: a turn comes at its planned instant, answered or not. A class that has prefixes
and no sessions has sessions of one turn.

The same model as the conversations of vLLM's multi-turn benchmark (a request rate and a number of active
conversations).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.draw import key_base
from testbed.scenario.schema import Prefixes, Scenario, Sessions, TrafficClass
from testbed.traffic.arrivals import numpy_stream
from testbed.traffic.sharing import Sharing, Whole, key_space
from testbed.traffic.work import draw_tokens, mean_tokens


class Turns(NamedTuple):
    """Requests in the order of their arrival, each a turn of a session; all of shape (requests,).

    Attributes:
        session: number of the session within its line of traffic, from 0.
        history_tokens: prompts and answers of its earlier turns.
    """

    session: Whole
    history_tokens: Whole


class Beginnings(NamedTuple):
    """The shared prefixes of a class: how long they are, and how popular; shape (prefixes,)."""

    tokens: Whole
    shares: NDArray[np.float64]

    @property
    def mean_tokens(self) -> float:
        """Over sessions."""
        return float((self.tokens * self.shares).sum())


def shares_prompts(words: TrafficClass) -> bool:
    """Whether requests of this class share anything."""
    return words.sessions is not None or words.prefixes is not None


def mean_prompt_tokens(scenario: Scenario, class_name: str) -> float:
    """The mean prompt of a class: of a turn, and of what stands before it.

    A turn taken at random has on average turns - 1 before it (their number is geometric).
    """
    words = scenario.classes[class_name]
    own = mean_tokens(words.prompt_tokens)
    earlier = words.sessions.turns - 1.0 if words.sessions is not None else 0.0
    shared = 0.0 if words.prefixes is None else _beginnings(scenario, class_name, words.prefixes).mean_tokens
    return shared + earlier * (own + mean_tokens(words.output_tokens)) + own


def prompts_in_sessions(
    scenario: Scenario,
    root: str,
    index: int,
    rate_per_s: float,
    turn_tokens: Whole,
    output_tokens: Whole,
) -> tuple[Whole, Sharing]:
    """The whole prompts of a line's requests, and what they share.

    Args:
        scenario: in run time.
        root: name of the root.
        index: of the line in the root's traffic; its class has sessions or prefixes.
        rate_per_s: mean rate of the line.
        turn_tokens: prompt tokens that each turn adds, in the order of arrival; shape (requests,).
        output_tokens: of each answer; shape (requests,).
    """
    class_name = scenario.roots[root].traffic[index].class_
    words = scenario.classes[class_name]
    sessions = words.sessions or Sessions(turns=1.0, count=1)
    count = _under_way(sessions, rate_per_s)
    ages = _earlier_tokens(words, sessions, count, scenario.seed, root, index)
    rng = numpy_stream(scenario.seed, root, index, "sessions")
    turns = take_turns(turn_tokens + output_tokens, ages, sessions.turns, rng)
    session = key_space(scenario.seed, root, str(index), "session") + turns.session
    tail = turns.history_tokens + turn_tokens
    if words.prefixes is None:
        return tail, _chains(session, [session, tail])
    beginnings = _beginnings(scenario, class_name, words.prefixes)
    chance = numpy_stream(scenario.seed, root, index, "prefixes").random(
        int(turns.session.max(initial=0)) + 1
    )
    chosen = np.searchsorted(np.cumsum(beginnings.shares)[:-1], chance, side="right")[turns.session]
    prefix = key_space(scenario.seed, "prefix", class_name) + chosen
    tokens = beginnings.tokens[chosen]
    return tokens + tail, _chains(session, [prefix, tokens, session, tail])


def take_turns(turn_tokens: Whole, earlier_tokens: Whole, turns: float, rng: np.random.Generator) -> Turns:
    """Deal requests to sessions.

    Args:
        turn_tokens: tokens that each request adds to its session, answer included; shape (requests,).
        earlier_tokens: of the sessions that are under way at the beginning; shape (sessions under way,).
        turns: mean number of turns of a session.
        rng: two draws for each request, so a longer plan begins with the shorter one.
    """
    count, number = len(earlier_tokens), len(turn_tokens)
    draws = rng.random((number, 2))
    place = np.minimum((draws[:, 0] * count).astype(np.int64), count - 1)
    ends = draws[:, 1] * turns < 1.0
    order = np.argsort(place, kind="stable")  # place by place, in the order of arrival
    is_first = np.diff(place[order], prepend=-1) != 0  # of its place
    begins = is_first | np.roll(ends[order], 1)  # a session's first turn in the run
    starts, run = np.flatnonzero(begins), np.cumsum(begins) - 1
    before = np.cumsum(turn_tokens[order]) - turn_tokens[order]
    # A session that begins in the run is numbered by the turn that ended the one before it in its place.
    opened = np.where(is_first, place[order], count - 1 + np.roll(np.cumsum(ends)[order], 1))[starts]
    aged = np.where(is_first, earlier_tokens[place[order]], 0)[starts]
    turned = Turns(np.empty(number, np.int64), np.empty(number, np.int64))
    turned.session[order] = opened[run]
    turned.history_tokens[order] = before - before[starts][run] + aged[run]
    return turned


def _under_way(sessions: Sessions, rate_per_s: float) -> int:
    """Sessions under way: as given, or as many as have a turn due (Little's law)."""
    if sessions.count is not None:
        return sessions.count
    assert sessions.think_time is not None, "sessions have a count or a think time"
    return max(1, round(rate_per_s * sessions.think_time))


def _earlier_tokens(
    words: TrafficClass, sessions: Sessions, count: int, seed: int, root: str, index: int
) -> Whole:
    """Tokens that the sessions under way have gathered before the run; shape (count,)."""
    turns = numpy_stream(seed, root, index, "earlier_turns").geometric(1.0 / sessions.turns, count) - 1
    total = int(turns.sum())
    tokens = sum(
        draw_tokens(each, total, numpy_stream(seed, root, index, f"earlier_{name}"))
        for name, each in (("prompt", words.prompt_tokens), ("output", words.output_tokens))
    )
    gathered = np.bincount(np.repeat(np.arange(count), turns), weights=tokens, minlength=count)
    return gathered.astype(np.int64)


def _beginnings(scenario: Scenario, class_name: str, words: Prefixes) -> Beginnings:
    rng = np.random.Generator(np.random.PCG64(key_base(scenario.seed, "prefix_tokens", class_name)))
    weights = np.arange(1, words.count + 1, dtype=np.float64) ** -words.zipf
    return Beginnings(draw_tokens(words.tokens, words.count, rng), weights / weights.sum())


def _chains(session: Whole, columns: list[Whole]) -> Sharing:
    """The sharing of requests whose chains are all of one length."""
    starts = np.arange(len(session) + 1, dtype=np.int64) * len(columns)
    return Sharing(session, starts, np.stack(columns, axis=1).reshape(-1).astype(np.int64))
