"""What was done against failure and overload stands in a table of its own, where something was done."""

from __future__ import annotations

import io

from rich.console import Console

from testbed.console.guard_table import print_guards

NOTHING = {"resendings": {"servings_per_request": 1.0}, "sheds": {}, "left_out": {}, "cells": {"us": {}}}


def printed(arms):
    page = io.StringIO()
    print_guards(Console(width=160, file=page), {"arms": arms})
    return page.getvalue()


def test_a_run_without_guards_prints_nothing():
    assert printed({"one": NOTHING, "old": {"cells": {}}}) == ""


def test_columns_that_hold_something_are_printed_for_every_arm():
    scaling = {"mean": 6.54, "min": 2, "max": 12, "turns": 7}
    arms = {
        "none": NOTHING,
        "some": {
            "resendings": {"leaf_hedges": 1200, "hedges_won": 616, "servings_per_request": 1.0545},
            "sheds": {"root": 0, "leaf": 7},
            "left_out": {"breaker": 0, "health": 2},
            "cells": {"us": {"scaling": scaling}},
        },
    }

    lines = [" ".join(line.split()) for line in printed(arms).splitlines()]

    assert lines[2] == "arm leaf hedges hedges won by leaf failed checks servings per request servers of us"
    assert lines[4] == "none 0 0 0 0 1 -"
    assert lines[5] == "some 1,200 616 7 2 1.05 6.5 (2 to 12, 7 turns)"
