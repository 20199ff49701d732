"""The command: tables or JSON, and the exit status; on measurements made up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed import __main__
from testbed.analysis.lateness import LinkLateness
from testbed.benchmark.baseline import Baseline
from testbed.benchmark.capability import Calibration, Capability, measured_checks
from testbed.commands import doctor
from testbed.fitness.request_cost import RequestCost
from testbed.links.lateness import BIN_COUNT
from tests.fitness.made_machine import MACHINE

SCENARIO = """
name: small
duration: 10 s
cells: {us: {servers: 2, service: {slots: 4, fixed: 10 ms}}}
roots: {west: {traffic: [{class: sand, rate: RATE /s, policy: even}]}}
classes: {sand: {}}
policies: {even: {kind: random}, greedy: {kind: least_cost}}
links: [{from: "*", to: "*", delay: 20 ms}]
arms: {even: {}, greedy: {roots.west.traffic.0.policy: greedy}}
"""

COST = RequestCost(4_000.0, 140e-6, 10_000.0, 100e-6)
BASELINE = Baseline("root -> leaf (request)", 4e-5, 2e-4, 0.001)


def capability(p99_s: float = 0.0003, others: float = 0.05, slow: float = 0.0) -> Capability:
    bins = np.zeros(BIN_COUNT, dtype=np.int64)
    link = LinkLateness("root.load", "a/leaf-1", "request", 2500, 6e-5, p99_s, p99_s, 0.001, bins)
    calibration = Calibration(np.linspace(0.0, 1e-4, 100), 1.0 + 9 * (slow > 0), slow, others)
    return Capability(calibration, 20_000.0, link, link._replace(p50_s=4e-5), 0.2, COST)


def call(
    monkeypatch: pytest.MonkeyPatch, found: Capability, *words: str, rate: int = 100, folder: Path
) -> int | None:
    (folder / "scenario.yaml").write_text(SCENARIO.replace("RATE", str(rate)))
    monkeypatch.setattr(doctor, "measure", lambda on_step: found)
    monkeypatch.setattr(doctor, "measure_baseline", lambda scenario: BASELINE)
    monkeypatch.setattr(doctor, "look_at_machine", lambda folder: MACHINE)
    monkeypatch.setattr(sys, "argv", ["testbed", "doctor", *words])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    code = ended.value.code
    assert not isinstance(code, str), code
    return code


def test_a_scenario_that_fits_ends_with_0_and_arms_alike_share_a_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "scenario.yaml")

    assert call(monkeypatch, capability(), path, "--json", folder=tmp_path) == 0

    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["fits", "machine", "measured", "arms even, greedy", "time_scale"]
    assert said["fits"] is True
    assert said["time_scale"] == 1.0
    measured = {line["name"]: line["has"] for line in said["measured"]}
    assert measured["smallest trustworthy delay"] == "3 ms"
    assert measured["requests, records on"] == ("15,455 /s (140 us of CPU each at 4,000 /s, 100 at 10,000)")
    assert measured["messages, records on"] == "61,818 /s (a bare pipeline: 80,000)"
    assert measured["processes"] == (
        "280 by the processor time of idling, of which 8 may handle 4,000 messages/s"
    )
    of_arms = {line["name"]: line for line in said["arms even, greedy"]}
    assert of_arms["hop at the planned rate"]["has"] == "p50 40 us, p99 200 us, root -> leaf (request)"
    assert of_arms["time scale"]["needs"] == "1"


@pytest.mark.parametrize(("p99_s", "rate", "scale"), [(0.01, 100, 16), (0.0003, 100_000, 16)])
def test_a_scenario_that_does_not_fit_ends_with_4(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    p99_s: float,
    rate: int,
    scale: int,
) -> None:
    """Too late for its delays; too many requests."""
    status = call(monkeypatch, capability(p99_s), str(tmp_path / "scenario.yaml"), rate=rate, folder=tmp_path)

    assert status == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "does not fit" in said
    assert f"try --time-scale {scale}, for the " in said


def test_without_a_scenario_the_machine_is_described(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, capability(0.01), folder=tmp_path) == 0

    said = capsys.readouterr().out
    assert "2 usable (2 allowed, no quota)" in said
    assert "hop without delay" in said


def test_a_wrong_scenario_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.yaml").write_text("name: x\n")

    assert call(monkeypatch, capability(), str(tmp_path / "wrong.yaml"), folder=tmp_path) == 2


def test_a_busy_or_slowed_machine_is_told() -> None:
    def words(found: Capability) -> dict[str, str]:
        checks = measured_checks(found, MACHINE)
        return {each.name: each.word for each in checks}

    assert set(words(capability()).values()) == {"fits"}
    assert words(capability(others=1.2))["other processes"] == "warning"
    assert words(capability(slow=0.05))["speed of the processors"] == "warning"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory_bytes": 600_000_000}, "100 by memory"),
        ({"processes": 70.0}, "70 by ulimit -u"),
        ({"processes": 1e6, "memory_bytes": 10**12}, "280 by the processor time of idling"),
    ],
)
def test_processes_are_as_many_as_what_there_is_least_of_allows(change: dict[str, Any], said: str) -> None:
    checks = {each.name: each.has for each in measured_checks(capability(), MACHINE._replace(**change))}

    assert checks["processes"] == f"{said}, of which 8 may handle 4,000 messages/s"


def test_the_time_scale_that_is_advised_fits_by_doctor_s_own_account(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "scenario.yaml")
    found = capability(0.01)

    assert call(monkeypatch, found, path, "--json", folder=tmp_path) == 4
    advised = json.loads(capsys.readouterr().out)["time_scale"]

    assert call(monkeypatch, found, path, "--json", "--time-scale", str(advised), folder=tmp_path) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["time_scale"] == advised
    assert {line["word"] for line in said["arms even, greedy"]} == {"fits"}


def test_what_was_seen_at_the_planned_rate_makes_a_machine_no_better() -> None:
    speed = capability(0.0003).speed
    later = BASELINE._replace(p99_s=0.007, longest_s=0.2)

    assert BASELINE.worsen(speed) == speed
    assert later.worsen(speed) == speed._replace(lateness_p99_s=0.007, longest_s=0.2)
    assert Baseline("", float("nan"), float("nan"), float("nan")).worsen(speed) == speed
    assert Baseline("", float("nan"), float("nan"), float("nan")).check().word == "unknown"


def test_a_late_hop_at_the_planned_rate_raises_the_scale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(globals(), "BASELINE", BASELINE._replace(p99_s=0.007))

    assert call(monkeypatch, capability(), str(tmp_path / "scenario.yaml"), "--json", folder=tmp_path) == 4
    assert json.loads(capsys.readouterr().out)["time_scale"] == 8.0
