"""The keys that a kind of policy cannot do without, besides `kind`."""

from __future__ import annotations

from typing import Any

from testbed.scenario.policy_words import POLICY_KINDS

DUE: dict[str, dict[str, Any]] = {
    "d_choices": {"choices": 3},
    "flow": {"step": "0.05 /s^2"},
    "dgd": {"step": "0.05 /s^2"},
    "logit": {"temperature": "100 ms"},
    "imitation": {"slope": "2 /s"},
}
LEAST_WORDS = {kind: {"kind": kind, **DUE.get(kind, {})} for kind in POLICY_KINDS}
