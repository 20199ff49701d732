"""What a server counts at an instant against the requests that are recorded there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.analysis.sample_laws import sample_conservation
from testbed.scenario.topology import build_topology
from tests.analysis.made_arms import made_requests, made_scenario, made_server_counts, steady

SCENARIO = made_scenario()
TOPOLOGY = build_topology(SCENARIO)
REQUESTS = made_requests(SCENARIO, steady(0.4, 0.3, 0.3), rate_per_s=30.0)
SERVER = "eu/server-2"


def made() -> dict[str, Any]:
    requests = {name: column.copy() for name, column in REQUESTS.items()}
    return {"requests": requests, "cells": made_server_counts(SCENARIO, requests)}


def broken(tables: dict[str, Any]) -> dict[str, str]:
    laws = sample_conservation(SCENARIO, TOPOLOGY, tables)
    return {law.place: law.detail for law in laws if not law.holds}


def test_every_server_is_asked_and_sound_samples_agree():
    laws = sample_conservation(SCENARIO, TOPOLOGY, made())

    assert [law.place for law in laws] == [
        name for name, node in TOPOLOGY.nodes.items() if node.kind == "server"
    ]
    assert all(law.holds for law in laws)
    assert laws[0].detail == "0 of 200 samples count otherwise than the records"


@pytest.mark.parametrize("column", ["arrivals", "queued", "running"])
@pytest.mark.parametrize("change", [1, -1])
def test_a_server_that_counts_one_more_or_less_in_one_sample_is_found(column, change):
    tables = made()
    samples = tables["cells"]
    row = int(np.flatnonzero(samples["server"] == SERVER)[120])
    right = samples["arrivals"][row], samples["queued"][row] + samples["running"][row]
    samples[column][row] += change

    (law,) = [law for law in sample_conservation(SCENARIO, TOPOLOGY, tables) if not law.holds]

    here = samples["queued"][row] + samples["running"][row]
    assert (law.place, law.at_s) == (SERVER, samples["at_s"][row])
    assert law.detail == (
        f"1 of 200 samples count otherwise than the records, the first {samples['arrivals'][row]} arrivals and {here} here, "
        f"where {right[0]} and {right[1]} are recorded"
    )


@pytest.mark.parametrize("column", ["at_server_s", "finished_at_s"])
def test_a_request_whose_instant_is_wrong_by_more_than_a_sample_is_found(column):
    tables = made()
    row = int(np.flatnonzero(REQUESTS["server"] == SERVER)[5])
    tables["requests"][column][row] += 0.15

    assert list(broken(tables)) == [SERVER]


def test_a_request_without_a_row_of_its_server_is_found():
    tables = made()
    row = int(np.flatnonzero(REQUESTS["server"] == SERVER)[5])
    tables["requests"]["at_server_s"][row] = tables["requests"]["finished_at_s"][row] = np.nan

    assert list(broken(tables)) == [SERVER]


def test_what_happens_in_the_instant_of_a_sample_may_count_or_not():
    tables = made()
    samples, requests = tables["cells"], tables["requests"]
    row = int(np.flatnonzero(REQUESTS["server"] == SERVER)[5])
    after = np.flatnonzero((samples["server"] == SERVER) & (samples["at_s"] > requests["at_server_s"][row]))[
        0
    ]
    before = samples["at_s"][after] - 0.1
    requests["at_server_s"][row] = before

    assert broken(tables) == {}

    samples["arrivals"][after - 1] += 1
    samples["running"][after - 1] += 1
    assert broken(tables) == {}


@pytest.mark.parametrize(
    "words",
    [
        {"faults": [{"at": "5 s", "for": "1 s", "server": SERVER, "set": {"kill": True}}]},
        {"faults": [{"at": "5 s", "for": "1 s", "server": SERVER, "set": {"errors": "10 %"}}]},
    ],
    ids=["kill", "errors"],
)
def test_a_server_that_begins_anew_or_fails_requests_is_not_asked(words):
    """It counts from its restart, or has requests of which it writes no row."""
    laws = sample_conservation(made_scenario(**words), TOPOLOGY, made())

    assert len(laws) == 8
    assert SERVER not in {law.place for law in laws}
