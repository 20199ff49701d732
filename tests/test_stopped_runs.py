"""A run that is stopped, or fails, after some of its arms: those are summarised and drawn, and the status is due."""

from __future__ import annotations

import io
import os
import signal
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from testbed import experiment
from testbed.campaign import Orders, run_seeds
from testbed.errors import InterruptError, PolicyError
from testbed.experiment import Finished, Options, exit_status, redraw, run_scenario
from testbed.record.outcome import RunOutcome
from testbed.record.run_folder import RunFolder
from testbed.record.summary_file import load_summary
from testbed.scenario.load import load_scenario
from tests.laws.virtual_run import silent

TEXT = """
name: stopped
duration: 2 s
cells: {us: {servers: 2, service: {slots: 2, exponential: 20 ms}}}
roots: {web: {traffic: [{class: chat, rate: 40 /s, policy: p}]}}
classes: {chat: {}}
policies: {p: {kind: random}}
arms:
  first: {}
  second: {policies.p: {kind: "tests.test_stopped_runs:Broken"}}
  third: {}
"""


class Broken:
    """A policy of a user's that fails at its first request."""

    def choose(self, view: Any, request: Any, rng: Any) -> Any:
        raise ValueError("no idea")


class Pressing:
    """A policy of a user's during whose tenth choice Ctrl-C is pressed, `times` times.

    Attributes:
        begun: choices so far.
        ended: those of them that were made to the end.
    """

    times = 1
    begun = ended = 0

    def choose(self, view: Any, request: Any, rng: Any) -> Any:
        Pressing.begun += 1
        if Pressing.begun == 10:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        Pressing.ended += 1
        return view.targets[0]


@pytest.fixture
def pressing_policy(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> type[Pressing]:
    """The policy of the first arm, with nothing counted yet."""
    scenario.write_text(TEXT.replace("{kind: random}", '{kind: "tests.test_stopped_runs:Pressing"}'))
    monkeypatch.setattr(Pressing, "begun", 0)
    monkeypatch.setattr(Pressing, "ended", 0)
    monkeypatch.setattr(Pressing, "times", 1)
    return Pressing


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "stopped.yaml"
    path.write_text(TEXT)
    (tmp_path / "run").mkdir()
    return path


def run(scenario: Path, display: Any = silent, arms: tuple[str, ...] = ()) -> Finished:
    folder = RunFolder(scenario.parent / "run")
    return run_scenario(load_scenario(scenario, arms=arms), folder, Options(engine="virtual"), display)


def assert_only(finished: Finished, *arms: str) -> None:
    """The folder is a finished run of these arms, from which figures can be drawn again."""
    assert list(load_summary(finished.folder.summary)["arms"]) == list(arms)
    assert all(words["verdict"] == "valid" for words in finished.summary["arms"].values())
    assert list(finished.folder.figures.glob("*.png"))
    assert redraw(finished.folder, only=["in_flight"])


def test_an_arm_that_fails_leaves_those_before_it_summarised_and_drawn(scenario: Path) -> None:
    finished = run(scenario)

    assert isinstance(finished.error, PolicyError)
    assert finished.skipped == ["second", "third"]
    assert_only(finished, "first")


def test_the_table_comes_before_the_error_of_a_later_arm(scenario: Path) -> None:
    console = Console(file=io.StringIO(), width=200)
    orders = Orders("virtual", (), None, [], None, 1, False, False)

    with pytest.raises(PolicyError, match="no idea"):
        run_seeds(console, scenario, RunFolder(scenario.parent / "run"), orders)

    said = console.file.getvalue()
    assert "first" in said
    assert said.endswith("not run: second, third\n")


def test_a_first_arm_that_fails_is_all_there_is(scenario: Path) -> None:
    with pytest.raises(PolicyError):
        run(scenario, arms=("second",))

    assert not (scenario.parent / "run" / "summary.json").exists()


@pytest.mark.parametrize("stop", [InterruptError("stopped before the run had begun"), KeyboardInterrupt()])
def test_ctrl_c_while_a_later_arm_starts_keeps_those_before_it(scenario: Path, stop: BaseException) -> None:
    @contextmanager
    def display(arm: str, *of_arm: Any) -> Any:
        if arm == "third":
            raise stop
        with silent(arm, *of_arm) as shown:
            yield shown

    finished = run(scenario, display, arms=("first", "third"))

    assert finished.interrupted
    assert exit_status([finished], (), strict=False) == 130
    assert finished.skipped == ["third"]
    assert_only(finished, "first")


def test_ctrl_c_before_anything_is_recorded_is_an_interruption(scenario: Path) -> None:
    def display(*of_arm: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(InterruptError):
        run(scenario, display)


def test_ctrl_c_under_virtual_time_waits_for_the_end_of_what_a_role_is_at(
    scenario: Path, pressing_policy: type[Pressing]
) -> None:
    finished = run(scenario)

    assert finished.interrupted
    assert finished.skipped == ["second", "third"]
    assert pressing_policy.begun == pressing_policy.ended == 10
    first = load_summary(finished.folder.summary)["arms"]["first"]
    assert first["verdict"] == "incomplete"
    assert first["requests"]["attempts"] == 10
    assert (first["checks"]["ledger"], first["checks"]["laws"]) == ("valid", "valid")


def test_ctrl_c_after_the_last_event_leaves_the_arm_whole_and_the_others_out(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunOutcome, "save", pressing(1, RunOutcome.save, only_first=True))

    finished = run(scenario, arms=("first", "third"))

    assert finished.interrupted
    assert finished.skipped == ["third"]
    assert_only(finished, "first")


def test_ctrl_c_before_the_first_event_is_an_interruption(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "build_plan", pressing(1, experiment.build_plan))

    with pytest.raises(InterruptError, match="stopped before the run had begun"):
        run(scenario)


def test_a_second_ctrl_c_breaks_off_a_run_under_virtual_time(
    scenario: Path, pressing_policy: type[Pressing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressing_policy, "times", 2)

    with pytest.raises(InterruptError):
        run(scenario)

    assert (pressing_policy.begun, pressing_policy.ended) == (10, 9)


def pressing(times: int, function: Any, *, only_first: bool = False) -> Any:
    """The function, with Ctrl-C pressed so often while it begins: at each call, or at the first alone."""
    calls = count()

    def pressed(*words: Any, **keys: Any) -> Any:
        if next(calls) == 0 or not only_first:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return function(*words, **keys)

    return pressed


def test_ctrl_c_does_not_break_off_merging(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "merge_run", pressing(1, experiment.merge_run))

    finished = run(scenario, arms=("first", "third"))

    assert finished.interrupted
    assert finished.skipped == ["third"]
    assert_only(finished, "first")


def test_a_second_ctrl_c_breaks_off_merging(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "merge_run", pressing(2, experiment.merge_run))

    with pytest.raises(InterruptError):
        run(scenario)


def test_ctrl_c_while_figures_are_drawn_keeps_the_summary_and_draws_them(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "draw_all", pressing(1, experiment.draw_all))

    finished = run(scenario, arms=("first", "third"))

    monkeypatch.undo()
    assert finished.interrupted
    assert_only(finished, "first", "third")


def test_a_second_ctrl_c_ends_the_drawing_and_the_summary_is_there(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "draw_all", pressing(2, experiment.draw_all))

    finished = run(scenario, arms=("first",))

    assert finished.interrupted
    assert not finished.folder.figures.exists()
    assert list(load_summary(finished.folder.summary)["arms"]) == ["first"]
