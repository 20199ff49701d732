import math

import numpy as np
import pytest

from testbed.analysis.records import Window
from testbed.analysis.regret import Candidates, candidate_matrices, regret, regret_of
from tests.analysis.made_arms import made_scenario

NAN = math.nan


def one(chosen, believed, true, on_arrival, sojourn_s, looks=True):
    rows = (np.array([each], float) for each in (believed, true, on_arrival, sojourn_s))
    return regret_of(Candidates(np.array([chosen]), *rows), np.array([looks]))


def test_the_three_parts_add_up_to_what_the_choice_cost():
    """Believed best: a. True best then: b. On arrival: c. Their sojourns there are 5, 3 and 2 s."""
    found = one(0, [1, 2, 3], [4, 1, 2], [5, 3, 2], [5, 3, 2])

    assert (found.staleness, found.transit, found.rule) == (2.0, 1.0, 0.0)
    assert found.total == 3.0
    assert found.wrong_choice_fraction == 1.0


def test_what_a_rule_gives_away_though_it_knows_all_is_its_own():
    """The second best was chosen, as by the better of two that did not see the best: so it would be on the truth."""
    found = one(1, [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3])

    assert (found.staleness, found.transit, found.rule) == (0.0, 0.0, 1.0)


def test_a_rule_that_never_looks_would_pick_the_same_on_any_truth():
    found = one(0, [1, 2, 3], [4, 1, 2], [5, 3, 2], [5, 3, 2], looks=False)

    assert (found.staleness, found.transit, found.rule) == (0.0, 0.0, 3.0)


def test_among_equals_the_choice_is_no_mistake():
    found = one(1, [1, 1, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1])

    assert found.total == 0.0
    assert found.wrong_choice_fraction == 0.0


def test_among_equals_that_were_not_chosen_their_mean_counts():
    """On the truth at the decision, b and c are equally good: 2 and 4 s on arrival, 3 s in the mean."""
    found = one(0, [1, 2, 3], [9, 1, 1], [5, 2, 4], [5, 2, 4])

    assert found.staleness == pytest.approx(2.0)
    assert found.transit == pytest.approx(1.0)


def test_cells_that_were_no_candidates_are_left_out():
    found = one(0, [1, 2, NAN], [3, 1, NAN], [3, 1, NAN], [3, 1, NAN])

    assert found.staleness == 2.0


def test_decisions_whose_request_never_arrived_are_left_out():
    decisions = {
        "request_id": np.array([4, 4, 9, 9]),
        "cell": np.array(["us", "eu", "us", "eu"], object),
        "root": np.array(["root.west"] * 4, object),
        "used_at_s": np.array([6.0, 6.0, 7.0, 7.0]),
        "chosen": np.array([True, False, False, True]),
        "believed_cost": np.array([1.0, 2.0, 2.0, 1.0]),
        "true_cost": np.array([3.0, 1.0, 1.0, 1.0]),
        "true_cost_at_arrival": np.array([3.0, 2.0, NAN, NAN]),
        "true_sojourn_at_arrival_s": np.array([3.0, 2.0, NAN, NAN]),
    }
    requests = {"class": np.array(["sand"] * 10, object)}
    tables = {"requests": requests, "decisions": decisions}

    found = regret(made_scenario("greedy"), tables, Window(5.0, 20.0))

    assert found.decisions == 1
    assert found.staleness == 1.0
    candidates, first = candidate_matrices(decisions, ["us", "eu"])
    assert candidates.chosen.tolist() == [0, 1]
    assert first.tolist() == [True, False, True, False]


def test_without_decisions_there_is_no_regret():
    assert math.isnan(regret(made_scenario("greedy"), {"requests": {}}, Window(5.0, 20.0)).total)
