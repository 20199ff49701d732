"""A run with every kind of fault of links and load, and what is to be found of each in its records."""

from __future__ import annotations

from typing import Any

import numpy as np

TEXT = """
name: chaos
duration: {duration} s
drain: 3 s
seed: {seed}
groups: {{east: [root.b, cell.eu]}}
cells:
  us: {{servers: 2, service: {{slots: 8, exponential: 10 ms}}}}
  eu: {{servers: 1, service: {{slots: 8, exponential: 10 ms}}}}
roots:
  a: {{traffic: [{{class: sand, rate: 150 /s, policy: split}}]}}
  b: {{traffic: [{{class: sand, rate: 150 /s, policy: split}}]}}
reports: {{every: 10 ms}}
classes: {{sand: {{prompt_tokens: 30, timeout: 1 s}}}}
policies:
  split: {{kind: weighted, weights: {{us: 1, eu: 1}}, draw: request}}
links:
  - {{from: root.a, to: cell.us, path: request, delay: 20 ms, loss: 5 %, loss_burst: 3}}
  - {{from: root.a, to: cell.eu, path: request, delay: 20 ms, jitter: {{exponential: 10 ms}}, reorder: {{fraction: 5 %}}}}
  - {{from: cell.us, to: root.a, path: reply, delay: 20 ms, jitter: {{normal: 4 ms}}, correlation: 0.5, duplicate: 10 %}}
  - {{from: cell.us, to: root.*, path: observation, delay: 50 ms, jitter: {{pareto: 10 ms}}, duplicate: 10 %}}
  - {{from: cell.eu, to: root.a, path: observation, delay: 50 ms, rate: 80 /s, queue: 2}}
  - {{from: root.b, to: cell.us, path: request, delay: 30 ms, order: kept}}
  - {{from: "*/leaf-*", to: "*/server-*", delay: 2 ms}}
  - {{from: "*/server-*", to: "*/leaf-*", delay: 2 ms}}
faults:
  - {{at: 0 s, for: 0.5 s, link: {{from: root.b, to: cell.us, path: request}}, set: {{delay: +100 ms}}}}
  - {{at: 0.5 s, for: 0.5 s, partition: [east, root.a]}}
  - {{at: 0.25 s, link: {{from: cell.eu, to: root.b, path: observation}}, set: {{flap: {{period: 125 ms, down: 20 %}}}}}}
  - {{at: 1 s, for: 0.5 s, root: b, set: {{demand: x2}}}}
  - {{at: 1 s, for: 0.5 s, cell: us, pick: one, set: {{speed: 0.5}}}}
"""


def ledger_gaps(outcome: Any) -> list[str]:
    """Links of which messages are unaccounted for."""
    return [f"{line.source} -> {line.target} {line.path}" for line in outcome.ledger if line.gap]


def counted(tables: dict[str, Any], column: str, **where: str) -> int:
    """The sum of a count over the links of the given source, target and path."""
    links = tables["links"]
    rows = np.ones(len(links["sent"]), bool)
    for name, value in where.items():
        rows &= links[name] == value
    return int(links[column][rows].sum())
