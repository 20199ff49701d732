import math

import numpy as np
import pytest

from testbed.analysis.imbalance import (
    imbalance_of_cells,
    imbalance_within_cells,
    mean_imbalance,
    server_loads,
    work_left_s,
)
from testbed.analysis.records import Window
from testbed.serving.profile import PROFILES
from tests.analysis.made_arms import made_scenario

PROFILE = "llama3-8b_a100_tp1_composed"
GPU = PROFILES[PROFILE]


def two_cells(servers=(2, 1)):
    cells = {name: {"servers": count, "profile": PROFILE} for name, count in zip("ab", servers, strict=True)}
    return made_scenario("even", cells=cells)


def samples(*rows):
    """Rows of server, instant, queued, running, prompt, output, KV fraction."""
    names = ("server", "at_s", "queued", "running", "prompt_tokens", "output_tokens", "kv_fraction")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return {**columns, "server": columns["server"].astype(object)}


def test_imbalance_is_the_mean_over_time_of_max_over_mean():
    """Loads 3 and 1, then 1 and 1: (0.5 + 0) / 2. An empty instant says nothing."""
    assert mean_imbalance(np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0]])) == pytest.approx(0.25)
    assert math.isnan(mean_imbalance(np.zeros((2, 3))))


def test_work_is_prefill_and_decoding_of_what_is_left():
    scenario = two_cells()
    one = [np.array([value]) for value in (1.0, 1.0, 100.0, 10.0, 1000 / GPU.kv_tokens)]

    left_s = work_left_s(scenario, "a", *one)

    decode_s = GPU.decode_b_s + 1000 * GPU.decode_c_s
    assert left_s[0] == pytest.approx(100 * GPU.prefill_b_s + 10 * decode_s)


def test_loads_of_cells_are_per_capacity():
    """Two servers with 3 and 1 in flight and one with 2 are evenly loaded, and the two are not."""
    scenario = two_cells()
    table = samples(
        ("a/server-1", 5.01, 1, 2, 0, 3, 0.0),
        ("a/server-2", 5.05, 0, 1, 0, 1, 0.0),
        ("b/server-1", 5.08, 0, 2, 0, 2, 0.0),
    )

    loads = server_loads(scenario, table, Window(5.0, 20.0))

    assert imbalance_of_cells(scenario, loads, 48.0, 8.0) == pytest.approx((0.0, 0.0))
    assert imbalance_within_cells(loads) == pytest.approx((0.5, 0.5))


def test_equal_counts_can_hide_unequal_work():
    scenario = two_cells((1, 1))
    table = samples(("a/server-1", 5.0, 0, 4, 0, 40, 0.0), ("b/server-1", 5.0, 0, 4, 8000, 4000, 0.01))

    found = imbalance_of_cells(scenario, server_loads(scenario, table, Window(5.0, 20.0)), 48.0, 8.0)

    assert found.requests == pytest.approx(0.0)
    assert found.work > 0.9


def test_an_instant_at_which_a_server_was_not_sampled_counts_nowhere_within_its_cell():
    scenario = two_cells()
    table = samples(
        ("a/server-1", 5.0, 0, 4, 0, 4, 0.0),
        ("a/server-1", 5.1, 0, 3, 0, 3, 0.0),
        ("a/server-2", 5.1, 0, 1, 0, 1, 0.0),
        ("b/server-1", 5.1, 0, 1, 0, 1, 0.0),
    )

    assert imbalance_within_cells(server_loads(scenario, table, Window(5.0, 20.0))).requests == pytest.approx(
        0.5
    )


def test_a_service_without_tokens_has_work_by_its_capacity():
    scenario = made_scenario("even")
    one = [np.array([value]) for value in (3.0, 3.0, 0.0, 0.0, 0.0)]

    assert work_left_s(scenario, "us", *one)[0] == pytest.approx(3.0 * 0.1 / 32)  # 32 slots of 100 ms
