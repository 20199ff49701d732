"""Runs with more cells, roots or servers than can have a line each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from testbed.analysis.summary import summarize_arm
from testbed.figures.arm import DrawnArm
from testbed.figures.crowd import MOST_LINES, MOST_NAMED, noted, quantiles, straying
from testbed.figures.in_flight import draw_in_flight
from testbed.figures.named_cells import named_cells
from testbed.figures.servers import binned, draw_servers, sample_bins
from testbed.figures.shares import draw_shares, shares_of
from tests.laws.virtual_run import run_words

SLOW = "c12"


def words(cells: int, roots: int, **faults: object) -> dict:
    """Equal cells but for the last, which is slow; equal roots."""
    names = [f"c{number}" for number in range(1, cells + 1)]
    service = {"slots": 2, "exponential": "40 ms"}
    return {
        "name": "many",
        "duration": "3 s",
        "cells": {
            name: {"servers": 3, "service": {**service, "exponential": "160 ms"} if name == SLOW else service}
            for name in names
        },
        "roots": {
            f"r{i}": {"traffic": [{"class": "c", "rate": "30 /s", "policy": "even"}]} for i in range(roots)
        },
        "classes": {"c": {}},
        "policies": {"even": {"kind": "random"}},
        **faults,
    }


def drawn(folder, scenario: dict) -> DrawnArm:
    run = run_words(folder / "main", scenario)
    return DrawnArm("main", run.scenario, run.tables, summarize_arm(run.scenario, run.tables, run.outcome))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> DrawnArm:
    fault = {"at": "1 s", "for": "10 ms", "cell": "c3", "set": {"speed": 0.9}}
    return drawn(tmp_path_factory.mktemp("many"), words(12, 9, faults=[fault]))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> DrawnArm:
    return drawn(tmp_path_factory.mktemp("few"), words(3, 9))


def bands(panel) -> list[PolyCollection]:
    return [each for each in panel.collections if isinstance(each, PolyCollection)]


def names_in_legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_of_many_cells_those_of_a_fault_and_those_that_stray_have_a_name(many):
    named = named_cells([many])

    assert len(named) == MOST_NAMED == len(set(named.values()))
    assert {"c3", SLOW} <= set(named)
    for draw in (draw_in_flight, draw_shares):
        figure = draw([many])
        assert len(bands(figure.axes[0])) == 2
        assert [name for name in names_in_legend(figure) if name.startswith("c")] == list(named)
        assert "median of 12 cells" in names_in_legend(figure)


def test_few_cells_have_a_line_each_and_no_band(few):
    figure = draw_in_flight([few])

    assert bands(figure.axes[0]) == []
    assert names_in_legend(figure)[:3] == ["c1", "c2", "c3"]
    assert "median" not in " ".join(names_in_legend(figure))


def test_many_servers_are_bands_too(many, few):
    crowded, own = draw_servers([many]), draw_servers([few])

    assert len(bands(crowded.axes[0])) == 2
    assert "median of 36 servers" in names_in_legend(crowded)
    assert bands(own.axes[0]) == [], "nine servers of three cells can be told apart"


def test_many_roots_are_a_band_for_each_cell(few):
    assert len(bands(draw_shares([few]).axes[0])) == 3


def test_a_crowd_in_an_arm_cut_short_or_without_samples_can_be_drawn(many):
    cut = replace(many, summary={**many.summary, "ended_s": 0.4}, tables={**many.tables, "cells": {}})

    for draw in (draw_in_flight, draw_shares, draw_servers):
        assert len(draw([cut, many]).axes) == 2


def test_shares_of_arrivals_add_up_to_one_and_roots_to_everyone(few):
    """Weighted by what they sent in a bin, the shares of the roots are those of all together."""
    shares = shares_of(few)

    assert np.array(list(shares.everyone.values())).sum(axis=0) == pytest.approx(1.0)
    requests = few.tables["requests"]
    nodes = list(dict.fromkeys(requests["root"].tolist()))
    sent = np.array(
        [np.histogram(requests["planned_at_s"][requests["root"] == node], shares.edges)[0] for node in nodes]
    )
    for cell, everyone in shares.everyone.items():
        assert (shares.roots[cell] * sent).sum(axis=0) / sent.sum(axis=0) == pytest.approx(everyone)


def test_the_bins_of_a_server_hold_its_samples(few):
    samples, edges = few.tables["cells"], sample_bins(few)
    mine = (samples["server"] == "c2/server-1") & (samples["at_s"] < edges[-1])

    means = binned(few)["c2/server-1"]

    there = (samples["queued"] + samples["running"])[mine]
    assert means[np.isfinite(means)].tolist() == there.tolist(), "as wide as the time between samples"


def test_bands_know_nothing_where_no_line_does():
    series = np.arange(20.0)[:, np.newaxis] * np.ones(3)
    series[:, 1] = np.nan
    series[0, 2] = np.nan

    found = quantiles(series)

    assert np.isnan(found[:, 1]).all()
    assert found[:, 0].tolist() == pytest.approx([0.95, 4.75, 9.5, 14.25, 18.05])
    assert np.isfinite(found[:, 2]).all()
    assert straying(series).argmax() in (0, 19)


def test_a_line_that_strays_in_one_panel_is_named_in_all():
    rng = np.random.default_rng(1)
    calm = {f"c{i}": rng.normal(size=50) for i in range(2 * MOST_LINES)}
    wild = {**calm, "c9": 5.0 + calm["c9"]}

    assert "c9" in noted([calm, wild], [])
    assert noted([calm, wild], ["c0", "elsewhere"])[0] == "c0"
    assert len(noted([calm, wild], list(calm))) == MOST_NAMED
