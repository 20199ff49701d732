"""The same scenario under real processes and under virtual time: what must agree, agrees."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from testbed.experiment import run_arm
from testbed.record.outcome import load_outcome
from testbed.record.read import read_tables
from testbed.record.run_folder import ArmFolder
from testbed.scenario.load import scenario_from_text

pytestmark = pytest.mark.live

TEXT = """
name: agreement
duration: 2 s
seed: 5
dating: {dating}
processes: {processes}
cells:
  us: {{servers: 2, profile: llama3-8b_a100_tp1_composed}}
  eu: {{servers: 1, profile: llama3-8b_a100_tp1_composed}}
roots:
  a: {{traffic: [{{class: sand, rate: 40 /s, policy: split}}]}}
  b: {{traffic: [{{class: sand, rate: 30 /s, policy: split}}]}}
reports: {{every: 100 ms}}
classes:
  sand: {{prompt_tokens: {{lognormal: {{mean: 48, cv: 1}}}}, output_tokens: {{geometric: {{mean: 8}}}}, timeout: 2 s}}
policies:
  split: {{kind: weighted, weights: {{us: 2, eu: 1}}, draw: request}}
links:
  - {{from: root.*, to: cell.*, path: request, delay: 20 ms, jitter: {{normal: 5 ms}}, loss: 2 %}}
  - {{from: cell.*, to: root.*, path: reply, delay: 20 ms, loss: 1 %}}
  - {{from: cell.*, to: root.*, path: observation, delay: 50 ms, loss: 5 %}}
"""


class Silent:
    """A display that shows nothing."""

    def show(self, progress):
        pass


@contextmanager
def silent(arm, scenario, topology):
    yield Silent()


APART = "{}"
TOGETHER = "{roots: 1, named: {us: ['us/*']}}"


@pytest.fixture(
    scope="module",
    params=[("actual", APART), ("due", APART), ("due", TOGETHER)],
    ids=["actual", "due", "nodes that share processes"],
)
def found(request, tmp_path_factory):
    """engine -> (tables, outcome), of one scenario under both datings, and with several nodes in a process."""
    dating, processes = request.param
    scenario = scenario_from_text(TEXT.format(dating=dating, processes=processes)).arms["main"]
    scenario = scenario.model_copy(update={"drain": 5.0})
    runs = {}
    for engine in ("live", "virtual"):
        folder = ArmFolder(tmp_path_factory.mktemp(dating) / engine)
        run_arm(folder, scenario, engine, silent)
        runs[engine] = (read_tables(folder.tables), load_outcome(folder.outcome))
    return runs


def test_a_split_keyed_by_request_id_sends_every_request_to_the_same_cell_and_completes_the_same(found):
    """Draws hang on (seed, link, request) alone, so the same requests are lost, whatever the timing."""
    live, virtual = found["live"][0]["requests"], found["virtual"][0]["requests"]

    assert np.array_equal(live["planned_at_s"], virtual["planned_at_s"])
    assert list(live["cell"]) == list(virtual["cell"])
    assert list(live["outcome"]) == list(virtual["outcome"])
    assert set(virtual["outcome"]) == {"completed", "timed_out"}
    assert np.array_equal(np.isnan(live["at_leaf_s"]), np.isnan(virtual["at_leaf_s"]))


def test_ledgers_have_no_gap_and_links_lose_the_same_messages(found):
    ledgers = {
        engine: {(each.source, each.target, each.path): each for each in outcome.ledger}
        for engine, (_, outcome) in found.items()
    }

    assert all(each.gap == 0 for ledger in ledgers.values() for each in ledger.values())
    for key, line in ledgers["live"].items():
        if key[0].startswith("root."):  # which server a leaf picks hangs on timing; which cell does not
            other = ledgers["virtual"][key]
            assert (line.sent, line.dropped) == (other.sent, other.dropped)


def test_no_message_is_handled_before_its_release(found):
    live = found["live"][0]

    assert live["lateness"]["delivered"].sum() > 500
    assert live["lateness"]["lateness_s_mean"][live["lateness"]["delivered"] > 0].min() >= 0
    ages_s = live["observations"]["received_at_s"] - live["observations"]["measured_at_s"]
    assert ages_s.min() >= 0.05 - 1e-9  # the delay of the link, but for rounding


def test_a_busy_host_may_delay_but_not_hasten(found):
    """With `actual` dating every hop counts from when it was handled, so a live sojourn is at least the virtual one
    less a step of the batch, which may start earlier when its neighbours came later."""
    live, virtual = found["live"][0]["requests"], found["virtual"][0]["requests"]
    done = virtual["outcome"] == "completed"

    assert np.median(live["replied_at_s"][done] - virtual["replied_at_s"][done]) > -0.02
