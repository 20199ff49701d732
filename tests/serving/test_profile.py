"""The profiles are the published coefficients, and their curves are the published curves."""

import math

import pytest

from testbed.serving.profile import PROFILES

WORKLOAD = (512, 128)  # prompt and output tokens of the published columns
PUBLISHED = {
    # name: (alpha ms, beta ms, half-point N, l at n_cap in requests/s), as derived by the authors of the tables
    "llama3-8b_a100_tp1_composed": (1414.44, 48.9211, 28.91, 18.367),
    "llama3-8b_h100_tp1_composed": (854.881, 15.42, 55.44, 53.307),
    "llama3-70b_a100_tp4_composed": (3460.97, 121.273, 28.54, 7.4188),
    "llama3-70b_a100_tp8_composed": (2131.42, 76.1327, 28.0, 11.84),
    "llama3-70b_h100_tp4_composed": (2157.88, 42.8369, 50.37, 19.506),
    "llama3-70b_h100_tp8_composed": (1470.45, 30.4642, 48.27, 27.618),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_rate_curves_agree_with_the_published_columns(name: str) -> None:
    """Alpha, beta, the half-point and the rate at the cap, to the digits that were published."""
    alpha_ms, beta_ms, half, at_cap_per_s = PUBLISHED[name]

    curve = PROFILES[name].rate_curve(*WORKLOAD)

    assert curve.alpha_s * 1000 == pytest.approx(alpha_ms, rel=1e-5)
    assert curve.beta_s * 1000 == pytest.approx(beta_ms, rel=1e-5)
    assert curve.alpha_s / curve.beta_s == pytest.approx(half, rel=3e-4)
    assert curve.n_cap == 256
    assert curve.capacity_per_s == pytest.approx(at_cap_per_s, rel=5e-5)


def test_names_are_the_keys() -> None:
    """A profile is found by its own name."""
    assert {name: profile.name for name, profile in PROFILES.items()} == {name: name for name in PROFILES}


def test_small_is_capped_by_its_sequences_or_by_its_memory() -> None:
    """32 sequences of 500 + 128 tokens fit into 40,000; of 4,000 + 32 tokens only nine do."""
    small = PROFILES["small"]

    assert small.rate_curve(500, 128).n_cap == 32
    assert small.rate_curve(4000, 32).n_cap == 9
    assert small.rate_curve(40_000, 1).n_cap == 0


def test_a_server_without_room_for_a_mean_request_has_no_capacity_yet_counts_can_be_divided() -> None:
    """Costs per capacity take it for a server of one request at a time; elsewhere they take the capacity itself."""
    small = PROFILES["small"]
    none, some = small.rate_curve(40_000, 1), small.rate_curve(4000, 32)

    assert none.capacity_per_s == 0.0
    assert none.divisor_per_s == pytest.approx(1.0 / (none.alpha_s + none.beta_s))
    assert some.divisor_per_s == some.capacity_per_s


def test_small_has_the_step_times_of_the_incidents() -> None:
    """12 ms + 0.4 ms per sequence + 60 us per prefilled token: one request alone, by hand."""
    curve = PROFILES["small"].rate_curve(500, 128)

    assert curve.alpha_s == pytest.approx(128 * 0.012)
    assert curve.beta_s == pytest.approx(127 * 0.0004 + 500 * 60e-6)


def test_bench_keeps_only_the_fixed_part_of_a_step() -> None:
    """Everything that grows with the batch is divided by 100."""
    true, bench = PROFILES["llama3-8b_h100_tp1_composed"], PROFILES["bench"]

    assert bench.decode_a_s == true.decode_a_s
    assert bench.rate_curve(64, 8).beta_s == pytest.approx(true.rate_curve(64, 8).beta_s / 100)
    assert true.rate_curve(64, 8).capacity_per_s < 603.5
    assert bench.max_sequences == 4096


def test_doubled_times_double_the_curve_to_the_bit() -> None:
    """Powers of two scale exactly; the cap is a count and stays."""
    profile = PROFILES["llama3-70b_h100_tp4_composed"]

    curve, doubled = profile.rate_curve(777, 33), profile.scaled(2.0).rate_curve(777, 33)

    assert (doubled.alpha_s, doubled.beta_s) == (2 * curve.alpha_s, 2 * curve.beta_s)
    assert doubled.n_cap == curve.n_cap


def test_limits_replace_only_what_is_given() -> None:
    """A cell may override single limits of its profile."""
    small = PROFILES["small"]

    changed = small.with_limits(kv_tokens=1000)

    assert (changed.kv_tokens, changed.max_sequences, changed.step_tokens) == (1000, 32, 2048)
    assert small.with_limits() == small
    assert small.with_limits(max_sequences=2, step_tokens=64).max_sequences == 2


def test_every_profile_is_physical() -> None:
    """A step always takes time, and nothing makes it shorter."""
    for profile in PROFILES.values():
        times_s = (profile.decode_b_s, profile.decode_c_s, profile.prefill_b_s)

        assert profile.decode_a_s > 0
        assert all(value >= 0 and math.isfinite(value) for value in times_s)
        assert min(profile.kv_tokens, profile.max_sequences, profile.step_tokens) >= 1
