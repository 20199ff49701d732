"""Faults of links between real processes take hold with the asked size, all at once."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.experiment import run_arm
from testbed.links.delay import mean_delay_s
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text
from testbed.scenario.topology import build_topology
from tests.laws.chaos import TEXT, counted, ledger_gaps
from tests.laws.virtual_run import silent

pytestmark = pytest.mark.live

SECONDS = 4


@pytest.fixture(scope="module", name="runs")
def both_engines(tmp_path_factory):
    """engine -> (scenario, tables, outcome) of the same scenario."""
    found = {}
    for engine in ("live", "virtual"):
        scenario = scenario_from_text(TEXT.format(duration=SECONDS, seed=3)).arms["main"]
        folder = ArmFolder(tmp_path_factory.mktemp("chaos") / engine)
        run_arm(folder, scenario, engine, silent)
        found[engine] = (scenario, read_tables(folder.tables), load_outcome(folder.outcome))
    return found


def lost_to_us(tables):
    """The requests of root a that never reached the us, on a link that no fault touches."""
    requests = tables["requests"]
    lost = (requests["root"] == "root.a") & (requests["cell"] == "us") & np.isnan(requests["at_leaf_s"])
    return requests["request_id"][lost].tolist()


def test_several_link_faults_at_once_take_hold_between_processes(runs):
    """Law by law, on one run: starting processes is what takes the time."""
    scenario, live, outcome = runs["live"]
    _, virtual, _ = runs["virtual"]

    # every message is accounted for
    assert outcome.deaths == ()
    assert ledger_gaps(outcome) == []

    # what hangs on keys or numbers alone is the same to the message as under virtual time
    bursts = {"source": "root.a", "target": "us/leaf-1", "path": "request"}
    assert counted(live, "sent", **bursts) == counted(virtual, "sent", **bursts) > 200
    assert counted(live, "dropped_loss", **bursts) == counted(virtual, "dropped_loss", **bursts) > 3
    assert lost_to_us(live) == lost_to_us(virtual)

    # a fault at time 0 holds for the first message, heals, and touches its own link alone
    requests = live["requests"]
    mine = (requests["root"] == "root.b") & (requests["cell"] == "us")
    travel_s = (requests["at_leaf_s"] - requests["sent_at_s"])[mine]
    sent_s = requests["sent_at_s"][mine]
    assert travel_s[sent_s < 0.49].min() >= 0.130 - 1e-9
    # a late host adds to the travel and takes nothing from it: the quickest tenth shows what was asked
    assert np.quantile(travel_s[sent_s < 0.49], 0.1) < 0.140
    assert np.quantile(travel_s[sent_s > 0.7], 0.1) < 0.040

    # delivered delays are those that were drawn, and what was drawn has the asked mean
    links = build_topology(scenario).links
    link = next(each for each in links if (each.source, each.path) == ("us/leaf-1", "observation"))
    seen = live["observations"]
    transit_s = (seen["received_at_s"] - seen["measured_at_s"])[seen["leaf"] == "us/leaf-1"]
    lateness = live["lateness"]
    rows = (lateness["source"] == "us/leaf-1") & (lateness["path"] == "observation")
    drawn_s = float(np.average(lateness["drawn_s_mean"][rows], weights=lateness["delivered"][rows]))
    late_s = float(np.average(lateness["lateness_s_mean"][rows], weights=lateness["delivered"][rows]))
    error_s = transit_s.std() / np.sqrt(len(transit_s))
    assert abs(drawn_s - mean_delay_s(link.effect)) < 3 * error_s
    assert abs(transit_s.mean() - drawn_s - late_s) < 1e-3

    # copies, queues, cuts and flapping
    copies = {"source": "us/leaf-1", "path": "observation"}
    share = counted(live, "duplicated", **copies) / counted(live, "sent", **copies)
    assert abs(share - 0.1) < 4 * np.sqrt(0.09 / counted(live, "sent", **copies))
    assert counted(live, "dropped_queue", source="eu/leaf-1", target="root.a", path="observation") > 10
    assert counted(live, "dropped_cut", source="root.a", target="eu/leaf-1") > 10
    assert counted(live, "dropped_cut", source="eu/leaf-1", target="root.b", path="observation") > 30
    assert counted(live, "reordered", source="root.a", target="eu/leaf-1") > 5

    # a spike of the demand: the same requests as planned, all of them sent
    planned_s = requests["planned_at_s"]
    np.testing.assert_array_equal(planned_s, virtual["requests"]["planned_at_s"])
    spike = (requests["root"] == "root.b") & (planned_s >= 1.0) & (planned_s < 1.5)
    assert 110 < spike.sum() < 190  # twice 75, within four standard errors
    assert np.isfinite(requests["sent_at_s"][spike]).all()

    # every process acknowledged its part, and all healed
    faults = live["faults"]
    assert (faults["nodes_applied"] == faults["nodes_expected"]).all()
    assert (faults["nodes_healed"] == faults["nodes_expected"]).all()
    assert (faults["applied_at_s"] >= faults["planned_at_s"]).all()
