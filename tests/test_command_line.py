"""The command line: what it says, and the exit status it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import yaml

CHECKOUT = Path(__file__).parents[1]
HERDING = CHECKOUT / "scenarios" / "herding.yaml"
TEXT = """
# Is it small?
name: small
duration: 2 s
seed: 5
cells:
  us: {servers: 1, profile: small}
  eu: {servers: 2, profile: small}
roots: {r: {traffic: [{class: c, rate: 20 /s, policy: random}]}}
classes: {c: {prompt_tokens: 50, output_tokens: 5}}
policies: {random: {kind: random}, weighted: {kind: weighted}}
links: [{from: root.*, to: cell.*, delay: 5 ms}]
arms:
  random: {}
  weighted: {roots.*.traffic.*.policy: weighted}
expect:
  - weighted: cells.eu.share > 0.5
  - random: requests.completed >= 20
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.yaml").write_text(TEXT)
    return tmp_path


def run(folder, *words, status=0):
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


VIRTUAL = ("--engine", "virtual", "--no-figures")


def test_a_good_run_leaves_a_summary_that_holds_what_is_promised(folder):
    done = run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run")

    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert "valid" in done.stdout
    assert summary["schema_version"] == 1
    assert list(summary["arms"]) == ["random", "weighted"]
    arm = summary["arms"]["random"]
    assert set(arm["requests"]) >= {"planned", "completed", "failed", "timed_out", "lost", "unfinished"}
    for part in (arm, arm["classes"]["c"]):
        for name in ("sojourn_s", "first_token_s"):
            assert set(part[name]) >= {"mean", "p50", "p90", "p95", "p99"}
    assert set(arm["oscillation"]) >= {"amplitude", "period_s", "significant"}
    assert set(arm["staleness_s"]) >= {"p50", "p99"}
    assert set(arm["cells"]["us"]) >= {"share", "in_flight_mean"}
    assert set(arm["policy"]) >= {"step", "interval_s", "product", "loop_delay_s"}
    assert {"verdict", "verdict_reasons", "release_lateness_s", "constraints", "settled"} <= set(arm)
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert {"testbed", "python", "packages", "host", "seed", "command", "engine"} <= set(manifest)


def test_show_plot_and_compare_work_on_the_folder_alone(folder):
    run(folder, "run", "small.yaml", *VIRTUAL, "--out", "one")
    run(folder, "run", "small.yaml", *VIRTUAL, "--out", "two", "--set", "links.0.delay=9 ms")
    (folder / "small.yaml").unlink()

    assert "weighted" in run(folder, "show", "one").stdout
    assert "us/leaf-1" in run(folder, "show", "one", "--links").stdout
    drawn = run(folder, "plot", "one").stdout.split()
    assert {Path(each).stem for each in drawn} == {"in_flight", "shares", "sojourn", "age"}
    assert all((folder / each).stat().st_size > 10_000 for each in drawn)
    compared = run(folder, "compare", "one", "two").stdout
    keys = [line.split()[0] for line in compared.split("figures (")[0].splitlines() if "links[0]" in line]
    assert keys == ["arms.random.links[0].delay", "arms.weighted.links[0].delay"]


def test_repeats_run_one_seed_after_the_other(folder):
    done = run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", "--repeat", "2")

    assert sorted(path.name for path in (folder / "run").iterdir()) == ["seed-5", "seed-6"]
    assert "2 seeds: mean" in done.stdout
    assert "2 of 2 seeds" in done.stdout


def test_one_arm_alone_leaves_the_expectations_of_the_others_out(folder):
    done = run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", "--arm", "random")

    assert "requests.completed" in done.stdout
    assert "cells.eu.share" not in done.stdout


def test_an_expectation_not_met_is_status_3(folder):
    (folder / "small.yaml").write_text(TEXT.replace("> 0.5", "> 0.99"))

    assert "not met" in run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", status=3).stdout


def test_a_missing_trace_is_status_1_and_nothing_is_run(folder):
    text = TEXT.replace("rate: 20 /s", "trace: t").replace(
        "policies:", "traces: {t: {path: no.csv, format: azure}}\npolicies:"
    )
    (folder / "small.yaml").write_text(text)

    assert "no.csv" in run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", status=1).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "."), "directory"),
        (("run", "small.yaml", "--set", "seed"), "PATH=VALUE"),
        (("run", "small.yaml", "--set", "reports.evry=1 s"), "every?"),
        (("run", "small.yaml", "--set", "duration=20"), "has no unit"),
        (("run", "small.yaml", "--arm", "wieghted"), "weighted?"),
        (("run", "small.yaml", "--duration", "20"), "has no unit"),
        (("run", "small.yaml", "--duration", "0 s"), "above 0"),
        (("run", "small.yaml", "--out", "full"), "is not empty"),
        (("run", "small.yaml", "--engine", "fluid"), "virtual"),
        (("run", "bad.yaml"), "bad.yaml:3: duration: "),
        (("check", "bad.yaml"), "bad.yaml:3: duration: "),
        (("show", "full"), "not a finished run"),
        (("compare", "full"), "two runs or more"),
        (("dance",), "dance"),
    ],
)
def test_a_wrong_command_line_or_scenario_is_status_2_and_says_why(folder, words, said):
    (folder / "full").mkdir()
    (folder / "full" / "x").touch()
    (folder / "bad.yaml").write_text(TEXT.replace("duration: 2 s", "duration: 2").lstrip())

    assert said in run(folder, *words, status=2).stderr


def test_a_policy_that_cannot_be_imported_says_so(folder):
    text = TEXT.replace("{kind: random}", "{kind: nowhere:Mine}")
    (folder / "small.yaml").write_text(text)

    assert (
        "importing nowhere failed"
        in run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", status=1).stderr
    )


def test_schema_is_a_json_schema_that_accepts_the_shipped_scenarios(folder):
    schema = json.loads(run(folder, "schema").stdout)

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(HERDING.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**yaml.safe_load(HERDING.read_text()), "duration": 20}, schema)


def test_check_prints_the_plan(folder):
    said = run(folder, "check", HERDING).stdout

    for word in ("Effective delays", "500 ms", "T/W", "aT", "critical", "0.0918"):
        assert word in said


def test_ctrl_c_under_virtual_time_keeps_the_data(folder):
    (folder / "small.yaml").write_text(
        TEXT.replace("duration: 2 s", "duration: 2000 s").replace("20 /s", "500 /s")
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed", "run", "small.yaml", *VIRTUAL, "--out", "run", "--arm", "random"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = folder / "run" / "arms" / "random" / "logs" / "root.r.log"
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s and not (log.exists() and log.stat().st_size > 50_000):
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["arms"]["random"]["verdict"] == "incomplete"
