import numpy as np
import pytest

from testbed.analysis.herd import largest_herd
from testbed.analysis.movement import bounces, bounces_per_minute, migration_per_minute
from testbed.analysis.records import Window
from testbed.analysis.routing_shares import StreamShares, stream_kind, stream_shares
from tests.analysis.made_arms import made_requests, made_scenario, made_updates, steady, swinging

HALF_A_MINUTE = Window(10.0, 40.0)


def stream(weight, at_s, shares):
    return StreamShares("root.west", "sand", "moved", weight, np.array(at_s), np.array(shares))


def test_migration_is_half_the_sum_of_the_changes_weighted_by_requests():
    """Three quarters of the traffic move a half, one quarter moves nothing: 0.375 in half a minute."""
    streams = [
        stream(0.75, [10.0, 20.0], [[1.0, 0.0], [0.5, 0.5]]),
        stream(0.25, [10.0], [[0.5, 0.5]]),
    ]

    assert migration_per_minute(streams, HALF_A_MINUTE) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("top", "count"), [([0, 1, 0], 1), ([0, 0, 1, 1, 0, 1], 2), ([0, 1, 2, 0], 0), ([0, 0], 0), ([], 0)]
)
def test_a_bounce_is_a_change_back_to_the_cell_before(top, count):
    assert bounces(np.array(top, int)) == count


def test_the_top_cell_is_that_of_all_roots_together():
    """One root goes to and fro, but the other one's traffic outweighs it."""
    to_and_fro = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    streams = [stream(0.4, [10.0, 20.0, 30.0], to_and_fro), stream(0.6, [10.0], [[1.0, 0.0]])]
    edges = np.array([10.0, 20.0, 30.0, 40.0])

    assert bounces_per_minute(streams, HALF_A_MINUTE, edges) == 0.0
    assert bounces_per_minute(streams[:1], HALF_A_MINUTE, edges) == pytest.approx(2.0)


def test_a_static_split_moves_nothing_though_its_counts_do():
    scenario = made_scenario("static")
    requests = made_requests(scenario, steady(0.44, 0.34, 0.22))
    streams = stream_shares(scenario, {"requests": requests}, Window(5.0, 20.0))

    assert [each.kind for each in streams] == ["fixed"] * 3
    assert migration_per_minute(streams, Window(5.0, 20.0)) == 0.0
    assert sum(each.weight for each in streams) == pytest.approx(1.0)


def test_probabilities_that_moved_are_taken_as_they_were():
    scenario = made_scenario("flow")
    shares = swinging(0.8, 2.0)
    updates = made_updates(scenario, shares)
    tables = {"requests": made_requests(scenario, shares), "updates": updates}
    window = Window(5.0, 20.0)

    streams = stream_shares(scenario, tables, window)

    first = (updates["root"] == "root.west") & (updates["cell"] == "us")
    inside = first & window.holds(updates["used_at_s"])
    assert [each.kind for each in streams] == ["moved"] * 3
    assert streams[0].shares[1:, 0] == pytest.approx(updates["probability"][inside])
    assert stream_kind(made_scenario("greedy"), {}, "west", "sand") == "chosen"


def test_a_herd_is_the_largest_share_of_a_period_less_the_usual_one():
    """Ten arrivals in each of two periods, all of the second ones at us, which has 0.7 of all."""
    scenario = made_scenario("greedy", duration="5.2 s")
    at_leaf = np.concatenate((5.0 + 0.01 * np.arange(10), 5.1 + 0.001 + 0.009 * np.arange(10)))
    cell = np.array(["us"] * 4 + ["eu"] * 6 + ["us"] * 10, object)

    herd = largest_herd(scenario, {"at_leaf_s": at_leaf, "cell": cell}, Window(5.0, 5.2))

    assert herd.size == pytest.approx(1.0 - 0.7)
    assert (herd.cell, herd.arrivals) == ("us", 10)
    assert herd.at_s == pytest.approx(5.1)
