"""Sojourn, first token, goodput, and where the time went; no request is left out of them.

Sojourn = reply received - *planned* arrival. First token as the client sees it = first token at the server + that
reply's travel - planned arrival. A request that ended without service (timed out, shed, without a target, lost, or
unfinished when the run ended) has no sojourn, but it is known to have waited at least until its client had gone:
its timeout, or the time from its planned arrival to the end of the run if that is shorter. It counts with that
lower bound, in the sojourn and in the first token, and is counted as `censored`. So a percentile below the share
of uncensored requests is exact, one above it a lower bound, and nothing improves by not answering. A late reply
changes nothing: its client had gone.

Source: measures.md, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.analysis.records import Floats, Mask, Table, codes, mean, quantile, row_count, rows
from testbed.roles.messages import OUTCOMES
from testbed.scenario.schema import Scenario, Slo

PERCENTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


class Waits(NamedTuple):
    """How long requests waited, seconds, and which of these are only lower bounds: shape (requests,)."""

    seconds: Floats
    censored: Mask


def sojourns(requests: Table, scenario: Scenario, end_s: float) -> Waits:
    """Sojourn of every request, in the order of the rows; NaN for one planned after the end of the run."""
    answered = was_answered(requests)
    bound_s = _lower_bound_s(requests, scenario, end_s)
    seconds = np.where(answered, requests["replied_at_s"] - requests["planned_at_s"], bound_s)
    return Waits(seconds, ~answered)


def first_tokens(requests: Table, scenario: Scenario, end_s: float) -> Waits:
    """Time from the planned arrival to the first token at the client, of every request."""
    seen = was_answered(requests) & np.isfinite(requests["first_token_at_s"])
    bound_s = _lower_bound_s(requests, scenario, end_s)
    travel_s = requests["replied_at_s"] - requests["finished_at_s"]
    seconds = np.where(seen, requests["first_token_at_s"] + travel_s - requests["planned_at_s"], bound_s)
    return Waits(seconds, ~seen)


def was_answered(requests: Table) -> Mask:
    """Which requests were served and answered in time, well or with an error of the server."""
    served = (requests["outcome"] == "completed") | (requests["outcome"] == "failed")
    return np.asarray(served & np.isfinite(requests["replied_at_s"]), np.bool_)


def percentiles(waits: Waits) -> dict[str, float]:
    """Mean and percentiles in seconds, the number of requests, and how many are lower bounds."""
    known = np.isfinite(waits.seconds)
    return {**known_percentiles(waits.seconds), "censored": int((known & waits.censored).sum())}


def known_percentiles(seconds: Floats) -> dict[str, float]:
    """Mean and percentiles of the values that are not NaN, and how many these are."""
    figures = {name: quantile(seconds, fraction) for name, fraction in PERCENTILES.items()}
    return {"mean": mean(seconds), **figures, "count": int(np.isfinite(seconds).sum())}


def token_gaps_s(requests: Table) -> Floats:
    """Mean gap between the tokens of each request; 0 for a single token, NaN where not served."""
    gaps = np.maximum(requests["output_tokens"] - 1, 1)
    made_s = requests["finished_at_s"] - requests["first_token_at_s"]
    return np.where(was_answered(requests), made_s / gaps, np.nan)


def goodput_per_s(requests: Table, scenario: Scenario, slo: Slo, span_s: float, end_s: float) -> float:
    """Completed replies within the service level objective, per second of the window."""
    good = requests["outcome"] == "completed"
    good &= first_tokens(requests, scenario, end_s).seconds <= slo.first_token
    good &= token_gaps_s(requests) <= slo.token_gap
    return float(good.sum()) / span_s


def outcome_counts(requests: Table) -> dict[str, int]:
    """Requests planned, by outcome; how many replies came after the timeout, and how often requests were sent."""
    counts = np.bincount(codes(requests["outcome"], OUTCOMES) + 1, minlength=len(OUTCOMES) + 1)[1:]
    late = {"late": int(requests["late"].sum())} if "late" in requests else {}
    attempts = {"attempts": int(requests["attempts"].sum())} if "attempts" in requests else {}
    return {
        "planned": row_count(requests),
        **{name: int(count) for name, count in zip(OUTCOMES, counts, strict=True)},
        **late,
        **attempts,
    }


def sheds(requests: Table) -> dict[str, int]:
    """How many of the requests that were shed ended at roots, at leaves and at servers."""
    shed = requests["outcome"] == "shed"
    at_root, unserved = requests["cell"] == "", requests["server"] == ""
    return {
        "root": int((shed & at_root).sum()),
        "leaf": int((shed & unserved & ~at_root).sum()),
        "server": int((shed & ~unserved).sum()),
    }


def split_s(requests: Table) -> dict[str, float]:
    """Where the time of the completed requests went: means in seconds that add up to their mean sojourn."""
    done = rows(requests, requests["outcome"] == "completed")
    parts = {
        "slip": ("planned_at_s", "sent_at_s"),
        "request_travel": ("sent_at_s", "at_leaf_s"),
        "leaf_wait": ("at_leaf_s", "at_server_s"),
        "server_queue": ("at_server_s", "started_at_s"),
        "prefill": ("started_at_s", "first_token_at_s"),
        "decode": ("first_token_at_s", "finished_at_s"),
        "reply_travel": ("finished_at_s", "replied_at_s"),
    }
    split = {name: mean(done[until] - done[since]) for name, (since, until) in parts.items()}
    held_s = mean(done["held_s"])
    split |= {"slip": split["slip"] - held_s, "root_hold": held_s}
    if "attempts" not in done or not (done["attempts"] > 1).any():
        return split
    earlier_s = done["sent_at_s"] - done["held_s"] - done["planned_at_s"]
    earlier_s = mean(np.where(done["attempts"] > 1, earlier_s, 0.0))
    return {**split, "slip": split["slip"] - earlier_s, "earlier_attempts": earlier_s}


def _lower_bound_s(requests: Table, scenario: Scenario, end_s: float) -> Floats:
    timeouts = np.array([words.timeout for words in scenario.classes.values()])
    timeout_s = timeouts[codes(requests["class"], list(scenario.classes))]
    until_end_s = end_s - requests["planned_at_s"]
    return np.where(until_end_s < 0, np.nan, np.minimum(timeout_s, until_end_s))
