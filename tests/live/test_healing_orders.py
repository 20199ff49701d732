"""Faults that overlap on one link heal under load in whatever order, between processes, and touch no other link.

Three faults set in on each of six links in the same order, and heal in each of the six orders; a seventh link has none.
"""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from testbed.experiment import run_arm
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from tests.laws.virtual_run import VirtualRun, silent
from tests.live.one_link_each import BASE_S, one_link_each

pytestmark = pytest.mark.live

RATE_PER_S = 80  # a link
SET: dict[str, dict[str, Any]] = {
    "more": {"delay": "+50 ms"},
    "times": {"delay": "x3"},
    "lossy": {"loss": "40 %"},
}
COME_S = dict(zip(SET, (0.3, 0.6, 0.9), strict=True))
HEAL_S = (1.2, 1.5, 1.8)
END_S = 2.2
ORDERS = {f"{'_'.join(order)}": order for order in permutations(SET)}
UNTOUCHED = "untouched"


def heals_s(cell: str) -> dict[str, float]:
    """When each fault of the link to a cell heals."""
    return dict(zip(ORDERS[cell], HEAL_S, strict=True))


def words() -> dict[str, Any]:
    """A cell for each order, all in one process, and a root in another."""
    faults = [
        {"from": f"{COME_S[name]} s", "to": f"{heals_s(cell)[name]} s", "set": SET[name]}
        | {"link": {"from": "root.r", "to": f"cell.{cell}", "path": "request"}}
        for name in SET
        for cell in ORDERS
    ]
    cells = [*ORDERS, UNTOUCHED]
    return one_link_each("orders", cells, rate_per_s=RATE_PER_S, seconds=END_S, seed=6, faults=faults)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, VirtualRun]:
    """The same scenario in both engines."""
    folder = tmp_path_factory.mktemp("orders")
    scenario = scenario_from_text(yaml.safe_dump(words(), sort_keys=False)).arms["main"]
    found = {}
    for engine in ("live", "virtual"):
        arm = ArmFolder(folder / engine)
        run_arm(arm, scenario, engine, silent)
        found[engine] = VirtualRun(scenario, read_tables(arm.tables), load_outcome(arm.outcome), arm)
    return found


def travels_s(run: VirtualRun, cell: str) -> tuple[Any, Any]:
    """When each request was sent to a cell, and how long it travelled; NaN: it never came."""
    requests = run.tables["requests"]
    mine = requests["cell"] == cell
    return requests["sent_at_s"][mine], (requests["at_leaf_s"] - requests["sent_at_s"])[mine]


@pytest.mark.parametrize("cell", ORDERS)
@pytest.mark.parametrize("engine", ["virtual", "live"])
def test_a_link_does_what_the_faults_at_work_ask_in_whatever_order_they_heal(
    runs: dict[str, VirtualRun], engine: str, cell: str
) -> None:
    """Each message has the delay due at its sending, or more where it was read late; losses begin and end with their fault."""
    sent_s, travel_s = travels_s(runs[engine], cell)
    until_s = heals_s(cell)
    at_work = {name: (sent_s >= COME_S[name]) & (sent_s < until_s[name]) for name in SET}
    due_s = (BASE_S + np.where(at_work["more"], 0.05, 0.0)) * np.where(at_work["times"], 3, 1)
    lost = np.isnan(travel_s)

    assert len(sent_s) > 0.8 * RATE_PER_S * END_S
    assert not lost[~at_work["lossy"]].any()
    low, high = stats.binom.interval(0.999, int(at_work["lossy"].sum()), 0.4)
    assert low <= lost.sum() <= high
    late_s = (travel_s - due_s)[~lost]
    assert late_s.min() >= -1e-9
    assert engine == "live" or late_s == pytest.approx(0.0, abs=1e-9)
    instants_s = [0.0, *COME_S.values(), *HEAL_S, END_S]
    for from_s, to_s in pairwise(instants_s):
        inside = (sent_s >= from_s) & (sent_s < to_s) & ~lost
        assert (travel_s - due_s)[inside].min() == pytest.approx(0.0, abs=1e-9)
    assert np.median(late_s) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("engine", ["virtual", "live"])
def test_the_link_beside_them_stays_as_it_was(runs: dict[str, VirtualRun], engine: str) -> None:
    """It loses nothing, and no message takes another delay than before the first fault."""
    _, travel_s = travels_s(runs[engine], UNTOUCHED)

    assert len(travel_s) > 0.8 * RATE_PER_S * END_S
    assert not np.isnan(travel_s).any()
    assert travel_s.min() == pytest.approx(BASE_S)
    assert np.median(travel_s) == pytest.approx(BASE_S)
    table = runs[engine].tables["links"]
    mine = (table["target"] == f"{UNTOUCHED}/leaf-1") & (table["path"] == "request")
    drawn_s = table["drawn_s_mean"][mine]
    assert drawn_s[~np.isnan(drawn_s)] == pytest.approx(BASE_S)


def test_every_link_draws_alike_in_both_engines_and_is_accounted_for(runs: dict[str, VirtualRun]) -> None:
    columns = ("sent", "dropped_loss", "delivered", "drawn_s_mean")
    found = {}
    for engine, run in runs.items():
        table = run.tables["lateness"]
        mine = (table["source"] == "root.r") & (table["path"] == "request")
        found[engine] = {name: table[name][mine] for name in columns}
        assert len(run.outcome.ledger) == len(build_topology(run.scenario).links)
        assert [line for line in run.outcome.ledger if line.gap] == []
        assert (run.tables["faults"]["nodes_healed"] == run.tables["faults"]["nodes_expected"]).all()
    for name in columns:
        assert found["live"][name] == pytest.approx(found["virtual"][name], rel=1e-9)
