"""The frame of `testbed verify`: which findings are asked for, and how they are shown."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from matplotlib.figure import Figure

from testbed.errors import InterruptError, RunError, UsageError
from testbed.record.outcome import RunOutcome
from testbed.verification import catalogue, trial, work
from testbed.verification.catalogue import Entry
from testbed.verification.finding import Finding, Illustration, within
from testbed.verification.page import Page
from testbed.verification.table import all_met, as_json, summary_line
from testbed.verification.work import Order, Result, all_results
from tests.analysis.made_arms import made_scenario
from tests.command import run


def made(target: str, measured: float) -> Finding:
    return within(target, "a | b", "a page", "fluid", expected=2.0, measured=measured, relative=0.1, unit="s")


@pytest.fixture
def two_entries(monkeypatch):
    """V1 is met, V2 is not and has a figure; V3 fails on the way."""

    def broken(quick):
        yield made("V3", 2.0)
        raise ZeroDivisionError("no servers")

    entries = (
        Entry(("V1",), lambda quick: iter([made("V1", 2.1)])),
        Entry(("V3",), broken),
        Entry(
            ("V2",),
            lambda quick: iter([made("V2", 2.3)]),
            lambda quick: iter([Illustration("v2", "A line.", Figure())]),
            "Too large by a third.",
        ),
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", entries)


def results(*only: str, drawn: bool = False) -> list[Result]:
    return list(all_results(Order(quick=True, only=only, drawn=drawn)))


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_the_verification_and_makes_no_finding(monkeypatch, workers):
    def stopped(quick):
        yield made("V1", 2.0)
        raise InterruptError("stopped by the user")

    entries = (Entry(("V1",), stopped), Entry(("V2",), lambda quick: iter([made("V2", 2.0)])))
    monkeypatch.setattr(catalogue, "CATALOGUE", entries)
    if (
        workers > 1
    ):  # in this process: what they do is the same, and a fresh one would have the true catalogue
        monkeypatch.setattr(work, "ProcessPoolExecutor", lambda number, **words: ThreadPoolExecutor(number))
    found = []

    with pytest.raises(InterruptError):
        found.extend(all_results(Order(quick=True), workers))

    assert not [each for each in found if "could not be worked out" in each]


def test_a_run_that_the_user_stopped_is_no_trial(monkeypatch):
    def stopped(*words):
        return RunOutcome("virtual", "actual", 1.0, drained=False, interrupted=True)

    monkeypatch.setattr(trial, "run_arm", stopped)

    with pytest.raises(InterruptError):
        trial.run_trial(made_scenario())


def test_only_the_targets_that_are_asked_for_are_worked_out(two_entries):
    found = results("V2", "V1")

    assert [(each.target, each.met, each.form) for each in found] == [
        ("V1", True, "quick"),
        ("V2", False, "quick"),
    ]


def test_an_unknown_target_is_refused_with_those_that_exist(two_entries):
    with pytest.raises(UsageError, match="--only V9: no such target; accepted: V1, V3, V2"):
        results("V9")


def test_a_target_that_fails_is_not_met_and_leaves_the_others_alone(two_entries, capsys):
    found = results()

    assert [(each.target, each.met) for each in found] == [
        ("V1", True), ("V3", True), ("V3", False), ("V2", False),
    ]  # fmt: skip
    assert found[2].measured == "ZeroDivisionError: no servers"
    assert "in broken" in capsys.readouterr().err


def test_two_workers_find_and_draw_what_one_does():
    """The children import the catalogue anew, so these are true entries: the quickest, and one with a figure."""
    order = Order(quick=True, only=("V1", "V5"), drawn=True)

    assert set(all_results(order, workers=2)) == set(all_results(order))


@pytest.mark.parametrize(
    ("measured", "met"), [(2.19, True), (1.81, True), (2.21, False), (float("nan"), False)]
)
def test_a_value_is_met_within_its_tolerance_and_never_when_it_is_not_a_number(measured, met):
    assert made("V1", measured).met is met


def test_the_page_has_a_row_per_finding_in_the_order_of_the_catalogue(tmp_path, two_entries):
    page = Page(tmp_path / "docs" / "page.md")

    for result in results("V2", "V1", drawn=True)[::-1]:
        page.add(result)
    page.finish()

    assert [path.relative_to(tmp_path).as_posix() for path in page.files] == [
        "docs/page.md",
        "docs/figures/v2.png",
    ]
    assert page.files[1].stat().st_size > 0
    text = page.files[0].read_text()
    rows = [line for line in text.splitlines() if line.startswith("| V")]
    assert rows == [
        "| V1 | a \\| b | a page | fluid | 2 s | 2.1 s | 10 % | met | quick |",
        "| V2 | a \\| b | a page | fluid | 2 s | 2.3 s | 10 % | **not met** | quick |",
    ]
    assert "1 of 2 findings met; not met: V2." in text
    assert "- **V2.** Too large by a third." in text
    assert "![A line.](figures/v2.png)" in text
    assert "not come to its end" not in text


def test_a_page_that_is_cut_short_says_so_and_keeps_what_was_found(tmp_path, two_entries):
    page = Page(tmp_path / "page.md")

    page.add(results("V1")[0])

    text = (tmp_path / "page.md").read_text()
    assert "| V1 |" in text
    assert "not come to its end" in text


def test_a_page_takes_new_targets_up_and_keeps_the_others(tmp_path, two_entries):
    """Three commands put it together: with a figure, with one that fails, and one target a second time."""
    page, whole = tmp_path / "page.md", tmp_path / "whole.md"
    for only in (("V2",), ("V3",), ("V1",), ("V3",)):
        written = Page(page)
        for result in results(*only, drawn=True):
            written.add(result)
        written.finish()

    at_once = Page(whole)
    for result in results(drawn=True):
        at_once.add(result)
    at_once.finish()

    assert page.read_text() == whole.read_text()
    assert page.read_text().count("| V3 |") == 2, "one row found, one of what failed"


def test_rows_of_real_processes_and_of_virtual_time_stand_beside_each_other(tmp_path, two_entries):
    virtual, live = made("V1", 2.0)._replace(engine="virtual"), made("V1", 2.1)._replace(engine="live")
    for finding in (live, virtual, live._replace(measured="2.2 s")):
        Page(tmp_path / "page.md").add(finding)

    rows = [line for line in (tmp_path / "page.md").read_text().splitlines() if line.startswith("| V1")]
    assert [row.split(" | ")[3] + row.split(" | ")[5] for row in rows] == ["virtual2 s", "live2.2 s"]


@pytest.mark.parametrize("text", ["# Another page\n", "# Verification\n\nNo table.\n"])
def test_a_file_that_is_no_such_page_is_not_written_over(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)

    with pytest.raises(UsageError, match=r"--out .*page\.md: is no page that `verify` has written"):
        Page(path)
    with pytest.raises(UsageError, match="is no page"):
        Page(tmp_path)

    assert path.read_text() == text


def test_a_page_that_cannot_be_written_fails_the_run_in_words(tmp_path, two_entries):
    (tmp_path / "file").write_text("")
    page = Page(tmp_path / "file" / "page.md")

    with pytest.raises(RunError, match=r"writing .*page\.md"):
        page.add(results("V1")[0])


def test_one_miss_means_that_not_all_are_met():
    found = [made("V1", 2.1), made("V2", 2.3)]

    assert not all_met(found)
    assert all_met(found[:1])
    assert as_json(found)["met"] is False
    assert summary_line(found[:1]) == "1 of 1 findings met"


def test_the_command_prints_json_and_ends_with_0_when_all_is_met(tmp_path):
    done = run(tmp_path, "verify", "--only", "V1", "--json")

    found = json.loads(done.stdout)
    assert found["met"] is True
    assert {each["target"] for each in found["findings"]} == {"V1"}
    assert ": met" in done.stderr  # said as it was found
