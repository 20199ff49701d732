"""Whatever a link can do takes hold between processes as it does under virtual time: the same draws, of the asked size."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from testbed.experiment import run_arm
from testbed.links.delay import delay_quantile, mean_delay_s
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import Effect, build_topology
from tests.laws.virtual_run import VirtualRun, silent
from tests.live.one_link_each import BASE_S, one_link_each

pytestmark = pytest.mark.live

SECONDS, RATE_PER_S = 4, 60  # a link
DATED_SECONDS = 2.5  # of the run by a real clock
HEALED_S = 3.0
DRAWN: dict[str, dict[str, Any]] = {
    "normal": {"delay": "40 ms", "jitter": {"normal": "30 ms"}},  # cut at 0, which moves the mean
    "uniform": {"delay": "40 ms", "jitter": {"uniform": "30 ms"}},
    "lognormal": {"delay": "40 ms", "jitter": {"lognormal": "20 ms"}},
    "pareto": {"delay": "40 ms", "jitter": {"pareto": "10 ms"}},
    "exponential": {"delay": "40 ms", "jitter": {"exponential": "30 ms"}},
    "table": {"delay": "10 ms", "jitter": {"table": ["0 ms", "5 ms", "60 ms"]}},
    "correlated": {"delay": "40 ms", "jitter": {"normal": "10 ms"}, "correlation": 0.8},
}
OTHERS: dict[str, dict[str, Any]] = {
    "lossy": {"delay": "20 ms", "loss": "20 %"},
    "bursty": {"delay": "20 ms", "loss": "20 %", "loss_burst": 4},
    "doubled": {"delay": "20 ms", "duplicate": "20 %"},
    "reordered": {"delay": "20 ms", "reorder": {"fraction": "20 %", "late": "100 ms"}},
    "narrow": {"delay": "20 ms", "rate": "40 /s", "queue": 3},
    "thin": {"delay": "20 ms", "bandwidth": "2 kB/s", "queue": 2},
    "flapping": {"delay": "20 ms", "flap": {"period": "500 ms", "down": "40 %"}},
    "replayed": {"replay": {"path": "FILE"}},
    "later": {"delay": "+200 ms"},
    "longer": {"delay": "x3"},
    "black": {"cut": True},
    "plain": {"delay": "20 ms"},
}
ROWS = "at_s,delay_s,loss\n0,0.05,0\n1,0.15,0.5\n2,0.02,0\n"


def words(folder: Path) -> dict[str, Any]:
    """A cell for each of these, all in one process, and a root in another; the faults hold from 0 to 3 s."""
    keys = {name: dict(each) for name, each in (DRAWN | OTHERS).items()}
    (folder / "delays.csv").write_text(ROWS)
    keys["replayed"] = {"replay": {"path": str(folder / "delays.csv")}}
    faults = [
        {"at": "0 s", "for": f"{HEALED_S:g} s", "set": each}
        | {"link": {"from": "root.r", "to": f"cell.{name}", "path": "request"}}
        for name, each in keys.items()
    ]
    return one_link_each("links", keys, rate_per_s=RATE_PER_S, seconds=SECONDS, seed=4, faults=faults)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, VirtualRun]:
    """The same scenario in both engines."""
    folder = tmp_path_factory.mktemp("links")
    return in_both_engines(folder, words(folder))


@pytest.fixture(scope="module")
def dated_as_handled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, VirtualRun]:
    """The links with jitter alone, to the end of the run, and each message dated when it is handled, in both engines."""
    folder = tmp_path_factory.mktemp("dated")
    given = {**words(folder), "dating": "actual", "duration": f"{DATED_SECONDS} s"}
    given["cells"] = {name: given["cells"][name] for name in DRAWN}
    given["faults"] = [{**line, "for": "1 h"} for line in given["faults"][: len(DRAWN)]]
    given["roots"]["r"]["traffic"][0]["rate"] = f"{RATE_PER_S * len(DRAWN)} /s"
    return in_both_engines(folder, given)


def in_both_engines(folder: Path, given: dict[str, Any]) -> dict[str, VirtualRun]:
    """The same scenario in both engines."""
    scenario = scenario_from_text(yaml.safe_dump(given, sort_keys=False)).arms["main"]
    found = {}
    for engine in ("live", "virtual"):
        arm = ArmFolder(folder / engine)
        run_arm(arm, scenario, engine, silent)
        found[engine] = VirtualRun(scenario, read_tables(arm.tables), load_outcome(arm.outcome), arm)
    return found


def travels_s(run: VirtualRun, cell: str) -> tuple[np.ndarray, np.ndarray]:
    """When each request was sent to a cell, and how long it travelled; NaN: it never came."""
    requests = run.tables["requests"]
    mine = requests["cell"] == cell
    return requests["sent_at_s"][mine], (requests["at_leaf_s"] - requests["sent_at_s"])[mine]


def counts(run: VirtualRun, cell: str) -> dict[str, float]:
    """The line of the link to a cell in the table of links, summed over the run."""
    table = run.tables["lateness"]
    row = (table["target"] == f"{cell}/leaf-1") & (table["path"] == "request")
    columns = ("sent", "dropped_loss", "dropped_cut", "dropped_queue", "duplicated", "reordered", "delivered")
    return {name: float(table[name][row][0]) for name in (*columns, "drawn_s_mean")}


@pytest.mark.parametrize("cell", [*DRAWN, *OTHERS])
def test_a_link_draws_and_counts_alike_in_both_engines(runs: dict[str, VirtualRun], cell: str) -> None:
    """What is drawn of each message, and what becomes of it, to the last; no message arrives before its release."""
    live, virtual = (counts(runs[engine], cell) for engine in ("live", "virtual"))
    assert live == pytest.approx(virtual, rel=1e-9, nan_ok=True)
    assert live["sent"] > 0.8 * RATE_PER_S * SECONDS

    (sent_s, travel_s), (planned_s, drawn_s) = (
        travels_s(runs[engine], cell) for engine in ("live", "virtual")
    )
    np.testing.assert_allclose(sent_s, planned_s, atol=1e-9)
    assert (np.isnan(travel_s) == np.isnan(drawn_s)).all()
    came = ~np.isnan(drawn_s)
    assert (travel_s[came] >= drawn_s[came] - 1e-9).all()
    assert (travel_s[came] < drawn_s[came] + 1e-9).mean() > 0.5  # the others were read late


@pytest.mark.parametrize("cell", DRAWN)
def test_drawn_delays_have_the_asked_distribution_until_they_heal(
    runs: dict[str, VirtualRun], cell: str
) -> None:
    """Of the draws that both engines share: the mean within three standard errors, and Kolmogorov's distance."""
    run = runs["virtual"]
    sent_s, travel_s = travels_s(run, cell)
    during = sent_s < HEALED_S
    effect = changed_effect(run, cell)

    assert abs(travel_s[during].mean() - mean_delay_s(effect)) < 3 * error_s(effect, cell, during.sum())
    shares = np.searchsorted(quantiles_s(effect), travel_s[during]) / len(quantiles_s(effect))
    assert cell == "correlated" or stats.kstest(shares, "uniform").pvalue > 0.01
    assert travel_s[~during] == pytest.approx(BASE_S)


@pytest.mark.parametrize("cell", DRAWN)
def test_delivered_delays_are_the_drawn_ones_and_the_measured_lateness(
    dated_as_handled: dict[str, VirtualRun], cell: str
) -> None:
    """By a real clock: each message takes what was drawn for it and longer, in the mean by what the link's lateness says.

    So what was delivered less that lateness has the asked mean, within three standard errors, however busy the host.
    """
    live, virtual = dated_as_handled["live"], dated_as_handled["virtual"]
    travel_s, drawn_s = (travels_s(run, cell)[1] for run in (live, virtual))
    table = live.tables["lateness"]
    row = (table["target"] == f"{cell}/leaf-1") & (table["path"] == "request")
    late_s = float(table["lateness_s_mean"][row][0])
    effect = changed_effect(live, cell)

    assert len(travel_s) > 0.8 * RATE_PER_S * DATED_SECONDS
    assert (travel_s >= drawn_s - 1e-9).all()
    assert late_s > 0.0
    assert (travel_s - drawn_s).mean() == pytest.approx(late_s, abs=1e-9)
    assert abs(travel_s.mean() - late_s - mean_delay_s(effect)) < 3 * error_s(effect, cell, len(travel_s))


def changed_effect(run: VirtualRun, cell: str) -> Effect:
    """What the link to a cell does while its fault lasts."""
    link = next(each for each in build_topology(run.scenario).links if each.target == f"{cell}/leaf-1")
    return link.effect.changed(run.scenario.faults[list(DRAWN).index(cell)].setting)


def quantiles_s(effect: Effect) -> Any:
    """Of the delays that a link draws, evenly spaced."""
    quantile = delay_quantile(effect)
    return np.array([quantile((k + 0.5) / 2000) for k in range(2000)])


def error_s(effect: Effect, cell: str, messages: int) -> float:
    """Standard error of the mean of so many drawn delays."""
    memory = (1 + 0.8) / (1 - 0.8) if cell == "correlated" else 1.0  # of an autoregression
    return float(quantiles_s(effect).std()) * math.sqrt(memory / messages)


def assert_binomial(count: float, of: float, share: float) -> None:
    """The count lies in the interval that chance leaves once in a thousand times."""
    low, high = stats.binom.interval(0.999, int(of), share)
    assert low <= count <= high


@pytest.mark.parametrize("engine", ["virtual", "live"])
def test_losses_copies_and_limits_have_the_asked_size(runs: dict[str, VirtualRun], engine: str) -> None:
    """While the faults last; the number of messages sent meanwhile is known from the plan."""
    run = runs[engine]
    found = {cell: counts(run, cell) for cell in OTHERS}
    sent = {cell: float((travels_s(run, cell)[0] < HEALED_S).sum()) for cell in OTHERS}

    assert_binomial(found["lossy"]["dropped_loss"], sent["lossy"], 0.2)
    assert_binomial(found["doubled"]["duplicated"], sent["doubled"], 0.2)
    assert found["reordered"]["reordered"] > 0.1 * sent["reordered"]
    assert found["narrow"]["dropped_queue"] == pytest.approx(sent["narrow"] - 40 * HEALED_S, abs=5)
    assert found["thin"]["dropped_queue"] == pytest.approx(sent["thin"] - 2000 / 68 * HEALED_S, abs=5)
    assert found["black"]["dropped_cut"] == sent["black"]
    sent_s, travel_s = travels_s(run, "flapping")
    down = (sent_s < HEALED_S) & (sent_s % 0.5 < 0.2)
    assert (np.isnan(travel_s) == down).all()

    lost = np.isnan(travels_s(run, "bursty")[1])[travels_s(run, "bursty")[0] < HEALED_S]
    lengths = [len(list(group)) for is_lost, group in groupby(lost) if is_lost]
    assert abs(np.mean(lengths) - 4) < 3 * math.sqrt(4 * 3 / len(lengths))
    assert len(lengths) > 5


@pytest.mark.parametrize("engine", ["virtual", "live"])
def test_changed_and_replayed_delays_hold_for_the_first_message_and_heal(
    runs: dict[str, VirtualRun], engine: str
) -> None:
    """Each message has the delay due at its sending; where one was read late, no less."""
    due_s = {
        "later": lambda sent_s: np.full(len(sent_s), BASE_S + 0.2),
        "longer": lambda sent_s: np.full(len(sent_s), 3 * BASE_S),
        "replayed": lambda sent_s: np.select([sent_s < 1, sent_s < 2], [0.05, 0.15], 0.02),
    }
    for cell, delay_s in due_s.items():
        sent_s, travel_s = travels_s(runs[engine], cell)
        came, during = ~np.isnan(travel_s), sent_s < HEALED_S
        expected_s = np.where(during, delay_s(sent_s), BASE_S)
        late_s = (travel_s - expected_s)[came]
        assert late_s.min() >= -1e-9
        assert np.median(late_s) == pytest.approx(0.0, abs=1e-9)
        assert came[0]

    sent_s, travel_s = travels_s(runs[engine], "replayed")
    second = (sent_s >= 1) & (sent_s < 2)
    assert_binomial(np.isnan(travel_s[second]).sum(), second.sum(), 0.5)
    assert not np.isnan(travel_s[~second]).any()


def test_every_link_is_accounted_for_and_every_fault_acknowledged(runs: dict[str, VirtualRun]) -> None:
    for run in runs.values():
        assert len(run.outcome.ledger) == len(build_topology(run.scenario).links)
        assert [line for line in run.outcome.ledger if line.gap] == []
        assert (run.tables["faults"]["nodes_healed"] == run.tables["faults"]["nodes_expected"]).all()
