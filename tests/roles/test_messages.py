"""A call back, and the news of a first token, are lost or late apart from the request and the reply that they are about."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.draw import key_base, uniform
from testbed.roles.messages import Cancel, FirstToken, Outcome
from testbed.runtime.wire import pack_frame, unpack_frame


@pytest.mark.parametrize("kind", [Cancel, FirstToken])
@pytest.mark.parametrize("attempt", [0, 1, 300])
def test_the_draws_of_a_call_or_of_news_are_none_of_the_request_s(kind, attempt) -> None:
    base = key_base(1, "link")
    own = np.array([uniform(base, *kind(i, attempt)[:2]) for i in range(4000)])
    for other in (0, 1, 300):
        of_request = np.array([uniform(base, i, other) for i in range(4000)])
        assert abs(np.corrcoef(own, of_request)[0, 1]) < 4 / 4000**0.5


def test_a_call_keeps_what_it_says_over_a_socket_and_under_another_id() -> None:
    call = Cancel(7, 2, int(Outcome.CANCELLED))

    ((_, _, (heard,)),) = unpack_frame(pack_frame([(3, Cancel, [0.5], [call])]))

    assert heard == call
    assert (heard.request_id, heard.attempt, heard.outcome) == (7, 2, Outcome.CANCELLED)
    moved = heard._replace(request_id=9)
    assert (type(moved), moved.request_id, moved.attempt) == (Cancel, 9, 2)
