"""Chains of all lengths in flat arrays: cut, joined and picked."""

from __future__ import annotations

import numpy as np

from testbed.roles.messages import Request
from testbed.traffic.sharing import Sharing, joined_sharing, key_space, nothing_shared

THREE = Sharing(np.array([5, 0, 6]), np.array([0, 4, 4, 6]), np.array([1, 10, 5, 3, 6, 8]))


def chains(sharing: Sharing) -> list[tuple[int, ...]]:
    mine = sharing.of_root(np.arange(len(sharing.session)))
    return [mine.chain(i) for i in range(len(mine.session))]


def test_requests_are_taken_in_any_order_with_their_chains() -> None:
    taken = THREE.taken(np.array([2, 0, 1, 2]))

    assert chains(taken) == [(6, 8), (1, 10, 5, 3), (), (6, 8)]
    assert taken.session.tolist() == [6, 5, 0, 6]
    assert taken.first_keys().tolist() == [6, 1, 0, 6]
    assert type(taken.of_root(np.array([0])).chain(0)[0]) is int


def test_a_request_carries_its_session_before_its_chain_and_nothing_where_it_shares_nothing() -> None:
    mine = THREE.of_root(np.arange(3))

    assert [mine.shared(i) for i in range(3)] == [(5, 1, 10, 5, 3), None, (6, 6, 8)]
    request = Request(0, 0, 0, 13, 1, mine.shared(0))
    assert (request.session, request.prefix) == (5, (1, 10, 5, 3))
    bare = Request(0, 0, 0, 13, 1)
    assert (bare.session, bare.prefix) == (0, ())


def test_parts_are_joined_one_behind_the_other() -> None:
    joined = joined_sharing([THREE, nothing_shared(2), THREE])

    assert chains(joined) == [*chains(THREE), (), (), *chains(THREE)]
    assert joined.session.tolist() == [5, 0, 6, 0, 0, 5, 0, 6]
    assert joined
    assert not nothing_shared(3)
    assert not joined_sharing([])


def test_every_name_has_keys_of_its_own_and_none_is_zero() -> None:
    spaces = {key_space(1, "session", str(i)) for i in range(1000)} | {key_space(2, "session", "0")}

    assert len(spaces) == 1001
    assert all(space % 2**32 == 0 and 0 < space < 2**63 for space in spaces)
