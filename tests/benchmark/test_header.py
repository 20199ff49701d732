"""Figures as JSON say where, when and by what they were measured; the exit status, whether an aim was missed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from testbed import FORM, __main__, __version__
from testbed.benchmark.figure import Figure
from testbed.benchmark.header import header
from testbed.commands import bench


def call(monkeypatch: pytest.MonkeyPatch, value: float, *words: str) -> object:
    """`testbed bench` with a single figure of this value, whose aim is at least 1."""
    monkeypatch.setattr(bench, "all_figures", lambda quick, only: iter([Figure("x", value, "s", 1.0)]))
    monkeypatch.setattr(sys, "argv", ["testbed", "bench", "--anyway", *words])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    return ended.value.code


def test_a_header_tells_machine_versions_and_date():
    found = header()

    assert found["testbed"] == __version__
    assert found["modules"] == ("compiled" if FORM == "compiled" else "interpreted")
    assert found["packages"]["numpy"] == np.__version__
    assert "simpy" in found["packages"]
    assert found["host"]["usable_processors"] >= 1
    assert found["started"].startswith("20")
    assert found["commit"] is None or len(found["commit"].removesuffix("-dirty")) == 40


def test_figures_as_json_come_with_the_header(monkeypatch, capsys):
    assert call(monkeypatch, 2.0, "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["header", "figures"]
    assert said["header"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert [each["name"] for each in said["figures"]] == ["x"]


@pytest.mark.parametrize(("value", "status"), [(2.0, 0), (0.5, 3), (float("nan"), 0)])
@pytest.mark.parametrize("words", [(), ("--json",), ("--full",)])
def test_a_missed_aim_ends_with_3_and_an_unknown_one_does_not(monkeypatch, value, status, words):
    assert call(monkeypatch, value, *words) == status
