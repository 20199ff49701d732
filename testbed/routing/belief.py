"""How many requests a balancer believes to be in flight at a target: the report and its own requests, put together.

    none         R                     R as reported; as the limit on its age reads it, where there is one
    overwrite    R + own sends since the last report was taken, answered or not
    add          R + U                 U own unanswered requests that the report cannot have seen
    max          max(R, O)             O all own unanswered requests
    scaled       R + peers * U         as if every balancer of the target had sent as many meanwhile
    own counts   O                     reports are not looked at

Where own requests count from their first token, only those stand in O, U and the sends whose first token has come.

What applies is settled once, before the run: each belief is one small function of a target.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from testbed.routing.view import FRESH, REPORTED, Begun, Limit, Target, View
from testbed.scenario.view_words import CountWords, ViewWords
from testbed.scenario.words import Words

Count = Callable[[Target], float]

OWN: Count = attrgetter("own_in_flight")


def configure_view(spec: Words, view: View) -> None:
    """Make a view believe what the words of a policy say; targets learn here whether own sends are to be kept."""
    limit = _limit(spec) if isinstance(spec, ViewWords) and spec.reads_ages else None
    reported = REPORTED if limit is None else _limited(limit, view)
    counts_begun = isinstance(spec, CountWords) and spec.counts_from == "first_token"
    if counts_begun:
        keep_unseen(view)
        for target in view.targets:
            target.begun = target.begun or Begun()
    if getattr(spec, "view", "reports") == "own_counts":
        view.count = own_begun if counts_begun else OWN
    elif isinstance(spec, CountWords):
        view.count = with_own_counts(spec, reported)
        if spec.own_counts in ("overwrite", "add", "scaled"):
            keep_unseen(view)
    else:
        view.count = reported
    if limit is not None:
        view.set_limit(limit)


def keep_unseen(view: View) -> None:
    """Let the targets keep the balancer's own sends that no report has seen."""
    for target in view.targets:
        target.keeps_unseen = True


def begun_of(target: Target) -> Begun:
    """Its own requests past their first token."""
    assert target.begun is not None, f"{target.name} does not count from first tokens"
    return target.begun


def own_begun(target: Target) -> int:
    """Own unanswered requests past their first token."""
    return len(begun_of(target).open)


def with_own_counts(spec: CountWords, reported: Count) -> Count:
    """The belief of a policy, from what is reported."""
    if spec.counts_from == "first_token":
        return _with_own_begun(spec, reported)
    if spec.own_counts == "overwrite":
        return lambda target: reported(target) + target.sent_since_report
    if spec.own_counts == "add":
        return lambda target: reported(target) + len(target.unseen)
    if spec.own_counts == "max":
        return lambda target: max(reported(target), target.own_in_flight)
    if spec.own_counts == "scaled":
        given = spec.peers
        if isinstance(given, int):
            return lambda target: reported(target) + given * len(target.unseen)
        return lambda target: reported(target) + target.peers * len(target.unseen)
    return reported


def _with_own_begun(spec: CountWords, reported: Count) -> Count:
    if spec.own_counts == "overwrite":
        return lambda target: reported(target) + begun_of(target).since_report
    if spec.own_counts == "max":
        return lambda target: max(reported(target), len(begun_of(target).open))
    if spec.own_counts == "add":
        return lambda target: reported(target) + len(begun_of(target).unseen)
    given = spec.peers if isinstance(spec.peers, int) else 0
    return lambda target: reported(target) + (given or target.peers) * len(begun_of(target).unseen)


def _limit(spec: ViewWords) -> Limit:
    after_s = float("inf") if spec.stale_after is None else spec.stale_after
    return Limit(after_s, spec.stale, spec.unheard, spec.when_none == "any")


def _limited(limit: Limit, view: View) -> Count:
    """What is reported, as its age has it read."""

    def reported(target: Target) -> float:
        reading = limit.reading(target, view.now_s)
        if reading == FRESH:
            return target.in_flight
        if reading == "full":
            return max(target.in_flight, target.n_cap * target.servers)
        return 0 if reading == "empty" else target.in_flight

    return reported
