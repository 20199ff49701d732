"""The policies as fluid: a block at once gives what its steps give one by one."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.routing.flow import Movement
from testbed.theory.fluid_rule import BetterOfTwo, Gradient

ALLOWED = np.array([[True, True, True], [True, False, True]])
BEFORE = np.array([[0.5, 0.3, 0.2], [0.4, 0.0, 0.6]])


@pytest.mark.parametrize(
    "movement",
    [
        Movement(),
        Movement(follows_cone=True),
        Movement(explore=0.1),
        Movement(max_move=0.03),
        Movement(follows_cone=True, explore=0.25, max_move=0.02),
    ],
)
def test_a_block_of_moves_is_what_the_policy_does_one_by_one(movement: Movement) -> None:
    """Costs of all sizes: cells come in and drop out, and moves are cut."""
    costs = np.random.default_rng(5).exponential(1.0, (40, 2, 3))
    weights_s = np.where(np.arange(40) % 4 == 0, 0.1, 0.0)[:, None] * np.ones(2)
    rule = Gradient(np.array([0.6, 2.0]), movement=movement, updates_per_s=10.0)

    path = rule.shares(costs, weights_s, BEFORE, ALLOWED)

    for line in range(2):
        shares = BEFORE[line].tolist()
        for k in range(0, 40, 4):
            pull = (costs[k, line] * rule.steps[line] * 0.1).tolist()
            shares = movement.apply(shares, [-each for each in pull], ALLOWED[line].tolist())
            assert path[k, line] == pytest.approx(shares, abs=1e-12)
            assert path[k + 3, line] == pytest.approx(shares, abs=1e-12)


def test_the_better_of_two_wins_by_rank_and_ties_share() -> None:
    """Three cells: the best takes 2/3 of the pairs, the second 1/3; of two that tie each has the mean."""
    costs = np.array([[[1.0, 2.0, 3.0], [1.0, 0.0, 2.0]], [[1.0, 1.0 + 1e-15, 3.0], [2.0, 0.0, 1.0]]])

    shares = BetterOfTwo().shares(costs, np.ones((2, 1)), BEFORE, ALLOWED)

    assert shares[:, 0] == pytest.approx(np.array([[2 / 3, 1 / 3, 0.0], [0.5, 0.5, 0.0]]))
    assert shares[:, 1].tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
