"""What a balancer believes of its targets, and how old each belief is.

The same at both tiers: the targets of a root are cells, those of a leaf are servers. A belief comes from reports
(which have an age), from the balancer's own unanswered requests (which have none), and from round trips that it
measured itself. Nothing here looks at the truth: only the records and the tests may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from testbed.roles.messages import FAULT, HEALTH, Report
from testbed.serving.rate_curve import RateCurve

NETWORK_WEIGHT = 1 / 16  # of the newest round trip: sixteen replies tell a changed delay from jitter


class Target:
    """The belief of one target; the balancer that owns it alone changes it.

    Attributes:
        name: the cell's or the server's.
        index: position in `View.targets`.
        curve: rate curve of one of its servers for the mix of work of this balancer.
        servers: how many equal servers stand behind it (1 for a server).
        capacity_per_s: the most that it completes, all servers together; 0 where they have no room for a mean request.
        divisor_per_s: the same for costs that divide by it, above 0 (see `RateCurve.divisor_per_s`).
        alpha_s, beta_s, n_cap: of `curve`, for costs at each decision.
        queued, running, in_flight, arrivals: as reported; the sum over the latest report of each reporter, where
            one that was never heard counts 0.
        error_fraction, speed, fitted_a_s, fitted_b_s, model_error: as reported; the mean over the reporters.
        sequence, received_at_s: of the report received last; -1 and NaN before any.
        measured_at_s: the oldest among the latest reports of all reporters; NaN before any.
        reports: the latest report of each reporter, by name.
        own_in_flight: this balancer's own requests that are unanswered; below 0 once a fault has reset the count.
        keeps_unseen: whether the next two are kept; set for policies that correct reports by their own sends.
        unseen: own unanswered requests that had not arrived when the belief was measured, with the instant of sending.
        sent_since_report: own requests sent since a report was last taken, answered or not.
        begun: own requests whose first token has come; None where nobody counts them.
        peers: balancers that send to it, this one included.
        takes_overtaken: a report is taken even if one that was measured later came before it.
        network_s: smoothed round trip without the time in the target; NaN until the first reply.
    """

    __slots__ = (
        "alpha_s",
        "arrivals",
        "begun",
        "beta_s",
        "capacity_per_s",
        "curve",
        "divisor_per_s",
        "error_fraction",
        "fitted_a_s",
        "fitted_b_s",
        "in_flight",
        "index",
        "keeps_unseen",
        "measured_at_s",
        "model_error",
        "n_cap",
        "name",
        "network_s",
        "own_in_flight",
        "peers",
        "queued",
        "received_at_s",
        "reports",
        "running",
        "sent_since_report",
        "sequence",
        "servers",
        "speed",
        "takes_overtaken",
        "unseen",
    )

    def __init__(self, name: str, curve: RateCurve, servers: int = 1, index: int = 0) -> None:
        """A target of which nothing is known yet: idle, at the speed of its curve."""
        self.name = name
        self.index = index
        self.curve = curve
        self.servers = servers
        self.capacity_per_s = servers * curve.capacity_per_s
        self.divisor_per_s = servers * curve.divisor_per_s
        self.alpha_s = curve.alpha_s
        self.beta_s = curve.beta_s
        self.n_cap = curve.n_cap
        self.queued = 0
        self.running = 0
        self.in_flight = 0
        self.arrivals = 0
        self.error_fraction = 0.0
        self.speed = 1.0
        self.fitted_a_s = math.nan
        self.fitted_b_s = math.nan
        self.model_error = math.nan
        self.sequence = -1
        self.measured_at_s = math.nan
        self.received_at_s = math.nan
        self.reports: dict[str, Report] = {}
        self.own_in_flight = 0
        self.keeps_unseen = False
        self.unseen: dict[int, float] = {}
        self.sent_since_report = 0
        self.begun: Begun | None = None
        self.peers = 1
        self.takes_overtaken = False
        self.network_s = math.nan

    def on_sent(self, request_id: int, now_s: float) -> None:
        """The balancer has sent it a request."""
        self.own_in_flight += 1
        if self.keeps_unseen:
            self.unseen[request_id] = now_s
            self.sent_since_report += 1

    def on_answered(self, request_id: int) -> None:
        """A request of the balancer is over: replied, or given up."""
        self.own_in_flight -= 1
        if self.keeps_unseen:
            self.unseen.pop(request_id, None)
            if self.begun is not None:
                self.begun.drop(request_id)

    def forget_own(self) -> None:
        """Every count of the balancer's own requests is nought from now on, whatever is open."""
        self.own_in_flight = self.sent_since_report = 0
        self.unseen.clear()
        if self.begun is not None:
            self.begun = Begun()

    def on_first_token(self, request_id: int, now_s: float) -> None:
        """The first token of a request of the balancer has come."""
        if self.begun is not None:
            self.begun.add(request_id, now_s)

    def on_network(self, sample_s: float) -> None:
        """A round trip was measured: reply received - request sent - time in the target."""
        known_s = self.network_s
        self.network_s = sample_s if known_s != known_s else known_s + (sample_s - known_s) * NETWORK_WEIGHT

    def on_report(self, source: str, report: Report, now_s: float) -> bool:
        """A report has arrived from one of its reporters.

        Returns:
            Whether it was taken: one measured before the last one of the same reporter is not, unless overtaken
            ones are taken as well.
        """
        reports = self.reports
        last = reports.get(source)
        if last is not None and report.measured_at_s < last.measured_at_s and not self.takes_overtaken:
            return False
        reports[source] = report
        self.sequence = report.sequence
        self.received_at_s = now_s
        if len(reports) == 1:
            self._take(report)
        else:
            self._merge(list(reports.values()))
        if self.keeps_unseen:
            self.sent_since_report = 0
            self._forget_seen()
            if self.begun is not None:
                self.begun.on_report(self.measured_at_s)
        return True

    def arrivals_of(self, class_index: int) -> int:
        """Requests of a class received since the run began, as reported; 0 where nobody counts by class."""
        counts = [report.arrivals_by_class for report in self.reports.values()]
        return sum(each[class_index] for each in counts if each)

    def staleness_s(self, now_s: float) -> float:
        """Age of the belief, used less measured; NaN before any report."""
        return now_s - self.measured_at_s

    def _take(self, report: Report) -> None:
        self.measured_at_s = report.measured_at_s
        self.queued = report.queued
        self.running = report.running
        self.in_flight = report.queued + report.running
        self.arrivals = report.arrivals
        self.error_fraction = report.error_fraction
        self.speed = report.speed
        self.fitted_a_s = report.fitted_a_s
        self.fitted_b_s = report.fitted_b_s
        self.model_error = report.model_error

    def _merge(self, reports: Sequence[Report]) -> None:
        self.measured_at_s = min(report.measured_at_s for report in reports)
        self.queued = sum(report.queued for report in reports)
        self.running = sum(report.running for report in reports)
        self.in_flight = self.queued + self.running
        self.arrivals = sum(report.arrivals for report in reports)
        self.error_fraction = _mean_known(report.error_fraction for report in reports)
        self.speed = _mean_known(report.speed for report in reports)
        self.fitted_a_s = _mean_known(report.fitted_a_s for report in reports)
        self.fitted_b_s = _mean_known(report.fitted_b_s for report in reports)
        self.model_error = _mean_known(report.model_error for report in reports)

    def _forget_seen(self) -> None:
        """Drop own sends that the report knows of: those that had arrived when it was measured.

        A request is taken to travel for half the measured round trip. The dict is in order of sending.
        """
        travel_s = self.network_s / 2 if self.network_s == self.network_s else 0.0
        seen = []
        for request_id, sent_at_s in self.unseen.items():
            if sent_at_s + travel_s > self.measured_at_s:
                break
            seen.append(request_id)
        for request_id in seen:
            del self.unseen[request_id]


class Begun:
    """Own unanswered requests of one target, from the news of their first token on.

    Attributes:
        open: all of them.
        unseen: those whose news came after the belief was measured, with the instant.
        since_report: how many began since a report was last taken, answered or not.
    """

    __slots__ = ("open", "since_report", "unseen")

    def __init__(self) -> None:
        """None yet."""
        self.open: set[int] = set()
        self.unseen: dict[int, float] = {}
        self.since_report = 0

    def add(self, request_id: int, now_s: float) -> None:
        """The news of a first token."""
        self.open.add(request_id)
        self.unseen[request_id] = now_s
        self.since_report += 1

    def drop(self, request_id: int) -> None:
        """A request is over, whether it had begun or not."""
        self.open.discard(request_id)
        self.unseen.pop(request_id, None)

    def on_report(self, measured_at_s: float) -> None:
        """A report was taken: it knows of what began before its measurement."""
        self.since_report = 0
        self.unseen = {each: at_s for each, at_s in self.unseen.items() if at_s > measured_at_s}


FRESH = "fresh"


class Limit(NamedTuple):
    """How old a report may be, and what becomes of a target whose last one is older, or of which there is none."""

    after_s: float = math.inf
    stale: str = "last"
    unheard: str = "empty"
    any_when_none: bool = True  # where no target would be usable, all permitted ones are

    def reading(self, target: Target, now_s: float) -> str:
        """What its reports are taken for now: fresh, last, ignored, full or empty."""
        measured_at_s = target.measured_at_s
        if measured_at_s != measured_at_s:
            return self.unheard
        return self.stale if now_s > measured_at_s + self.after_s else FRESH


REPORTED: Callable[[Target], float] = attrgetter("in_flight")  # as reported, and no more


class View:
    """All that a policy may know when it chooses.

    Attributes:
        targets: all targets, in the order of their indices.
        permitted: those that this balancer may use at all, and that are in rotation.
        allowed: those that may be chosen now: the permitted ones without those that `limit` rules out; replaced as a
            whole, never changed in place, so that a policy notices a change by identity.
        now_s: the instant of the decision; set by the role before each call.
        by_name: the targets by name.
        count: requests in flight at a target as this view believes: the report and own requests as its words say.
        limit: on the age of reports; None where age changes nothing.
        turns_at_s: past this instant `allowed` is to be worked out anew; infinite where age changes nothing.
    """

    __slots__ = (
        "_named",
        "_out",
        "allowed",
        "by_name",
        "count",
        "limit",
        "now_s",
        "permitted",
        "targets",
        "turns_at_s",
    )

    def __init__(self, targets: Sequence[Target], allowed: Iterable[str] | None = None) -> None:
        """A view at time 0 in which the named targets are allowed, or all."""
        self.targets = tuple(targets)
        self.by_name = {target.name: target for target in self.targets}
        self.now_s = 0.0
        self.permitted = self.allowed = self._named = self.targets
        self._out: set[tuple[str, str]] = set()  # target, cause
        self.count: Callable[[Target], float] = REPORTED
        self.limit: Limit | None = None
        self.turns_at_s = math.inf
        if allowed is not None:
            self.allow(allowed)
        assert [target.index for target in self.targets] == list(range(len(self.targets)))
        assert len(self.by_name) == len(self.targets)

    def allow(self, names: Iterable[str]) -> None:
        """From now on these targets alone may be chosen; raises KeyError for a name that is no target."""
        wanted = {self.by_name[name].index for name in names}
        self._named = tuple(target for target in self.targets if target.index in wanted)
        self._permit()

    def rotate(self, name: str, *, inside: bool, cause: str = FAULT) -> None:
        """From now on this target is in rotation, or out of it, for one of several causes.

        It is in rotation while no cause keeps it out. Where all would be out, those that are out by health checks alone
        are in. Raises KeyError for a name that is no target.
        """
        entry = (self.by_name[name].name, cause)
        if inside:
            self._out.discard(entry)
        else:
            self._out.add(entry)
        self._permit()

    def _permit(self) -> None:
        out = {name for name, _ in self._out}
        permitted = tuple(target for target in self._named if target.name not in out)
        if not permitted:
            out = {name for name, cause in self._out if cause != HEALTH}
            permitted = tuple(target for target in self._named if target.name not in out)
        self.permitted = self.allowed = permitted
        self.refresh()

    def set_limit(self, limit: Limit) -> None:
        """From now on reports may be this old."""
        self.limit = limit
        self.refresh()

    def refresh(self) -> None:
        """Work out anew who may be chosen: after a report, and once `turns_at_s` has passed; `now_s` is set."""
        limit, now_s = self.limit, self.now_s
        if limit is None:
            return
        readings = [(target, limit.reading(target, now_s)) for target in self.permitted]
        usable = tuple(target for target, reading in readings if reading != "ignored")
        if all(reading in ("full", "ignored") for _, reading in readings):
            usable = self.permitted if limit.any_when_none else ()
        if usable != self.allowed:
            self.allowed = usable
        turns = (target.measured_at_s + limit.after_s for target, reading in readings if reading == FRESH)
        self.turns_at_s = min(turns, default=math.inf)


def _mean_known(values: Iterable[float]) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else math.nan
