"""Several runs on one command: a folder of scenarios, a scenario at two time scales."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial

import pytest
from rich.console import Console

from testbed import campaign
from testbed.analysis.scale import compare_scales, unequal_keys
from testbed.campaign import Orders, without_oracles
from testbed.errors import InterruptError, RunError
from testbed.experiment import Finished, new_folder
from testbed.record.run_folder import RunFolder
from tests.command import run
from tests.test_command_line import TEXT, folder  # noqa: F401


def figures(p50: float | None, amplitude: float) -> dict:
    sojourn = {"p50": p50, "p90": 2.0, "p99": 3.0}
    return {"arms": {"main": {"sojourn_s": sojourn, "oscillation": {"amplitude": amplitude}}}}


def test_a_folder_runs_every_scenario_and_tells_which_passed(folder):  # noqa: F811
    """One meets its expectations, one does not, one is no scenario: the others run all the same."""
    suite = folder / "suite"
    suite.mkdir()
    (suite / "a.yaml").write_text(TEXT)
    (suite / "b.yaml").write_text(TEXT.replace("share > 0.5", "share > 0.9"))
    (suite / "c.yaml").write_text(TEXT.replace("seed: 5", "sede: 5"))

    done = run(folder, "run", "suite", "--engine", "virtual", "--no-figures", "--out", "out", status=2)

    assert "1 of 3 passed" in done.stdout
    assert "sede: unknown key (seed?)" in done.stdout
    assert "1 of 2" in done.stdout, "expectations met of the second"
    for name in ("a", "b"):
        assert json.loads((folder / "out" / name / "summary.json").read_text())["arms"]


def test_a_scenario_that_the_command_does_not_fit_fails_alone(folder):  # noqa: F811
    """An arm that only some scenarios have: the others are told with status 2, wherever they stand in the folder."""
    suite = folder / "suite"
    suite.mkdir()
    (suite / "a.yaml").write_text(
        TEXT.replace("  weighted: {roots", "  uniform: {roots").replace("- weighted:", "- uniform:")
    )
    (suite / "b.yaml").write_text(TEXT)
    words = ("suite", "--engine", "virtual", "--arm", "weighted", "--no-figures", "--out", "out")

    done = run(folder, "run", *words, status=2)

    assert "1 of 2 passed" in done.stdout
    assert "testbed: 'weighted' is not an arm; accepted: random, uniform" in done.stdout
    assert "failed (status 2)" in done.stdout
    assert list(json.loads((folder / "out" / "b" / "summary.json").read_text())["arms"]) == ["weighted"]


@pytest.mark.parametrize(
    ("error", "status", "begun"),
    [
        (RunError("reading trace.csv: no such file"), 1, ["a.yaml", "b.yaml"]),
        (InterruptError("stopped before the run had begun"), 130, ["a.yaml"]),
    ],
)
def test_a_failure_of_the_world_leaves_the_other_scenarios_alone_but_the_user_stops_them_all(
    folder,  # noqa: F811
    monkeypatch,
    error,
    status,
    begun,
):
    tried = []

    def fail(console, path, base, orders):
        tried.append(path.name)
        raise error

    suite = folder / "suite"
    suite.mkdir()
    for name in ("a.yaml", "b.yaml"):
        (suite / name).write_text(TEXT)
    monkeypatch.setattr(campaign, "run_seeds", fail)
    console = Console(file=io.StringIO(), width=200)

    ended = campaign.run_folder(
        console, suite, folder / "out", Orders("virtual", (), None, [], None, 1, False, False)
    )

    assert (ended, tried) == (status, begun)
    assert f"testbed: {error}\n" in console.file.getvalue()


def test_ctrl_c_between_two_scenarios_ends_the_folder_with_what_was_run(folder, monkeypatch):  # noqa: F811
    tried = []

    def stopped(console, path, base, orders):
        tried.append(path.name)
        if path.name == "b.yaml":
            raise KeyboardInterrupt
        return 0, []

    suite = folder / "suite"
    suite.mkdir()
    for name in ("a.yaml", "b.yaml", "c.yaml"):
        (suite / name).write_text(TEXT)
    monkeypatch.setattr(campaign, "run_seeds", stopped)
    console = Console(file=io.StringIO(), width=200)

    ended = campaign.run_folder(
        console, suite, folder / "out", Orders("virtual", (), None, [], None, 1, False, False)
    )

    assert (ended, tried) == (130, ["a.yaml", "b.yaml"])
    assert "b.yaml" in console.file.getvalue()


def test_arms_that_an_interruption_left_out_are_named(folder, monkeypatch):  # noqa: F811
    monkeypatch.setattr(campaign, "print_summary", lambda console, summary: None)
    stopped = partial(Finished, summary={"arms": {}}, interrupted=True, skipped=["weighted"])
    monkeypatch.setattr(campaign, "run_scenario", lambda file, folder, *rest: stopped(folder))
    console = Console(file=io.StringIO(), width=200)
    orders = Orders("virtual", (), None, [], None, 1, False, False)

    status, _ = campaign.run_seeds(console, folder / "small.yaml", RunFolder(folder / "out"), orders)

    assert status == 130
    assert console.file.getvalue() == "not run: weighted\n"


def test_with_real_processes_a_folder_runs_without_the_arms_that_want_the_truth(folder):  # noqa: F811
    """Asked for by name they are refused; a scenario with none but such arms is."""
    path = folder / "a.yaml"
    path.write_text(TEXT.replace("  random: {}", "  random: {policies.random: {kind: oracle}}"))
    console = Console(file=io.StringIO(), width=200)
    orders = Orders("live", (), None, [], None, 1, False, False)

    assert without_oracles(console, path, orders).arms == ("weighted",)
    said = console.file.getvalue()
    assert said == "a.yaml: left out, since under --engine live no process knows the truth: random\n"
    assert without_oracles(console, path, replace(orders, arms=("random",))).arms == ("random",)
    assert without_oracles(console, path, replace(orders, engine="virtual")).arms == ()


def test_an_empty_folder_is_refused(folder):  # noqa: F811
    (folder / "empty").mkdir()

    done = run(folder, "run", "empty", status=2)

    assert "empty: has no scenario; accepted: a scenario file or a folder with *.yaml" in done.stderr


def test_virtual_figures_are_the_same_at_twice_the_time_scale(folder):  # noqa: F811
    done = run(
        folder, "run", "small.yaml", "--engine", "virtual", "--check-scale", "--no-figures", "--out", "out"
    )

    assert "does not agree" not in done.stdout
    assert done.stdout.count("agrees") == 8, "four figures of two arms"
    once, doubled = (
        json.loads((folder / "out" / f"scale-{scale}" / "summary.json").read_text()) for scale in (1, 2)
    )
    assert once["arms"]["random"]["sojourn_s"]["p99"] == doubled["arms"]["random"]["sojourn_s"]["p99"]


@pytest.mark.parametrize(("asked", "scales"), [(None, (1.0, 4.0)), (0.5, (0.5, 0.5))])
def test_each_arm_is_run_at_its_own_time_scale_and_at_twice_that(folder, asked, scales):  # noqa: F811
    """An arm may set its own, which overrides that of the file; the one of the command line overrides both."""
    path = folder / "own.yaml"
    path.write_text(TEXT.replace("  weighted: {roots", "  weighted: {time_scale: 4.0, roots"))
    orders = Orders("virtual", (), None, [], None, 1, False, False, time_scale=asked)
    base = new_folder(folder / "out", "")

    status = campaign.run_scales(Console(file=io.StringIO(), width=200), path, base, orders)

    runs = [json.loads(each.read_text())["arms"] for each in sorted(base.path.glob("scale-*/summary.json"))]
    found = sorted(tuple(run[arm]["time_scale"] for arm in ("random", "weighted")) for run in runs)
    assert found == [scales, tuple(2 * scale for scale in scales)]
    assert status == 0


def test_an_expectation_that_is_not_met_at_either_scale_ends_with_3(folder):  # noqa: F811
    path = folder / "unmet.yaml"
    path.write_text(TEXT.replace("share > 0.5", "share > 0.9"))
    orders = Orders("virtual", (), None, [], None, 1, False, False)
    said = io.StringIO()

    status = campaign.run_scales(Console(file=said, width=200), path, new_folder(folder / "out", ""), orders)

    assert "does not agree" not in said.getvalue()
    assert status == 3


def test_any_key_that_differs_at_twice_the_scale_is_told(folder, monkeypatch):  # noqa: F811
    """Such as one that the table of figures does not show."""
    whole = campaign.run_seeds

    def odd(console, scenario, base, orders):
        status, summaries = whole(console, scenario, base, orders)
        for words in summaries[0]["arms"].values():
            words["requests"]["completed"] += int(orders.stretch) - 1
        return status, summaries

    monkeypatch.setattr(campaign, "run_seeds", odd)
    orders = Orders("virtual", ("random",), None, [], 1.0, 1, False, False)
    said = io.StringIO()

    status = campaign.run_scales(
        Console(file=said, width=200), folder / "small.yaml", new_folder(folder / "out", ""), orders
    )

    assert "random.requests.completed is " in said.getvalue()
    assert status == 3


def test_rounding_is_no_difference_and_the_scale_itself_is_to_differ():
    def summary(time_scale, mean, wall_s):
        return {"arms": {"a": {"time_scale": time_scale, "wall_s": wall_s, "mean": mean}}}

    assert unequal_keys(summary(3.0, 0.1, 1.0), summary(6.0, 0.1 + 1e-12, 2.0)) == []
    assert unequal_keys(summary(3.0, 0.1, 1.0), summary(6.0, 0.1 + 1e-6, 2.0))[0].key == "a.mean"


def test_virtual_figures_are_the_same_in_two_runs_of_one_plan(folder):  # noqa: F811
    done = run(
        folder, "run", "small.yaml", "--engine", "virtual", "--check-spread", "--no-figures", "--out", "out"
    )

    assert "A/A: no figure differs, as it has to be under virtual time" in done.stdout
    first, again = (
        json.loads((folder / "out" / name / "summary.json").read_text()) for name in ("run-1", "run-2")
    )
    assert first["arms"]["random"]["seed"] == again["arms"]["random"]["seed"] == 5
    compared = run(folder, "compare", "out", "out")
    assert "(none)" in compared.stdout, "no key differs"


def test_a_null_run_of_a_scenario_takes_no_time_under_virtual_time(folder):  # noqa: F811
    """Both arms have the same one; what the file expects of them is not asked of it."""
    done = run(folder, "run", "small.yaml", "--engine", "virtual", "--null", "--no-figures", "--out", "out")

    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert list(summary["arms"]) == ["null"]
    assert summary["expectations"] == []
    assert summary["arms"]["null"]["sojourn_s"]["p99"] == pytest.approx(1e-6, abs=1e-9)
    assert "null: a request took p50 1 us, p99 1 us from its planned arrival to its reply" in done.stdout
    assert (folder / "out" / "scenario.yaml").read_text() == TEXT


def test_a_spread_under_virtual_time_ends_with_3(folder, monkeypatch):  # noqa: F811
    monkeypatch.setattr(campaign, "print_spread", lambda console, summaries, engine: False)
    orders = Orders("virtual", ("random",), None, [], 1.0, 2, False, False, one_plan=True)
    console = Console(file=io.StringIO(), width=200)

    status, summaries = campaign.run_seeds(
        console, folder / "small.yaml", new_folder(folder / "out", ""), orders
    )

    assert (status, len(summaries)) == (3, 2)


def test_time_scale_is_an_option_of_run(folder):  # noqa: F811
    run(
        folder,
        "run",
        "small.yaml",
        "--engine",
        "virtual",
        "--time-scale",
        "0.5",
        "--no-figures",
        "--out",
        "out",
    )

    assert "time_scale: 0.5" in (folder / "out" / "arms" / "random" / "scenario.yaml").read_text()


@pytest.mark.parametrize("engine", ["virtual", "live"])
def test_a_scale_that_cannot_be_doubled_is_refused_before_anything_runs(folder, engine):  # noqa: F811
    """An arm may set its own; it is the doubled one that would be beyond what a scenario may have."""
    path = folder / "own.yaml"
    path.write_text(TEXT.replace("  weighted: {roots", "  weighted: {time_scale: 501.0, roots"))

    done = run(folder, "run", "own.yaml", "--engine", engine, "--check-scale", "--out", "out", status=2)

    assert done.stderr == (
        "testbed: --check-scale: arm weighted has a time_scale of 501, and twice that is above 1000; accepted: a time scale up to "
        "500, such as by --time-scale 500\n"
    )
    assert not (folder / "out").exists()
    run(
        folder,
        "run",
        "own.yaml",
        "--engine",
        "virtual",
        "--check-scale",
        "--time-scale",
        "500",
        "--no-figures",
        "--out",
        "out",
    )


@pytest.mark.parametrize(
    "words", [("--check-scale", "--repeat", "2"), ("--check-scale", "--check-spread"), ("--time-scale", "0")]
)
def test_what_does_not_fit_is_refused(folder, words):  # noqa: F811
    run(folder, "run", "small.yaml", *words, status=2)


def test_a_figure_that_changes_with_the_scale_does_not_agree():
    """Live figures may differ by 5 %, amplitudes by 15 %, virtual ones not at all; one that is missing differs."""
    once, near, far = figures(1.0, 0.10), figures(1.04, 0.11), figures(1.06, 0.12)

    assert all(each.agrees for each in compare_scales(once, near, "live"))
    assert [each.measure for each in compare_scales(once, far, "live") if not each.agrees] == [
        "sojourn_s.p50",
        "oscillation.amplitude",
    ]
    assert [each.measure for each in compare_scales(once, near, "virtual") if not each.agrees] == [
        "sojourn_s.p50",
        "oscillation.amplitude",
    ]
    assert not compare_scales(once, figures(None, 0.10), "live")[0].agrees
    assert len(compare_scales(figures(None, 0.1), figures(None, 0.1), "live")) == 3
