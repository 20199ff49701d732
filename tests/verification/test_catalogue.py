"""The frame of `testbed verify`: which findings are asked for, and how they are shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from testbed.errors import UsageError
from testbed.verification import catalogue
from testbed.verification.catalogue import Entry, all_findings, all_illustrations
from testbed.verification.finding import Finding, Illustration, within
from testbed.verification.table import all_met, as_json, summary_line, write_page

CHECKOUT = Path(__file__).parents[2]


def made(target: str, measured: float) -> Finding:
    return within(target, "a | b", "a page", "fluid", expected=2.0, measured=measured, relative=0.1, unit="s")


@pytest.fixture
def two_entries(monkeypatch):
    """V1 is met, V2 is not; asking V3 fails the test."""

    def never(quick):
        raise AssertionError("V3 was not asked for")

    entries = (
        Entry(("V1",), lambda quick: iter([made("V1", 2.1)])),
        Entry(
            ("V2",),
            lambda quick: iter([made("V2", 2.3)]),
            lambda quick: iter([Illustration("v2", "A line.", Figure())]),
        ),
        Entry(("V3",), never),
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", entries)


def test_only_the_targets_that_are_asked_for_are_worked_out(two_entries):
    found = list(all_findings(quick=True, only=("V2", "V1")))

    assert [(each.target, each.met) for each in found] == [("V1", True), ("V2", False)]


def test_an_unknown_target_is_refused_with_those_that_exist(two_entries):
    with pytest.raises(UsageError, match="--only V9: no such target; accepted: V1, V2, V3"):
        list(all_findings(quick=True, only=("V9",)))


@pytest.mark.parametrize(
    ("measured", "met"), [(2.19, True), (1.81, True), (2.21, False), (float("nan"), False)]
)
def test_a_value_is_met_within_its_tolerance_and_never_when_it_is_not_a_number(measured, met):
    assert made("V1", measured).met is met


def test_the_page_has_a_row_per_finding_and_its_figures_beside_it(tmp_path, two_entries):
    found = [made("V1", 2.1), made("V2", 2.3)]

    paths = write_page(
        tmp_path / "docs" / "page.md", found, list(all_illustrations(quick=True, only=("V2",))), quick=True
    )

    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "docs/page.md",
        "docs/figures/v2.png",
    ]
    assert paths[1].stat().st_size > 0
    text = paths[0].read_text()
    assert "| V1 | a \\| b | a page | fluid | 2 s | 2.1 s | 10 % | met |" in text
    assert "| V2 | a \\| b | a page | fluid | 2 s | 2.3 s | 10 % | **not met** |" in text
    assert "1 of 2 findings met; not met: V2." in text
    assert "![A line.](figures/v2.png)" in text


def test_one_miss_means_that_not_all_are_met():
    found = [made("V1", 2.1), made("V2", 2.3)]

    assert not all_met(found)
    assert all_met(found[:1])
    assert as_json(found)["met"] is False
    assert summary_line(found[:1]) == "1 of 1 findings met"


def test_the_command_prints_json_and_ends_with_0_when_all_is_met():
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "verify", "--only", "V1", "--json"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["met"] is True
    assert {each["target"] for each in found["findings"]} == {"V1"}
