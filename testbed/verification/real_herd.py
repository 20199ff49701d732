"""Herds and limit cycles of whole runs against the theory, with real processes or in virtual time.

Two cells of batching servers with geometric output, so that the work is memoryless. Greedy roots herd with the period
of equation (11). Flow routing at a tenth of the critical step is calm; at one and a half times it, it oscillates with
the period of the nonlinear fluid at that very step, which is shorter than the period at the edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from testbed.analysis.summary import summarize_arm
from testbed.experiment import run_arm
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.runtime.progress import Progress
from testbed.scenario.load import scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.topology import Topology
from testbed.theory.fluid_form import fluid_form
from testbed.theory.ground import ground_of
from testbed.theory.limit_cycle import greedy_cycle
from testbed.theory.motion_statements import followed
from testbed.theory.swing import long_run
from testbed.verification.finding import Finding, Findings, within
from testbed.verification.trial import refuse_interrupted

TEXT = """
name: real_herd
duration: {duration} s
warmup: {warmup} s
seed: 1
cells:
  a: &cell {{servers: 2, profile: llama3-8b_a100_tp1_composed}}
  b: *cell
roots:
  one: &root {{traffic: [{{class: sand, load: 0.3, policy: {policy}}}]}}
  two: *root
reports: {{every: 20 ms}}
classes: {{sand: {{prompt_tokens: 16, output_tokens: {{geometric: {{mean: 32}}}}}}}}
policies:
  greedy: {{kind: least_cost, cost: in_flight}}
  flow: {{kind: flow, cost: marginal, model: profile, step: {step} /s^2, interval: 20 ms, sampling: low_discrepancy}}
links:
  - {{from: root.*, to: cell.*, delay: 20 ms}}
  - {{from: cell.*, to: root.*, delay: 20 ms}}
  - {{from: cell.*, to: root.*, path: observation, delay: {late} ms}}
  - {{from: "*/leaf-*", to: "*/server-*", delay: 1 ms}}
  - {{from: "*/server-*", to: "*/leaf-*", delay: 1 ms}}
"""
LATE_MS = (150, 300, 500)  # observations of the greedy runs: loop delays of 0.3 to 0.9 sojourns
FLOW_LATE_MS = 300
CALM, EAGER = 0.1, 1.5  # of the critical step
GREEDY_S, FLOW_S = 20.0, 60.0  # of scenario time, beyond the warm-up


def on(engine: str) -> Findings:
    """The findings with this engine."""
    return partial(_findings, engine)


def _findings(engine: str, quick: bool) -> Iterator[Finding]:
    for late_ms in LATE_MS[1:2] if quick else LATE_MS:
        yield _greedy(engine, late_ms)
    yield _calm(engine, quick)
    yield _eager(engine, quick)


def _greedy(engine: str, late_ms: int) -> Finding:
    scenario = _scenario("greedy", late_ms, GREEDY_S)
    ground = ground_of(scenario)
    loop, cell = ground.loops[0], ground.optimum.cells[0]
    cycle = greedy_cycle(float(ground.wanted.rates_per_s.sum()), cell.a_per_s, loop.loop_delay_s)
    words = _run(scenario, engine)
    what = f"period of the greedy herd at T/W = {loop.loop_delay_s / loop.sojourn_s:.2f}{_verdict(words)}"
    return within(
        "herd", what, "theory.md, section 7, equation (11)", engine,
        expected=cycle.period_s, measured=_period_s(words), relative=0.10, unit="s",
    )  # fmt: skip


def _calm(engine: str, quick: bool) -> Finding:
    scenario, _ = _flow(CALM, quick)
    words = _run(scenario, engine)
    swing = words["oscillation"]
    said = f"period {swing['period_s']:.3g} s" if swing["significant"] else "none"
    return Finding(
        "herd", f"significant oscillation of flow routing at {CALM:g} of the critical step{_verdict(words)}",
        "theory.md, section 2.5; measures.md, section 3", engine, "none", said, "no significant period",
        not swing["significant"],
    )  # fmt: skip


def _eager(engine: str, quick: bool) -> Finding:
    scenario, fluid_period_s = _flow(EAGER, quick)
    words = _run(scenario, engine)
    return within(
        "herd", f"period of flow routing at {EAGER:g} times the critical step, against the nonlinear fluid{_verdict(words)}",
        "measures.md, section 5", engine,
        expected=fluid_period_s, measured=_period_s(words), relative=0.15, unit="s",
    )  # fmt: skip


def _flow(factor: float, quick: bool) -> tuple[Scenario, float]:
    """A run at a multiple of the critical step, and the period of its fluid (NaN where that settles)."""
    duration_s = FLOW_S / 2 if quick else FLOW_S
    flow = ground_of(_scenario("flow", FLOW_LATE_MS, duration_s)).loops[0].flow
    assert flow is not None, "the policy is flow"
    scenario = _scenario("flow", FLOW_LATE_MS, duration_s, step=factor * flow.critical)
    path = followed(ground_of(scenario), fluid_form(scenario))
    period_s = None if path is None else long_run(path).period_s
    return scenario, float("nan") if period_s is None else period_s


def _scenario(policy: str, late_ms: int, lasting_s: float, step: float = 0.01) -> Scenario:
    warmup_s = lasting_s / 4
    text = TEXT.format(policy=policy, late=late_ms, step=step, duration=lasting_s + warmup_s, warmup=warmup_s)
    return scenario_from_text(text).arms["main"]


def _run(scenario: Scenario, engine: str) -> dict[str, Any]:
    with TemporaryDirectory(prefix="testbed-") as place:
        folder = ArmFolder(Path(place) / "arm")
        outcome = run_arm(folder, scenario, engine, _unseen)
        refuse_interrupted(outcome)
        return summarize_arm(
            scenario, read_tables(folder.tables, numbered=True), outcome, outcome.log_problems
        )


def _period_s(words: dict[str, Any]) -> float:
    period_s = words["oscillation"]["period_s"]
    return float("nan") if period_s is None else float(period_s)


def _verdict(words: dict[str, Any]) -> str:
    return "" if words["verdict"] == "valid" else f" (the run is {words['verdict']})"


class _Unseen:
    def show(self, progress: Progress) -> None:
        """Nothing is shown."""


@contextmanager
def _unseen(arm: str, scenario: Scenario, topology: Topology) -> Iterator[_Unseen]:
    yield _Unseen()
