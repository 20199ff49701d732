"""Shared cores and their antagonist by hand; their statistics are in tests/laws."""

import math

import pytest

from testbed.draw import key_base
from testbed.serving.antagonist import Antagonist
from testbed.serving.cores import SharedCores
from testbed.serving.service import clipped_normal_mean, fixed_work, normal_work
from tests.serving.service_play import Action, act, play, request

LEVELS, PROBABILITIES = (12.0, 6.0, 5.0), (0.80, 0.15, 0.05)


def cores(allocation: float, antagonist: Antagonist | None = None) -> SharedCores:
    """A server whose requests take a core for one second."""
    return SharedCores(
        allocation=allocation, mean_s=1.0, draw=fixed_work, class_count=1, antagonist=antagonist
    )


def neighbours(every_s: float = 10.0, server: str = "us/server-1") -> Antagonist:
    """The antagonist of the published testbed."""
    return Antagonist(LEVELS, PROBABILITIES, every_s, key_base(1, server, "antagonist"))


def test_requests_up_to_the_cores_do_not_disturb_each_other() -> None:
    """Two on two cores take a second each; four take two seconds."""
    for count, sojourn_s in ((1, 1.0), (2, 1.0), (4, 2.0)):
        served = play(cores(2), [Action(1.0, request(identity)) for identity in range(count)]).served

        assert [one.finished_at_s for one in served] == [1.0 + sojourn_s] * count


def test_busy_time_counts_cores_in_use_per_core_of_the_allocation() -> None:
    server = cores(4)
    server.admit(request(0), 0.0)
    server.admit(request(1), 0.0)

    assert server.busy_s(0.5) == 0.25
    assert server.busy_s(7.0) == 0.5


def test_a_change_of_the_cores_touches_the_remaining_work_at_once() -> None:
    """Two requests on one core until t, on two from then on: each has done t / 2, and needs 1 - t / 2 more."""
    antagonist = Antagonist([1.0], [1.0], 1.0, key_base(1, "us/server-1", "antagonist"))
    change_s = antagonist.next_change_s
    server = cores(1, antagonist)
    server.admit(request(0), change_s - 0.5)
    server.admit(request(1), change_s - 0.5)
    assert server.next_event_s() == change_s
    antagonist._levels = (2.0,)

    served = server.advance(change_s) + server.advance(change_s + 1.0)

    assert [one.finished_at_s for one in served] == pytest.approx([change_s + 0.75] * 2)


def test_a_late_advance_gives_the_planned_instants_across_changes() -> None:
    actions = [Action(0.05 * identity, request(identity)) for identity in range(200)]
    late = cores(6, neighbours(0.3))
    for action in actions:
        act(late, action)

    assert late.advance(100.0) == play(cores(6, neighbours(0.3)), actions).served
    assert late.next_event_s() == math.inf


def test_the_antagonist_keeps_its_probabilities_and_its_mean_time() -> None:
    """20,000 redraws: binomial within four standard errors, the mean time within four of 1 / sqrt(20,000)."""
    antagonist = neighbours()
    counts = dict.fromkeys(LEVELS, 0)
    for _ in range(20_000):
        counts[antagonist.cores] += 1
        antagonist.change()

    for level, probability in zip(LEVELS, PROBABILITIES, strict=True):
        error = math.sqrt(probability * (1 - probability) / 20_000)
        assert counts[level] / 20_000 == pytest.approx(probability, abs=4 * error)
    assert antagonist.next_change_s / 20_001 == pytest.approx(10.0, rel=4 / math.sqrt(20_000))


def test_the_antagonists_of_two_servers_differ_and_each_is_the_same_again() -> None:
    def changes(server: str) -> list[float]:
        antagonist = neighbours(server=server)
        return [antagonist.change() or antagonist.next_change_s for _ in range(5)]

    assert changes("us/server-1") == changes("us/server-1")
    assert changes("us/server-1") != changes("us/server-2")


def test_normal_work_is_clipped_at_zero_and_has_mean_one() -> None:
    """A sixth of the draws is 0 where mean and standard deviation are equal; four standard errors of 50,000 draws."""
    draw = normal_work(key_base(1, "work"), 0.08, 0.08)
    demands = [draw(request(identity)) for identity in range(50_000)]

    assert clipped_normal_mean(0.08, 0.08) == pytest.approx(1.0833 * 0.08, rel=1e-4)
    assert clipped_normal_mean(0.08, 0.0) == 0.08
    assert min(demands) == 0.0
    assert demands.count(0.0) / 50_000 == pytest.approx(0.1587, abs=4 * 0.0016)
    assert sum(demands) / 50_000 == pytest.approx(1.0, abs=4 * 0.8 / math.sqrt(50_000))
