"""The prefix cache: what it finds, what it lets go of first, and what a hit saves in the batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.serving.batch import Batch
from testbed.serving.prefix_cache import PrefixCache
from testbed.serving.profile import Profile
from tests.serving.service_play import Action, play, request

SYSTEM, OTHER_SYSTEM, ANNE, BEN = 1, 2, 11, 12
PREFILL = Profile(
    "prefill", 1.0, 0.0, 0.0, 1.0, 1000, 10, 500, "made for tests: a second a step, and one a token"
)


def test_a_prompt_is_found_up_to_the_first_segment_that_is_not_held_whole() -> None:
    cache = PrefixCache(1000)
    cache.hold((SYSTEM, 100, ANNE, 20), 0.0)

    assert cache.match((SYSTEM, 100, ANNE, 50)) == 120  # her next turn
    assert cache.match((SYSTEM, 100, ANNE, 5)) == 105  # an earlier one
    assert cache.match((SYSTEM, 100, BEN, 20)) == 100
    assert cache.match((OTHER_SYSTEM, 100, ANNE, 20)) == 0
    assert cache.match((SYSTEM, 130, ANNE, 20)) == 100
    assert cache.match(()) == 0


def test_what_was_used_least_recently_goes_first_and_a_tail_before_its_head() -> None:
    cache = PrefixCache(100)
    cache.hold((SYSTEM, 40, ANNE, 20), 0.0)
    cache.hold((SYSTEM, 40, BEN, 30), 1.0)

    cache.hold(
        (
            OTHER_SYSTEM,
            25,
        ),
        2.0,
    )

    assert cache.match((SYSTEM, 40, ANNE, 20)) == 45  # the end of her part went
    assert cache.match((SYSTEM, 40, BEN, 30)) == 70
    assert cache.tokens == 100


def test_a_use_counts_like_a_new_prompt() -> None:
    cache = PrefixCache(100)
    cache.hold((ANNE, 50), 0.0)
    cache.hold((BEN, 50), 1.0)

    assert cache.use((ANNE, 60), 2.0) == 50
    cache.hold((SYSTEM, 50), 3.0)

    assert (cache.match((ANNE, 50)), cache.match((BEN, 50))) == (50, 0)


def test_what_is_too_old_is_forgotten() -> None:
    cache = PrefixCache(100)
    cache.hold((ANNE, 50), 0.0)
    cache.hold((BEN, 40), 1.0)

    cache.forget(1.0)

    assert (cache.match((ANNE, 50)), cache.match((BEN, 40)), cache.tokens) == (0, 40, 40)


def test_a_prompt_longer_than_the_cache_keeps_its_beginning() -> None:
    cache = PrefixCache(100)

    cache.hold((SYSTEM, 80, ANNE, 80), 0.0)

    assert cache.match((SYSTEM, 80, ANNE, 80)) == 100


chains = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 60)), max_size=60).map(
    # a head that hangs on nothing and a tail that hangs on its head, as keys have to
    lambda drawn: [(head, 20 + head, 10 * head + 100 + tail, tokens) for head, tail, tokens in drawn]
)


@given(chains=chains, capacity=st.integers(1, 200))
def test_the_bound_holds_and_no_head_goes_before_its_tails(
    chains: list[tuple[int, ...]], capacity: int
) -> None:
    cache = PrefixCache(capacity)

    for at_s, chain in enumerate(chains):
        cache.use(chain, float(at_s))
        cache.hold(chain, float(at_s))

        assert cache.tokens <= capacity
        assert cache.match(chain) == min(chain[1] + chain[3], capacity)
        for head, tokens, tail, _ in chains:
            if cache.match((tail, 1)):
                assert cache.match((head, tokens)) == tokens


def test_a_hit_shortens_the_prefill_by_what_was_cached() -> None:
    """A turn of 30 behind 100 tokens: all are prefilled the first time, 20 new ones in the next turn."""
    turns = [
        Action(0.0, request(0, 130, 2, session=ANNE, prefix=(SYSTEM, 100, ANNE, 30))),
        Action(1000.0, request(1, 152, 2, session=ANNE, prefix=(SYSTEM, 100, ANNE, 52))),
        Action(2000.0, request(2, 110, 2, session=BEN, prefix=(SYSTEM, 100, BEN, 10))),
    ]

    first, second, other = play(Batch(PREFILL, 1, prefix_cache=PrefixCache(1000)), turns).served

    assert (first.cached_tokens, first.first_token_at_s) == (0, 131.0)
    assert (second.cached_tokens, second.first_token_at_s) == (132, 1021.0)  # her answer of 2 tokens too
    assert (other.cached_tokens, other.first_token_at_s) == (100, 2011.0)


def test_one_token_is_always_prefilled_and_no_answer_is_cached_outside_a_session() -> None:
    prompt = request(0, 50, 5, prefix=(SYSTEM, 50))
    actions = [
        Action(0.0, prompt),
        Action(1000.0, prompt),
        Action(2000.0, request(1, 55, 1, prefix=(SYSTEM, 55))),
    ]

    _, again, longer = play(Batch(PREFILL, 1, prefix_cache=PrefixCache(1000)), actions).served

    assert (again.cached_tokens, again.first_token_at_s) == (49, 1002.0)
    assert longer.cached_tokens == 50


def test_requests_prefilled_together_all_compute_their_common_prefix() -> None:
    actions = [Action(0.0, request(i, 40, 1, prefix=(SYSTEM, 40))) for i in range(3)]

    served = play(Batch(PREFILL, 1, prefix_cache=PrefixCache(1000)), actions).served

    assert [one.cached_tokens for one in served] == [0, 0, 0]
    # ... those admitted together; one that comes a moment later waits for the boundary and finds it
    late = play(
        Batch(PREFILL, 1, prefix_cache=PrefixCache(1000)),
        [*actions, Action(1.0, request(9, 40, 1, prefix=(SYSTEM, 40)))],
    )
    assert late.served[-1].cached_tokens == 39


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(AssertionError, match="a cache of 0 tokens"):
        PrefixCache(0)
