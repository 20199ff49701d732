"""README keeps its promises: its scenario and its policy run, and its tables name every key there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.record.tables import MERGED
from testbed.scenario import policy_words, schema, view_words

CHECKOUT = Path(__file__).parents[1]
README = (CHECKOUT / "README.md").read_text()


def block(language: str) -> str:
    """The first code block of this language."""
    return README.split(f"```{language}\n")[1].split("```")[0]


def run_testbed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "testbed", *words],
        cwd=folder,
        env={"PYTHONPATH": f"{CHECKOUT}:{folder}", "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_scenario_in_readme_runs_and_meets_its_expectation(tmp_path):
    (tmp_path / "scenario.yaml").write_text(block("yaml"))

    done = run_testbed(
        tmp_path, "run", "scenario.yaml", "--engine", "virtual", "--out", "run", "--no-figures"
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "two.sojourn_s.p99: met, " in done.stdout


def test_the_policy_in_readme_runs_by_its_import_path(tmp_path):
    (tmp_path / "my_policies.py").write_text(block("python"))
    policies = re.search(r"with `policies: (\{mine: .*?\}\})`", README)
    assert policies is not None
    overrides = ["--set", "policies.mine={kind: my_policies:Sticky, params: {most: 12}}"]
    assert "kind: my_policies:Sticky, params: {most: 12}" in policies[1]
    (tmp_path / "scenario.yaml").write_text(block("yaml"))

    done = run_testbed(
        tmp_path, "run", "scenario.yaml", "--engine", "virtual", "--out", "run", "--no-figures", "--arm", "two",
        *overrides, "--set", "roots.web.traffic.0.policy=mine", "--duration", "4 s",
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_scenarios_in_readme_are_those_that_are_shipped():
    shipped = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "scenarios").rglob("*.yaml")}
    named = set(re.findall(r"^\| `(scenarios/[\w/]+\.yaml)` \|", README, re.MULTILINE))

    assert named == shipped


@pytest.mark.parametrize(
    "words",
    [
        schema.Scenario, schema.Cell, schema.Root, schema.Traffic, schema.Reports, schema.TrafficClass, schema.Trace,
        schema.LinkLine, schema.FaultLine, schema.Records, schema.Live, schema.Processes, schema.Service, schema.AntagonistWords,
        schema.Sessions, schema.Prefixes,
        *policy_words.POLICY_KINDS.values(),
    ],
)  # fmt: skip
def test_every_key_of_the_scenario_stands_in_readme(words):
    keys = [info.alias or name for name, info in words.model_fields.items()]

    missing = [key for key in keys if not re.search(rf"\b{key}\b", README)]

    assert missing == []


def test_every_kind_of_policy_has_its_row_in_readme():
    """Its rule and when to use it; its keys, where it has any but those of the view."""
    rows = [line.split(" | ") for line in README.splitlines() if line.startswith("| `")]
    kinds = {kind: row for row in rows for kind in re.findall(r"`(\w+)`", row[0])}

    for kind, words in policy_words.POLICY_KINDS.items():
        assert kind in kinds, kind
        assert len(kinds[kind]) == 4, kind
        assert all(kinds[kind][1:3]), kind
        own = words.model_fields.keys() - view_words.CountWords.model_fields.keys() - {"kind"}
        assert bool(kinds[kind][3].strip("| ")) == bool(own), kind


def test_every_table_of_a_run_stands_in_readme():
    assert [name for name in MERGED if f"`{name}`" not in README] == []
