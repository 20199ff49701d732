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

from tests.command import CHECKOUT, run, run_apart

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


@pytest.fixture
def here(folder, monkeypatch):
    """The command where a user's modules lie: gives what went to stderr."""
    monkeypatch.syspath_prepend(folder)
    for module in ("mine", "broken", "quits"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return lambda *words, status: run(folder, *words, status=status).stderr


VIRTUAL = ("--engine", "virtual", "--no-figures")


def test_a_good_run_leaves_a_summary_that_holds_what_is_promised(folder):
    done = run_apart(folder, "run", "small.yaml", *VIRTUAL, "--out", "run")

    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert "valid" in done.stdout
    assert summary["schema_version"] == 2
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

    whole = run(folder, "show", "one").stdout
    assert "weighted" in whole
    assert "migration /min" in whole
    only = run(folder, "show", "one", "--questions").stdout
    assert "Were constraints kept?" in only
    assert "no violation in" in only
    assert "planned" not in only
    assert "us/leaf-1" in run(folder, "show", "one", "--links").stdout
    drawn = run(folder, "plot", "one").stdout.split()
    assert {Path(each).stem for each in drawn} == {
        "in_flight",
        "servers",
        "shares",
        "sojourn",
        "split",
        "age",
        "decisions",
    }
    assert all((folder / each).stat().st_size > 10_000 for each in drawn)
    choice = ("--only", "servers", "--arm", "weighted", "--from", "0.1 s", "--to", "500 ms", "--out", "page")
    assert run(folder, "plot", "one", *choice).stdout.split() == ["page/small_servers.png"]
    assert "accepted: random, weighted" in run(folder, "plot", "one", "--arm", "wighted", status=2).stderr
    assert "does not lie after --from" in run(folder, "plot", "one", "--to", "0 s", status=2).stderr
    compared = run(folder, "compare", "one", "two").stdout
    keys = [line.split()[0] for line in compared.split("figures (")[0].splitlines() if "links[0]" in line]
    assert keys == ["arms.random.links[0].delay", "arms.weighted.links[0].delay"]


def test_repeats_run_one_seed_after_the_other(folder):
    done = run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", "--repeat", "2")

    assert sorted(path.name for path in (folder / "run").iterdir()) == ["seed-5", "seed-6"]
    assert "2 seeds: mean" in done.stdout
    assert "2 of 2 seeds; difference " in done.stdout


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
        (("run", "full"), "full: has no scenario"),
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
def test_a_wrong_command_line_or_scenario_is_status_2_and_says_why(folder, here, words, said):
    (folder / "full").mkdir()
    (folder / "full" / "x").touch()
    (folder / "bad.yaml").write_text(TEXT.replace("duration: 2 s", "duration: 2").lstrip())

    assert said in here(*words, status=2)


def test_a_fault_in_the_scenario_leaves_status_2_to_the_shell(folder):
    words = ("run", "small.yaml", *VIRTUAL, "--out", "run", "--set", "seed=-1")
    said = run_apart(folder, *words, status=2).stderr

    assert said.startswith("small.yaml: seed: -1 is out of range; accepted: ")
    assert not (folder / "run").exists()


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


def test_the_live_engine_refuses_an_oracle_before_anything_is_made(folder):
    words = ("--set", "policies.random={kind: oracle}", "--out", "run")

    done = run(folder, "run", "small.yaml", *words, status=2)

    assert done.stderr.strip() == (
        "testbed: arm random uses the oracle random: under --engine live no process knows the truth about another;"
        " accepted: --engine virtual, or --arm with arms that have no oracle"
    )
    assert not (folder / "run").exists()


def test_ctrl_c_under_virtual_time_keeps_the_data(folder):
    (folder / "small.yaml").write_text(
        TEXT.replace("duration: 2 s", "duration: 400 s").replace("20 /s", "500 /s")
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
    assert summary["arms"]["random"]["requests"]["completed"] > 100
    assert "incomplete" in run(folder, "show", "run").stdout


ODD_FILES = {
    "empty": b"",
    "noise": bytes(range(256)) * 8,
    "latin": b"name: Z\xfcrich",
    "nul": b"name: \x00",
    "list": b"[1, 2]",
    "text": b"just text",
    "tab": b"cells:\n\tus: 1\n",
    "unclosed": b"cells: {us: [",
    "documents": b"---\na: 1\n---\nb: 2\n",
    "loop": b"a: &a [*a]",
    "bomb": b"a: &a [1, 1, 1, 1]\n" + b"".join(b"%c: &%c [*%c, *%c, *%c, *%c]\n" % (c + 1, c + 1, c, c, c, c) for c in range(97, 120)),
    "deep": b"[" * 5000,
    "object": b'a: !!python/object/apply:os.system ["ls"]',
    "number": b"duration: 1e999 s\nseed: 99999999999999999999999\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_FILES)
@pytest.mark.parametrize("command", ["check", "run"])
def test_no_file_however_odd_ends_in_more_than_a_message(folder, here, command, name):
    (folder / "odd.yaml").write_bytes(ODD_FILES[name])

    said = here(command, "odd.yaml", status=2)

    assert said.startswith("odd.yaml:")
    assert len(said) < 10_000
    assert {path.name for path in folder.iterdir()} == {"small.yaml", "odd.yaml"}


def test_a_run_folder_that_is_damaged_is_said_to_be(folder, here):
    run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", "--arm", "random")
    table = folder / "run" / "arms" / "random" / "tables" / "lateness.parquet"

    table.write_text("no Parquet")
    assert "could not read the table" in here("show", "run", "--links", status=1)
    table.unlink()
    assert "there is no table" in here("show", "run", "--links", status=1)
    (folder / "run" / "summary.json").write_text("{")
    assert "not a finished run" in here("plot", "run", status=2)
    (folder / "run" / "summary.json").unlink()
    assert "not a finished run" in here("compare", "run", "run", status=2)


POLICIES = """
class First:
    def __init__(self, skip=0):
        self.skip = skip

    def choose(self, view, request, rng):
        return view.allowed[self.skip]


class Ticks(First):
    def on_tick(self, view):
        return None


class Mute:
    pass


class Names(First):
    def choose(self, view, request, rng):
        return view.allowed[0].name


class Fails(First):
    def choose(self, view, request, rng):
        return view.allowed[1 / 0]


class Refuses:
    def __init__(self):
        raise SystemExit(0)

    choose = None.__eq__


def function(view, request, rng):
    return view.allowed[0]
"""


CHOICES = "; accepted: one of view.allowed (us, eu), or None"


def policy(words):
    return (
        "run",
        "small.yaml",
        *VIRTUAL,
        "--out",
        "run",
        "--arm",
        "random",
        "--set",
        f"policies.random={{{words}}}",
    )


def test_a_user_s_own_policy_runs_by_its_import_path(folder):
    """The module lies in a folder of PYTHONPATH; its parameters reach it, so all requests go to the second cell."""
    (folder / "mine.py").write_text(POLICIES)

    run_apart(folder, *policy("kind: 'mine:First', params: {skip: 1}"), python_path=folder)

    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["arms"]["random"]["cells"]["eu"]["share"] == 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("kind: 'mine:Absent'", "policy mine:Absent: mine has no Absent; accepted: "),
        ("kind: 'mine:Mute'", "policy mine:Mute: Mute has no method choose; accepted: "),
        ("kind: 'mine:function'", "policy mine:function: function is function, not a class; accepted: "),
        ("kind: 'mine:First', params: {jump: 1}", "policy mine:First: params {'jump': 1}: "),
        (
            "kind: 'mine:Ticks'",
            "policy mine:Ticks at root.r:0 has on_tick, but its tick_interval_s is None; accepted: ",
        ),
        ("kind: 'nowhere:A'", "policy nowhere:A: importing nowhere failed: ModuleNotFoundError: "),
        ("kind: 'broken:A'", "policy broken:A: importing broken failed: SyntaxError: "),
        ("kind: 'quits:A'", "policy quits:A: importing quits failed: SystemExit: 0"),
        (
            "kind: 'mine:Refuses'",
            "policy mine:Refuses: making it with params {} raised SystemExit: 0 (mine.py:",
        ),
        ("kind: 'mine:Names'", f"policy mine:Names at root.r:0: choose returned 'us'{CHOICES}"),
        (
            "kind: 'mine:Fails'",
            "policy mine:Fails at root.r:0: choose raised ZeroDivisionError: division by zero (mine.py:",
        ),
    ],
)
def test_a_user_s_policy_that_is_broken_is_status_1_and_says_why(folder, here, words, said):
    (folder / "mine.py").write_text(POLICIES)
    (folder / "broken.py").write_text("def (")
    (folder / "quits.py").write_text("raise SystemExit(0)")

    assert here(*policy(words), status=1).startswith(f"testbed: {said}")


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("kind: 'mine:Names'", f"policy mine:Names at root.r:0: choose returned 'us'{CHOICES}\n"),
        ("kind: 'quits:A'", "policy quits:A: importing quits failed: SystemExit: 0; accepted: "),
    ],
)
def test_a_user_s_policy_that_is_broken_says_so_once_among_real_processes_too(folder, words, said):
    (folder / "mine.py").write_text(POLICIES)
    (folder / "quits.py").write_text("raise SystemExit(0)")
    live = [{"virtual": "live"}.get(word, word) for word in policy(words)]

    done = run_apart(folder, *live, status=1, python_path=folder)

    assert done.stderr.startswith(f"testbed: {said}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("broken", ["", "{", "{}", "[]", '{"arms": []}'])
@pytest.mark.parametrize("command", ["show", "plot"])
def test_a_damaged_summary_is_named_and_never_a_traceback(folder, command, broken):
    (folder / "run").mkdir()
    (folder / "run" / "summary.json").write_text(broken)

    assert "summary" in run(folder, command, "run", status=2).stderr


def test_an_arm_that_is_gone_is_named(folder):
    run(folder, "run", "small.yaml", *VIRTUAL, "--out", "one")
    (folder / "one" / "arms" / "weighted").rename(folder / "gone")

    assert "weighted" in run(folder, "plot", "one", status=1).stderr


def test_a_folder_below_a_file_is_refused(folder):
    (folder / "file").touch()

    assert "cannot be made" in run(folder, "run", "small.yaml", *VIRTUAL, "--out", "file/x", status=2).stderr


def test_a_scenario_s_name_does_not_lead_out_of_the_folder_of_runs(folder):
    (folder / "small.yaml").write_text(TEXT.replace("name: small", "name: ../../evil"))

    run(folder, "run", "small.yaml", *VIRTUAL, "--arm", "random")

    assert [path.name.startswith("evil-") for path in (folder / "runs").iterdir()] == [True]


@pytest.mark.parametrize("loss", ["0 %", "100 %"])
def test_a_fault_without_a_loop_delay_has_no_settling_time(folder, loss):
    text = TEXT.replace("{kind: random}", "{kind: flow, step: 0.01 /s^2, update: on_report}").replace(
        "links: [{from: root.*, to: cell.*, delay: 5 ms}]",
        f"links: [{{from: cell.*, to: root.*, path: observation, loss: {loss}}}]\n"
        "faults: [{at: 1 s, cell: us, set: {speed: 0.5}}]",
    )
    # one cell: with several staggered ones a report of another triggers an update, and the age is not 0
    text = text.replace("  eu: {servers: 2, profile: small}\n", "").split("expect:")[0]
    (folder / "small.yaml").write_text(text)

    run(folder, "run", "small.yaml", *VIRTUAL, "--out", "run", "--arm", "random")

    settled = json.loads((folder / "run" / "summary.json").read_text())["arms"]["random"]["settled"]
    assert settled == {"change_at_s": 1.0, "shares_settled_s": None, "sojourn_settled_s": None}


def test_theory_prints_each_arm_with_its_assumptions_and_refusals(folder):
    done = run(folder, "theory", "small.yaml", "--arm", "random")

    assert "theory of random" in done.stdout
    assert "mean latency" in done.stdout
    assert "refused: random reads no reports: there is no loop" in " ".join(done.stdout.split())


def test_theory_as_json_holds_the_numbers(folder):
    said = json.loads(run(folder, "theory", "small.yaml", "--json").stdout)

    assert list(said) == ["random", "weighted"]
    shares = next(each for each in said["weighted"] if each["what"] == "shares")
    assert sum(shares["figures"].values()) == pytest.approx(1.0)
