import math

import numpy as np
import pytest

from testbed.analysis.records import Window
from testbed.analysis.server_shares import server_share_figures, top_shares
from tests.analysis.made_arms import made_scenario


def two_cells():
    """Two servers at a, which report once a second, and one at b, ten times a second."""
    service = {"slots": 4, "fixed": "10 ms"}
    cells = {
        "a": {"servers": 2, "service": service, "server_reports": {"every": "1 s"}},
        "b": {"servers": 1, "service": service},
    }
    return made_scenario("even", cells=cells)


def requests(*rows):
    """Rows of server and the instant of its arrival there."""
    servers, at_s = zip(*rows, strict=True)
    return {"server": np.array(servers, object), "at_server_s": np.array(at_s)}


def test_a_top_share_is_that_of_the_fullest_server_of_each_period():
    """Periods 0-1 s: servers 0, 0, 1; 1-2 s: none; 2-3 s: 1, 1, 1, 0; what comes outside of all of them is left out."""
    at_s = np.array([0.0, 0.5, 0.9, 2.0, 2.1, 2.2, 2.9, 3.0, -1.0])
    server = np.array([0, 0, 1, 1, 1, 1, 0, 0, 0])

    assert top_shares(at_s, server, np.arange(4.0)).tolist() == [pytest.approx(2 / 3), 0.75]


def test_servers_have_their_shares_of_the_cell_in_the_window():
    """In 5-8 s server 1 of a receives 1 + 3 + 0 and server 2 1 + 1 + 2 requests: tops 1/2, 3/4 and 1."""
    table = requests(
        ("a/server-1", 4.9),
        *(("a/server-1", at_s) for at_s in (5.1, 6.1, 6.2, 6.3)),
        *(("a/server-2", at_s) for at_s in (5.2, 6.4, 7.0, 7.5)),
        ("a/server-2", 8.0),
        ("", math.nan),
    )

    figures = server_share_figures(two_cells(), table, Window(5.0, 8.0))

    assert figures["a"]["servers"] == {
        "server-1": {"requests": 4, "share": 0.5, "first_period_share": 0.5},
        "server-2": {"requests": 4, "share": 0.5, "first_period_share": 0.5},
    }
    tops = figures["a"]["top_share_per_period"]
    assert (tops["mean"], tops["periods"]) == (0.75, 3)
    assert (tops["p20"], tops["p80"]) == pytest.approx((0.6, 0.9))  # interpolated: 0.4 and 1.6 of the way
    assert math.isnan(figures["b"]["servers"]["server-1"]["share"])
    assert math.isnan(figures["b"]["servers"]["server-1"]["first_period_share"])
    assert math.isnan(figures["b"]["top_share_per_period"]["mean"])
