"""Closed forms of queueing theory, against each other and their limits."""

from __future__ import annotations

import pytest

from testbed.theory.queueing import erlang_c, md1_wait_s, mm1_sojourn_s


def test_with_one_server_the_share_that_waits_is_the_utilisation() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)


def test_a_larger_group_at_the_same_utilisation_lets_fewer_wait() -> None:
    """Erlang's table: 2 and 10 servers at 0.8 per server."""
    assert erlang_c(2, 1.6) == pytest.approx(0.7111, abs=5e-5)
    assert erlang_c(10, 8.0) == pytest.approx(0.4092, abs=5e-5)


def test_fixed_service_waits_half_as_long_as_exponential_service() -> None:
    wait_s = mm1_sojourn_s(35.0, 0.02) - 0.02

    assert md1_wait_s(35.0, 0.02) == pytest.approx(wait_s / 2)


@pytest.mark.parametrize(
    "law", [lambda: erlang_c(3, 3.0), lambda: mm1_sojourn_s(50.0, 0.02), lambda: md1_wait_s(51.0, 0.02)]
)
def test_without_a_steady_state_there_is_no_mean(law) -> None:
    with pytest.raises(ValueError, match="no steady state"):
        law()
