"""The words of a balancer's view: what it believes between reports, what it makes of old ones and of none, how long it thinks.

They are keys of policies, the same at both tiers: the targets of a root are cells, those of a leaf are servers.
"""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from testbed.scenario.resilience_words import BreakerWords, SlowStartWords
from testbed.scenario.words import DurationFromZero, PositiveCount, PositiveDuration, Words

StaleReading = Literal["last", "ignored", "full", "empty"]
UnheardReading = Literal["empty", "ignored", "full"]
OwnCounts = Literal["none", "overwrite", "add", "max", "scaled"]


class ViewWords(Words):
    """What reports older than a limit mean, what no report means, and what happens when no target is usable.

    last: as it stood; ignored: not chosen while another target is usable; full: as many in flight as the target
    can serve, or as reported if that is more, and unusable when all are so; empty: none in flight.

    A choice takes `decision_time`: it is made on the view as it was then, and the request is sent, and counted among
    the balancer's own, so much later.
    """

    stale: StaleReading = "last"
    stale_after: PositiveDuration | None = None
    unheard: UnheardReading = "empty"
    when_none: Literal["any", "hold", "refuse"] = "any"
    hold_queue: PositiveCount | None = None
    decision_time: DurationFromZero = 0.0
    breaker: BreakerWords | None = None
    slow_start: SlowStartWords | None = None

    @model_validator(mode="after")
    def _check_view(self) -> ViewWords:
        if self.stale != "last" and self.stale_after is None:
            raise ValueError(
                f"stale: {self.stale} needs stale_after, which is missing", "a time such as '2 s'"
            )
        if self.stale == "last" and self.stale_after is not None:
            raise ValueError("stale_after does not go with stale: last", "stale: ignored, full or empty")
        if self.when_none == "hold" and self.hold_queue is None:
            raise ValueError("when_none: hold needs hold_queue, which is missing", "a whole number from 1")
        if self.when_none != "hold" and self.hold_queue is not None:
            raise ValueError(f"hold_queue does not go with when_none: {self.when_none}", "when_none: hold")
        return self

    @property
    def reads_ages(self) -> bool:
        """Whether the age of reports, or their absence, changes anything."""
        return self.stale != "last" or self.unheard != "empty"


class CountWords(ViewWords):
    """What a policy that compares counts makes of its own requests between reports.

    none: the report alone. overwrite: own sends since the last report came on top of it; a report erases them.
    add: own unanswered sends that the report cannot have seen on top of it. max: the larger of the report and all
    own unanswered requests. scaled: as `add`, times the number of balancers that send to the same targets.

    Own requests count from their dispatch, or from the news of their first token.
    """

    own_counts: OwnCounts = "none"
    counts_from: Literal["dispatch", "first_token"] = "dispatch"
    peers: Literal["auto"] | PositiveCount | None = None

    @model_validator(mode="after")
    def _check_counts(self) -> CountWords:
        if self.peers is not None and self.own_counts != "scaled":
            raise ValueError(f"peers does not go with own_counts: {self.own_counts}", "own_counts: scaled")
        counts = self.own_counts != "none" or getattr(self, "view", "") == "own_counts"
        if self.counts_from != "dispatch" and not counts:
            raise ValueError(
                f"counts_from: {self.counts_from} needs own requests that are counted",
                "own_counts: overwrite, add, max or scaled; or view: own_counts",
            )
        return self
