"""The loop delay of a root and a cell: from the measurement of an observation to the arrival of what was sent by it.

Source: measures.md, section 2. Faults are not considered.
"""

from __future__ import annotations

import math

from testbed.scenario.policy_words import FlowPolicy, Policy
from testbed.scenario.schema import Scenario
from testbed.scenario.view_words import ViewWords
from testbed.theory.path_delays import PathDelays
from testbed.theory.report_gap import mean_wait_s
from testbed.theory.report_timing import report_loss, report_period_s, reporters


def observation_age_s(scenario: Scenario, delays: PathDelays, root: str, cell: str, policy: Policy) -> float:
    """Mean age of a cell's observation when a root's policy uses it; infinite where all reports are lost.

    At a random instant it is delay + R (1/2 + p / (1 - p)), R the report period, p the loss of reports; so it is
    for a policy with a timer of its own. Where every report triggers an update, the observation is used at the
    beginning of each gap between reports of any cell, for as long as that gap lasts, and the mean time from there,
    which is the mean wait for the next report, does not count. (One cell: the delay alone. K cells that report in
    turn: delay + (K - 1)/K R (1/2 + p / (1 - p)).) How a question and an answer make a report, and what a report of
    changes alone is taken for, stands in `report_timing`.

    With several leaves it is the mean over them, since each has a part of the cell's requests.
    """
    loss = report_loss(scenario, delays, root, cell)
    if loss >= 1.0:
        return math.inf
    period_s = report_period_s(scenario, delays, root, cell)
    age_s = delays.between(root, cell, "observation").mean_s + period_s * (0.5 + loss / (1.0 - loss))
    if isinstance(policy, FlowPolicy) and policy.update == "on_report":
        return age_s - mean_wait_s(reporters(scenario, delays, root))
    return age_s


def decision_s(policy: Policy) -> float:
    """From the reading of the view to the sending of the request."""
    return policy.decision_time if isinstance(policy, ViewWords) else 0.0


def request_delay_s(delays: PathDelays, root: str, cell: str, policy: Policy) -> float:
    """From the choice of a cell to the arrival of the request there: the decision takes its time, then it travels."""
    return decision_s(policy) + delays.between(root, cell, "request").mean_s


def loop_delay_s(scenario: Scenario, delays: PathDelays, root: str, cell: str, policy: Policy) -> float:
    """T_ij: the mean delay of a request plus the mean age of the observation when it is used."""
    age_s = observation_age_s(scenario, delays, root, cell, policy)
    return request_delay_s(delays, root, cell, policy) + age_s
