"""Queueing theory, which the service models may not break. Each law with its seed and its tolerance.

Means of correlated sojourns have their standard error from batch means: fifty batches, long against the
correlation. Source of the closed forms: Kleinrock, Queueing Systems, vol. 1 (1975), chapters 3 and 5, and vol. 2
(1976), section 4.4; insensitivity: Baskett, Chandy, Muntz and Palacios, J. ACM 22 (1975).
"""

import math
from collections.abc import Iterable

import numpy as np
import pytest

from testbed.draw import key_base
from testbed.roles.messages import Request
from testbed.serving.antagonist import Antagonist
from testbed.serving.batch import Batch
from testbed.serving.cores import SharedCores
from testbed.serving.profile import PROFILES
from testbed.serving.service import Served, ServiceModel, exponential_work, fixed_work, normal_work
from testbed.serving.sharing import ProcessorSharing
from testbed.serving.slots import Slots

REQUESTS = 200_000
BATCHES = 50
EXPONENTIAL = exponential_work(key_base(7, "work"))


class Run:
    """Requests at given instants, served to the end, and the area under the number of them that were there."""

    def __init__(
        self, server: ServiceModel, arrivals_s: Iterable[float], *, prompt: int = 1, output: int = 1
    ) -> None:
        """Run it; the server begins and ends empty."""
        self.served: list[Served] = []
        self.request_seconds = 0.0
        self.server = server
        self._seen_s = 0.0
        for identity, at_s in enumerate(arrivals_s):
            self._advance_to(at_s)
            self._see(at_s)
            server.admit(Request(identity, 0, 0, prompt, output), at_s)
        self._advance_to(math.inf)
        self.end_s = self._seen_s

    def _advance_to(self, until_s: float) -> None:
        while (due_s := self.server.next_event_s()) <= until_s and due_s < math.inf:
            self._see(due_s)
            self.served += self.server.advance(due_s)

    def _see(self, now_s: float) -> None:
        self.request_seconds += (self.server.queued + self.server.running) * (now_s - self._seen_s)
        self._seen_s = now_s

    def sojourns_s(self) -> np.ndarray:
        """Shape (requests,), seconds, in order of arrival."""
        rows = sorted((one.request.request_id, one.finished_at_s - one.at_server_s) for one in self.served)
        return np.array(rows)[:, 1]

    def waits_s(self) -> np.ndarray:
        """Shape (requests,), seconds, in order of arrival."""
        rows = sorted((one.request.request_id, one.started_at_s - one.at_server_s) for one in self.served)
        return np.array(rows)[:, 1]


def poisson(rate_per_s: float, seed: int, count: int = REQUESTS) -> list[float]:
    """The instants of a Poisson process."""
    gaps_s = np.random.default_rng(seed).exponential(1 / rate_per_s, count)
    return list(np.cumsum(gaps_s).tolist())


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error by batch means; the first batch is the warm-up and is left out."""
    means = values.reshape(BATCHES, -1).mean(axis=1)[1:]
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(len(means)))


def erlang_c(servers: int, offered: float) -> float:
    """The probability that an arrival waits in an M/M/c queue."""
    last = offered**servers / math.factorial(servers) / (1 - offered / servers)
    return last / (sum(offered**n / math.factorial(n) for n in range(servers)) + last)


def test_mm1_mean_sojourn() -> None:
    """1 / (mu - lambda), within four standard errors."""
    run = Run(Slots(slots=1, mean_s=1.0, draw=EXPONENTIAL, class_count=1), poisson(0.7, seed=1))

    mean_s, error_s = mean_and_error(run.sojourns_s())

    assert error_s < 0.1
    assert mean_s == pytest.approx(1 / (1 - 0.7), abs=4 * error_s)


def test_md1_waits_half_as_long_as_mm1() -> None:
    """rho / (2 mu (1 - rho)), within four standard errors."""
    run = Run(Slots(slots=1, mean_s=1.0, draw=fixed_work, class_count=1), poisson(0.7, seed=2))

    mean_s, error_s = mean_and_error(run.waits_s())

    assert error_s < 0.05
    assert mean_s == pytest.approx(0.7 / 0.3 / 2, abs=4 * error_s)


def test_mmc_share_that_waits_and_mean_wait() -> None:
    """Erlang's C, and C / (c mu - lambda), within four standard errors."""
    run = Run(Slots(slots=5, mean_s=1.0, draw=EXPONENTIAL, class_count=1), poisson(4.0, seed=3))
    waits_s = run.waits_s()

    share, share_error = mean_and_error((waits_s > 0).astype(float))
    mean_s, error_s = mean_and_error(waits_s)

    assert share_error < 0.01
    assert share == pytest.approx(erlang_c(5, 4.0), abs=4 * share_error)
    assert mean_s == pytest.approx(erlang_c(5, 4.0) / (5 - 4), abs=4 * error_s)


def test_a_slow_server_is_an_mm1_queue_of_its_speed() -> None:
    """Half the speed and half the arrivals: twice the mean sojourn."""
    server = Slots(slots=1, mean_s=1.0, draw=EXPONENTIAL, class_count=1, speed=0.5)

    mean_s, error_s = mean_and_error(Run(server, poisson(0.35, seed=4)).sojourns_s())

    assert mean_s == pytest.approx(2 / (1 - 0.7), abs=4 * error_s)


@pytest.mark.parametrize("half", [0.0, 3.0])
def test_processor_sharing_depends_on_work_through_its_mean_alone(half: float) -> None:
    """Exponential and fixed work on a rate curve: the same mean sojourn, and that of the birth-death chain."""
    capacity_per_s, rate_per_s = 1.0, 0.65
    expected_s = birth_death_mean(capacity_per_s, half, rate_per_s) / rate_per_s
    means_s, errors_s = [], []
    for seed, draw in ((5, EXPONENTIAL), (6, fixed_work)):
        server = ProcessorSharing(capacity_per_s=capacity_per_s, half=half, draw=draw, class_count=1)
        mean_s, error_s = mean_and_error(Run(server, poisson(rate_per_s, seed)).sojourns_s())
        means_s.append(mean_s)
        errors_s.append(error_s)

        assert error_s < 0.02 * expected_s
        assert mean_s == pytest.approx(expected_s, abs=4 * error_s)

    assert means_s[0] == pytest.approx(means_s[1], abs=4 * math.hypot(*errors_s))


def birth_death_mean(capacity_per_s: float, half: float, rate_per_s: float) -> float:
    """Mean number present when n present complete l(n) = C n / (N0 + n) per second, arrivals being Poisson."""
    weight, total, first_moment = 1.0, 1.0, 0.0
    for n in range(1, 2000):
        weight *= rate_per_s * (half + n) / (capacity_per_s * n)
        total += weight
        first_moment += n * weight
    return first_moment / total


def test_the_mean_number_at_a_rate_curve_is_that_of_the_birth_death_chain() -> None:
    """C 10 per second, half of it at 8 present, load 0.6; occupancy averaged over time, by Little's law."""
    server = ProcessorSharing(capacity_per_s=10.0, half=8.0, draw=EXPONENTIAL, class_count=1)
    run = Run(server, poisson(6.0, seed=8))

    mean_s, error_s = mean_and_error(run.sojourns_s())

    expected = birth_death_mean(10.0, 8.0, 6.0)
    assert run.request_seconds / run.end_s == pytest.approx(expected, abs=4 * 6.0 * error_s)
    assert mean_s == pytest.approx(expected / 6.0, abs=4 * error_s)


def test_a_batch_between_few_and_many_is_the_rate_curve() -> None:
    """Memoryless output on a busy GPU: the mean number present is near that of its curve's birth-death chain.

    Arrivals wait half a step on average, which the curve does not know, so predictions use O + 1/2 steps; batching
    is not a Markov chain, hence 3 % and no standard errors.
    """
    profile = PROFILES["llama3-8b_a100_tp1_composed"]
    rng = np.random.default_rng(9)
    output = rng.geometric(1 / 8, 40_000).tolist()
    curve = profile.rate_curve(48, 8)
    rate_per_s = 0.5 / curve.beta_s
    server = Batch(profile, 1)
    served: list[Served] = []
    for identity, at_s in enumerate(poisson(rate_per_s, seed=10, count=40_000)):
        while server.next_event_s() <= at_s:
            served += server.advance(server.next_event_s())
        server.admit(Request(identity, 0, 0, 48, output[identity]), at_s)
    served += server.advance(1e9)

    alpha_s = (8 + 0.5) * profile.decode_a_s
    expected_s = birth_death_mean(1 / curve.beta_s, alpha_s / curve.beta_s, rate_per_s) / rate_per_s
    mean_s = sum(one.finished_at_s - one.at_server_s for one in served) / len(served)
    assert mean_s == pytest.approx(expected_s, rel=0.03)


def small_servers() -> list[ServiceModel]:
    """One of each kind, all of them able to carry three requests of 100 + 20 tokens a second."""
    return [
        Slots(slots=1, mean_s=0.3, draw=EXPONENTIAL, class_count=1),
        Slots(slots=4, mean_s=1.1, draw=fixed_work, class_count=1, speed=1.3),
        ProcessorSharing(capacity_per_s=4.0, half=2.0, draw=EXPONENTIAL, class_count=1),
        SharedCores(
            allocation=3.0,
            mean_s=0.7,
            draw=EXPONENTIAL,
            class_count=1,
            antagonist=Antagonist([4.0, 1.5], [0.7, 0.3], 2.0, key_base(7, "antagonist")),
        ),
        Batch(PROFILES["small"], 1),
        Batch(PROFILES["small"].with_limits(kv_tokens=300), 1),
    ]


@pytest.mark.parametrize("index", range(6))
def test_little_and_conservation(index: int) -> None:
    """From empty to empty: all come out, and the area under the number present is the sum of sojourns, to 1e-9."""
    run = Run(small_servers()[index], poisson(3.0, seed=11, count=5000), prompt=100, output=20)

    assert {one.request.request_id for one in run.served} == set(range(5000))
    assert run.request_seconds == pytest.approx(math.fsum(run.sojourns_s()), rel=1e-9)


def test_busy_time_is_the_sum_of_service_times_when_one_is_served_at_a_time() -> None:
    """To 1e-9, at a speed that is no power of two; and the sum is that of the drawn demands."""
    server = Slots(slots=1, mean_s=0.3, draw=EXPONENTIAL, class_count=1, speed=1.3)
    run = Run(server, poisson(3.0, seed=12, count=5000))

    services_s = math.fsum(one.finished_at_s - one.started_at_s for one in run.served)
    demands_s = math.fsum(0.3 * EXPONENTIAL(one.request) / 1.3 for one in run.served)

    assert server.busy_s(run.end_s) == pytest.approx(services_s, rel=1e-9)
    assert services_s == pytest.approx(demands_s, rel=1e-9)


def test_a_shared_server_without_half_does_all_the_work_that_comes() -> None:
    """One second of work a second: its busy time is the sum of the demands, to 1e-9."""
    server = ProcessorSharing(capacity_per_s=1.0, half=0.0, draw=EXPONENTIAL, class_count=1)
    run = Run(server, poisson(0.8, seed=13, count=5000))

    demands_s = math.fsum(EXPONENTIAL(one.request) for one in run.served)

    assert server.busy_s(run.end_s) == pytest.approx(demands_s, rel=1e-9)


def test_shared_cores_are_the_multi_server_queue_in_the_mean_whatever_the_work() -> None:
    """Clipped normal work, and yet the mean sojourn of M/M/c (c = 5, a = 4): processor sharing is insensitive."""
    work = normal_work(key_base(7, "work"), 1.0, 1.0)
    server = SharedCores(allocation=5, mean_s=1.0, draw=work, class_count=1)

    mean_s, error_s = mean_and_error(Run(server, poisson(4.0, seed=14)).sojourns_s())

    assert error_s < 0.02
    assert mean_s == pytest.approx(1.0 + erlang_c(5, 4.0) / (5 - 4), abs=4 * error_s)


def test_the_core_seconds_used_under_an_antagonist_are_the_work_that_came() -> None:
    """Busy time times the allocation is the sum of the demands, to 1e-9, however often the cores change."""
    work = normal_work(key_base(7, "work"), 0.08, 0.08)
    antagonist = Antagonist([12.0, 6.0, 5.0], [0.80, 0.15, 0.05], 0.5, key_base(7, "antagonist"))
    server = SharedCores(allocation=6, mean_s=0.1, draw=work, class_count=1, antagonist=antagonist)
    run = Run(server, poisson(55.0, seed=16, count=20_000))

    demands_s = math.fsum(0.1 * work(one.request) for one in run.served)

    assert len(run.served) == 20_000
    assert server.busy_s(run.end_s) * 6 == pytest.approx(demands_s, rel=1e-9)
