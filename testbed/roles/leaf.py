"""The leaf: chooses a server inside its cell, and reports the cell's load to the roots.

Theory of operation. A request from a root is given to the server that the policy picks and is open until the
server's reply comes (which goes on to the root), its class's timeout has passed, or the run ends. Every report
period the leaf tells all roots what it has in flight and what it learned of its servers' speed, with the instant
of measurement; or it does so only where that has changed, or when a root asks.

Where no server is usable (all reports are too old for the policy's words, say) the request is refused, or held until
one is: in order of arrival, up to a bound, beyond which requests are shed. Newcomers queue behind the held, which count
as waiting in the cell. Where a decision takes time the request waits here until it is over, counted in the cell but not
yet at the server.

Where the policy asks servers before it chooses, the request waits until enough of them have answered or the time to do
so is up. It counts as waiting in the cell, and its timeout runs on, though it may be noticed late by as much.

Messages seen: `Request` and `Poll` from roots; `Reply`, `Report` and `ProbeReply` from servers. A reply to a request that has
timed out here is late and dropped; a reply to one that was never given to that server is an error, unless an earlier
life of this leaf gave it. `Setting` and `Rotation` come from the engine: what faults make of its reports and counts, and
which servers take no new requests.

Queued or running? Only a server knows. Each of its replies tells how many of its requests wait, and the leaf
takes that share of its own requests there to be waiting. Each reply also tells the tokens that its server has still
to prefill and to make; those of the requests sent since then come on top, and none are left where none is in flight.

With several leaves before the same servers, each counts its own requests; for the latency model it adds what the
servers' replies tell of the others'.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from mypy_extensions import mypyc_attr

from testbed.roles.environment import LIFE_BITS, Environment
from testbed.roles.held import Held, Waiting
from testbed.roles.inquiries import Inquiries, Inquiry
from testbed.roles.leaf_configuration import LeafConfiguration
from testbed.roles.messages import (
    FirstToken,
    Message,
    Notice,
    Outcome,
    Poll,
    Probe,
    ProbeReply,
    Reply,
    Report,
    Request,
    Rotation,
    Setting,
)
from testbed.roles.miscount import Miscount
from testbed.roles.poller import Poller
from testbed.roles.schedule import Schedule
from testbed.roles.telemetry import Telemetry
from testbed.routing.view import Target

COMPLETED = int(Outcome.COMPLETED)
ERROR_MEMORY = 0.01  # weight of one reply in the error fraction: it looks back over about 100 replies


class _Open:
    """A request given to a server and not answered yet."""

    __slots__ = ("area", "at_leaf_s", "request", "root", "sent_at_s", "server")

    def __init__(
        self, request: Request, root: str, server: Target, at_leaf_s: float, sent_at_s: float, area: float
    ) -> None:
        self.request = request
        self.root = root
        self.server = server
        self.at_leaf_s = at_leaf_s
        self.sent_at_s = sent_at_s
        self.area = area  # under the in-flight count of its server when it was sent


class _Track:
    """What the leaf follows of one server besides the policy's view."""

    __slots__ = ("area", "area_at_s", "others", "output_tokens", "prompt_tokens", "queued_share", "waiting")

    def __init__(self) -> None:
        self.area = 0.0  # integral of requests in flight over time
        self.area_at_s = 0.0
        self.others = 0.0  # requests there from other leaves, as its last reply told
        self.queued_share = 0.0  # share of its requests that waited when it last replied
        self.waiting = 0.0  # that share of our own requests there
        self.prompt_tokens = 0  # still to prefill for this leaf: as it last told, and what was sent since
        self.output_tokens = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Leaf:
    """Spreads the requests of one cell over its servers; see the top of this file."""

    def __init__(self, env: Environment, name: str, told: LeafConfiguration) -> None:
        """Args:
        env: the world around.
        name: this node's name.
        told: all else.
        """
        self._env = env
        self._name = name
        self._view = told.view
        self._policy = told.policy
        self._hooks = told.hooks
        self._roots = told.roots
        self._timeouts_s = told.timeouts_s
        self._reports = told.reports
        self._changes = told.changes
        self._model = told.model
        self._has_peers = told.has_peers
        self._counts_steps = told.counts_steps
        self._decision_s = told.decision_s
        self._passes_first_tokens = told.passes_first_tokens
        self._records_news = told.records_news
        self._poller = None if told.polls is None else Poller(env, "poll", told.polls)
        self._rng = env.rng("policy")
        self._probe_rng = env.rng("probes")

        # Requests: open at a server, by class; held; asking; decided on but not sent; late ones whose time was up.
        self._open: list[dict[int, _Open]] = [{} for _ in told.timeouts_s]
        self._armed = [False] * len(told.timeouts_s)  # the timer of a class's deadlines
        self._held = Held(told.hold_queue)
        self._inquiries = Inquiries(told.hooks.ask_timeout_s)
        self._deciding: deque[Request] = deque()
        self._timed_out: set[int] = set()

        # Servers.
        self._by_name = {target.name: target for target in told.view.targets}
        self._tracks = {target.name: _Track() for target in told.view.targets}
        self._waiting_there = 0.0  # requests, as far as the servers' replies told
        self._probed_at_s = 0.0

        # Counts.
        self._in_flight = 0
        self._unsent = 0  # of these, that no server has yet
        self._waiting = 0  # of these, that are held
        self._prompt_tokens = 0  # of requests that no server has yet
        self._output_tokens = 0
        self._arrivals = 0
        self._arrivals_by_class = [0] * len(told.timeouts_s)
        self._finished = 0
        self._error_fraction = 0.0
        self._miscount = Miscount(told.fault_base)
        self._telemetry = Telemetry()
        self._sequence = self._probe_id = env.life << LIFE_BITS

    def start(self) -> None:
        """Wait for the first report."""
        now_s = self._env.now_s()
        if self._reports is not None:
            self._env.set_timer("report", self._reports.first_s(now_s))
        if self._poller is not None:
            self._poller.start()
        if self._hooks.idle_probe_after_s < math.inf:
            self._env.set_timer("idle", now_s + self._hooks.idle_probe_after_s)
        if self._hooks.on_tick is not None:
            self._ticks = Schedule(self._hooks.tick_interval_s, self._hooks.tick_interval_s)
            self._env.set_timer("tick", self._ticks.first_s(now_s))

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Take a request, what a server says, or what a fault changes."""
        if isinstance(message, Request):  # the two of every request, before all else
            self._on_request(source, message)
            return
        if isinstance(message, Reply):
            self._on_reply(source, message)
            return
        match message:
            case ProbeReply():
                self._on_probe_reply(source, message)
            case Report():
                self._on_report(source, message)
            case FirstToken():
                self._on_first_token(message)
            case Poll():
                self._send_report([source])
            case Setting():
                self._on_setting(message)
            case Rotation():
                self._on_rotation(message)
            case _:
                raise RuntimeError(f"{self._name}: {message} from {source}: not for a leaf")

    def on_timer(self, name: str) -> None:
        """A report, a tick or a timeout is due."""
        if name == "report":
            self._report()
        elif name == "tick":
            self._tick()
        elif name == "poll":
            assert self._poller is not None
            self._poller.on_timer()
        elif name == "decide":
            self._take_effect()
        elif name == "held":
            self._expire_held()
        elif name == "idle":
            self._probe_if_idle()
        elif name == "asked":
            self._expire_inquiries()
        else:
            self._expire(int(name.partition(":")[2]))

    def stop(self, *, killed: bool = False) -> None:
        """The run is over: what is open stays unfinished. If the leaf dies, it leaves the cell now, and is lost."""
        now_s, still_open = self._env.now_s(), sum(map(len, self._open)) - len(self._deciding)
        row = self._miscount.row(self._name, now_s, self._view.targets, still_open)
        self._env.record("counts", row)
        outcome = Outcome.LOST if killed else Outcome.UNFINISHED
        left_at_s = now_s if killed else float("nan")
        for requests in self._open:
            for opened in requests.values():
                if self._is_undecided(opened.request):
                    self._record_unsent(opened.request, outcome, opened.at_leaf_s, left_at_s)
                else:
                    self._record(opened, outcome, left_at_s)
        for inquiry in self._inquiries.open():
            self._record_unsent(inquiry.request, outcome, inquiry.at_leaf_s, left_at_s)
        for waiting in self._held.take_all():
            self._record_unsent(waiting.request, outcome, waiting.arrived_at_s, left_at_s)

    def is_idle(self) -> bool:
        """Nothing is open."""
        return self._in_flight == 0

    def gauges(self) -> tuple[int, int, int]:
        """(requests received, finished, in flight)."""
        return self._arrivals, self._finished, self._in_flight

    def _on_setting(self, setting: Setting) -> None:
        if setting.key == "leak":
            self._miscount.fraction = setting.value
        elif setting.key == "reset_counts":
            self._reset_counts()
        else:
            known = self._telemetry.take(setting.key, setting.value, self._env.now_s())
            assert known, f"{self._name}: {setting} is not for a leaf"

    def _reset_counts(self) -> None:
        """What is open is counted no more, and yet counted down when it is over."""
        now_s, targets = self._env.now_s(), self._view.targets
        for target in targets:
            self._area(target, now_s)
        self._miscount.reset(targets)
        for target in targets:
            self._count_waiting(target)

    def _on_rotation(self, rotation: Rotation) -> None:
        """A server goes out of rotation, or comes back: then there may be a place for what is held."""
        now_s = self._view.now_s = self._env.now_s()
        self._view.rotate(rotation.target, inside=rotation.inside, cause=rotation.cause)
        if self._waiting:
            self._release(now_s)

    def _on_request(self, root: str, request: Request) -> None:
        view = self._view
        now_s = view.now_s = self._env.now_s()
        self._arrivals += 1
        self._arrivals_by_class[request.class_index] += 1
        if now_s > view.turns_at_s:
            view.refresh()
        if self._hooks.ask is not None and not self._waiting and self._ask(root, request, now_s):
            return
        server = None if self._waiting else self._policy.choose(view, request, self._rng)
        if server is None:
            self._keep_or_refuse(root, request, now_s, now_s)
        else:
            self._give(root, request, server, now_s, now_s)

    def _give(self, root: str, request: Request, server: Target, at_leaf_s: float, now_s: float) -> None:
        assert server.name in self._tracks, (
            f"{self._name}: the policy chose {server.name}, which is not a server here"
        )
        opened = _Open(request, root, server, at_leaf_s, now_s + self._decision_s, self._area(server, now_s))
        request_id, _, index, prompt_tokens, output_tokens, _ = request
        self._in_flight += 1
        track = self._tracks[server.name]
        track.prompt_tokens += prompt_tokens
        track.output_tokens += output_tokens
        self._open[index][request_id] = opened
        if not self._armed[index]:
            self._armed[index] = True
            self._env.set_timer(f"timeout:{index}", at_leaf_s + self._timeouts_s[index])
        if self._decision_s:
            self._decide(request, now_s)
        else:
            self._env.send(server.name, request)
            server.on_sent(request_id, now_s)
            self._count_waiting(server)
        if self._hooks.probes is not None:
            self._probe(self._hooks.probes(self._view, self._probe_rng), now_s)

    def _decide(self, request: Request, now_s: float) -> None:
        """The choice is made, but takes effect later only."""
        if not self._deciding:
            self._env.set_timer("decide", now_s + self._decision_s)
        self._deciding.append(request)
        self._unsent += 1

    def _take_effect(self) -> None:
        """Send what was decided long enough ago."""
        now_s, deciding = self._env.now_s(), self._deciding
        while deciding:
            requests, request_id = self._open[deciding[0].class_index], deciding[0].request_id
            opened = requests[request_id]
            if opened.sent_at_s > now_s:
                self._env.set_timer("decide", opened.sent_at_s)
                return
            opened.area = self._area(opened.server, now_s)
            self._env.send(opened.server.name, deciding.popleft())
            self._unsent -= 1
            opened.server.on_sent(request_id, now_s)
            self._count_waiting(opened.server)

    def _is_undecided(self, request: Request) -> bool:
        """Whether a request has not been sent, since its decision takes time; it is forgotten here if so."""
        if request not in self._deciding:
            return False
        self._deciding.remove(request)
        self._unsent -= 1
        return True

    def _keep_or_refuse(self, root: str, request: Request, at_leaf_s: float, now_s: float) -> None:
        """No server is usable: the request waits for one, or goes back."""
        held = self._held
        if not held.has_room():
            outcome = Outcome.SHED if held.holds else Outcome.NO_TARGET
            self._return_unsent(Waiting(request, root, at_leaf_s, now_s), outcome, now_s)
            return
        held.put(Waiting(request, root, at_leaf_s, at_leaf_s + self._timeouts_s[request.class_index]))
        self._count_held(request, 1)
        self._env.set_timer("held", held.next_deadline_s())

    def _release(self, now_s: float) -> None:
        """Give what is held to servers, the oldest first, for as long as one is usable."""
        view, held = self._view, self._held
        view.now_s = now_s
        view.refresh()
        while held:
            server = self._policy.choose(view, held.head().request, self._rng)
            if server is None:
                return
            waiting = held.take()
            self._count_held(waiting.request, -1)
            self._give(waiting.source, waiting.request, server, waiting.arrived_at_s, now_s)
        self._env.cancel_timer("held")

    def _expire_held(self) -> None:
        """Send back every held request whose time is up."""
        now_s = self._env.now_s()
        for waiting in self._held.take_expired(now_s):
            self._count_held(waiting.request, -1)
            self._return_unsent(waiting, Outcome.TIMED_OUT, now_s)
        if self._held:
            self._env.set_timer("held", self._held.next_deadline_s())

    def _count_held(self, request: Request, change: int) -> None:
        """A request begins or ends to wait here: it is in the cell all the while."""
        self._waiting += change
        self._count_unsent(request, change)

    def _count_unsent(self, request: Request, change: int) -> None:
        """A request that no server has yet comes or goes: all its tokens are still to serve."""
        self._in_flight += change
        self._unsent += change
        self._prompt_tokens += change * request.prompt_tokens
        self._output_tokens += change * request.output_tokens

    def _return_unsent(self, waiting: Waiting, outcome: Outcome, now_s: float) -> None:
        """A request goes back without having seen a server."""
        request, arrived_at_s = waiting.request, waiting.arrived_at_s
        self._finished += 1
        self._record_unsent(request, outcome, arrived_at_s, now_s)
        reply = Reply(
            request[0], request[1], int(outcome), now_s - arrived_at_s, self._queued(), self._in_flight
        )
        self._env.send(waiting.source, reply)

    def _probe(self, targets: Sequence[Target], now_s: float) -> range:
        """Probe these; the identities of the probes."""
        first = self._probe_id
        for target in targets:
            self._env.send(target.name, Probe(self._probe_id, 0))
            self._probe_id += 1
        if targets:
            self._probed_at_s = now_s
        return range(first, self._probe_id)

    def _probe_if_idle(self) -> None:
        """Probe unasked if nothing was probed for long enough, and look again when that may next be so."""
        assert self._hooks.idle_probes is not None
        now_s = self._view.now_s = self._env.now_s()
        if self._probed_at_s + self._hooks.idle_probe_after_s <= now_s:
            self._probe(self._hooks.idle_probes(self._view, self._probe_rng), now_s)
            self._probed_at_s = now_s
        self._env.set_timer("idle", self._probed_at_s + self._hooks.idle_probe_after_s)

    def _ask(self, root: str, request: Request, now_s: float) -> bool:
        """Ask servers before the choice; whether there are answers to wait for."""
        assert self._hooks.ask is not None
        targets, needed = self._hooks.ask(self._view, request, self._probe_rng)
        if needed < 1:
            return False
        if not self._inquiries:
            self._env.set_timer("asked", now_s + self._inquiries.timeout_s)
        self._inquiries.add(Inquiry(request, root, now_s, needed, self._probe(targets, now_s)))
        self._count_unsent(request, 1)
        return True

    def _expire_inquiries(self) -> None:
        """Go on without the answers that have not come in time."""
        now_s = self._view.now_s = self._env.now_s()
        for inquiry in self._inquiries.take_expired(now_s):
            self._place(inquiry, now_s)
        next_at_s = self._inquiries.next_expiry_s()
        if next_at_s is not None:
            self._env.set_timer("asked", next_at_s)

    def _place(self, inquiry: Inquiry, now_s: float) -> None:
        """Choose by the answers that have come."""
        assert self._hooks.choose_answered is not None
        if now_s > self._view.turns_at_s:
            self._view.refresh()
        request = inquiry.request
        self._count_unsent(request, -1)  # it is counted again where it goes
        server = self._hooks.choose_answered(self._view, request, inquiry.answers, self._rng)
        if server is None:
            self._keep_or_refuse(inquiry.root, request, inquiry.at_leaf_s, now_s)
        else:
            self._give(inquiry.root, request, server, inquiry.at_leaf_s, now_s)

    def _on_reply(self, source: str, reply: Reply) -> None:
        request_id, _, outcome, _, queued, in_flight, prompt_tokens, output_tokens = reply
        opened = self._close(request_id)
        if opened is None:
            self._on_late_reply(source, reply)
            return
        now_s = self._env.now_s()
        server = opened.server
        assert server.name == source, (
            f"{self._name}: {reply} from {source}, but {server.name} had the request"
        )
        track = self._tracks[source]
        area = self._area(server, now_s)
        server.on_answered(request_id)
        track.queued_share = queued / in_flight if in_flight else 0.0
        self._count_waiting(server)
        if self._has_peers:  # of several leaves each takes the part of its own requests
            own_in_flight = max(0, server.own_in_flight)
            own_share = min(1.0, own_in_flight / max(1, in_flight))
            prompt_tokens, output_tokens = round(own_share * prompt_tokens), round(own_share * output_tokens)
            track.others = max(0.0, float(in_flight - own_in_flight))
        track.prompt_tokens = prompt_tokens
        track.output_tokens = output_tokens
        failed = outcome != COMPLETED
        self._error_fraction += ERROR_MEMORY * (failed - self._error_fraction)
        stay_s = now_s - opened.sent_at_s
        if stay_s > 0 and not failed and area > opened.area:  # which a reset count may fail to be
            steps = opened.request.output_tokens if self._counts_steps else 1
            self._model.on_completion((area - opened.area) / stay_s, steps, stay_s)
        if self._hooks.on_reply is not None:
            self._hooks.on_reply(server, stay_s, Outcome(outcome))
        self._answer(opened, outcome, now_s)
        if self._waiting:
            self._release(now_s)

    def _answer(self, opened: _Open, outcome: int, now_s: float) -> None:
        self._finished += 1
        self._record(opened, outcome, now_s)
        request = opened.request
        residence_s = now_s - opened.at_leaf_s
        self._env.send(
            opened.root,
            Reply(request[0], request[1], outcome, residence_s, self._queued(), self._in_flight),
        )

    def _on_first_token(self, news: FirstToken) -> None:
        """A request has begun to answer; one that has timed out here is nobody's any more."""
        opened = next((each[news[0]] for each in self._open if news[0] in each), None)
        if opened is None:
            return
        opened.server.on_first_token(news[0], self._env.now_s())
        if self._passes_first_tokens:
            self._env.send(opened.root, news)

    def _on_late_reply(self, source: str, reply: Reply) -> None:
        if reply.request_id not in self._timed_out:
            if self._env.life:
                return  # an earlier life of this leaf had given it
            raise RuntimeError(
                f"{self._name}: {reply} from {source} at {self._env.now_s():.6f} s, a request that is neither open nor timed out here"
            )
        self._timed_out.remove(reply.request_id)

    def _on_probe_reply(self, source: str, reply: ProbeReply) -> None:
        now_s = self._view.now_s = self._env.now_s()
        target = self._by_name[source]
        if self._records_news:
            self._record_news(source, "probe", reply, reply.in_flight, now_s)
        if self._hooks.on_probe_reply is not None:
            self._hooks.on_probe_reply(self._view, target, reply)
        inquiry = self._inquiries.answer(target, reply)
        if inquiry is not None:
            self._place(inquiry, now_s)

    def _on_report(self, source: str, report: Report) -> None:
        now_s = self._view.now_s = self._env.now_s()
        target = self._by_name[source]
        if self._records_news:
            self._record_news(source, "observation", report, report.queued + report.running, now_s)
        if self._poller is not None:
            self._poller.on_report(source)
        if not target.on_report(source, report, now_s):
            return
        self._view.refresh()
        if self._hooks.on_report is not None:
            self._hooks.on_report(self._view, target)
        if self._waiting:
            self._release(now_s)

    def _tick(self) -> None:
        now_s = self._view.now_s = self._env.now_s()
        self._view.refresh()
        if self._hooks.on_tick is not None:
            self._hooks.on_tick(self._view)
        self._env.set_timer("tick", self._ticks.passed(now_s))

    def _report(self) -> None:
        now_s = self._env.now_s()
        assert self._reports is not None
        if self._changes is None or self._changes.is_due(self._in_flight, now_s):
            self._send_report(self._roots)
        self._env.set_timer("report", self._reports.passed(now_s))

    def _send_report(self, roots: Sequence[str]) -> None:
        now_s = self._env.now_s()
        model = self._model
        model.refit()
        queued = self._queued()
        held = self._held.by_class(len(self._open))
        asking = self._inquiries.by_class(len(self._open))
        by_class = tuple(
            len(opened) + waiting + asked
            for opened, waiting, asked in zip(self._open, held, asking, strict=True)
        )
        report = Report(
            self._sequence, 0, now_s, queued, max(0, self._in_flight - queued + self._miscount.count), by_class,
            *self._outstanding_tokens(), self._arrivals, self._error_fraction,
            model.speed, model.fitted_a_s, model.fitted_b_s, model.model_error, arrivals_by_class=tuple(self._arrivals_by_class),
        )  # fmt: skip
        self._sequence += 1
        told = self._telemetry.report(report)
        if told is not None:
            for root in roots:
                self._env.send(root, told)

    def _expire(self, index: int) -> None:
        """Give up every request of a class whose time is up, and wait for the next deadline."""
        now_s = self._env.now_s()
        timeout_s = self._timeouts_s[index]
        self._armed[index] = False
        expired: list[int] = []
        for request_id, opened in self._open[index].items():  # oldest first
            if opened.at_leaf_s + timeout_s > now_s:
                self._armed[index] = True
                self._env.set_timer(f"timeout:{index}", opened.at_leaf_s + timeout_s)
                break
            expired.append(request_id)
        for request_id in expired:
            self._time_out(request_id, now_s)

    def _time_out(self, request_id: int, now_s: float) -> None:
        opened = self._close(request_id)
        assert opened is not None, f"{self._name}: request {request_id} timed out, but is not open"
        if self._is_undecided(opened.request):
            waiting = Waiting(opened.request, opened.root, opened.at_leaf_s, now_s)
            self._return_unsent(waiting, Outcome.TIMED_OUT, now_s)
            return
        self._area(opened.server, now_s)
        if not self._miscount.takes(request_id, opened.request.attempt):
            opened.server.on_answered(request_id)
            self._count_waiting(opened.server)
        self._timed_out.add(request_id)
        if self._hooks.on_reply is not None:
            self._hooks.on_reply(opened.server, now_s - opened.sent_at_s, Outcome.TIMED_OUT)
        self._answer(opened, int(Outcome.TIMED_OUT), now_s)

    def _close(self, request_id: int) -> _Open | None:
        """Take a request out of every count; None if it is not open."""
        for requests in self._open:
            if request_id in requests:
                self._in_flight -= 1
                return requests.pop(request_id)
        return None

    def _area(self, server: Target, now_s: float) -> float:
        """Area under the in-flight count of a server until now; call before the count changes."""
        track = self._tracks[server.name]
        track.area += (server.own_in_flight + track.others) * (now_s - track.area_at_s)
        track.area_at_s = now_s
        return track.area

    def _count_waiting(self, server: Target) -> None:
        """The requests at a server have changed, or the share of them that waits: a sum over all would cost too much."""
        track = self._tracks[server.name]
        waiting = track.queued_share * server.own_in_flight
        self._waiting_there += waiting - track.waiting
        track.waiting = waiting

    def _outstanding_tokens(self) -> tuple[int, int]:
        prompt, output = self._prompt_tokens, self._output_tokens
        for target in self._view.targets:
            if target.own_in_flight:
                track = self._tracks[target.name]
                prompt += track.prompt_tokens
                output += track.output_tokens
        return prompt, output

    def _queued(self) -> int:
        return max(0, round(self._waiting_there)) + self._unsent

    def _record(self, opened: _Open, outcome: int, left_at_s: float) -> None:
        request = opened.request
        row = (request[0], request[1], self._name, opened.server.name, outcome, opened.at_leaf_s, left_at_s)
        self._env.record("visits", row)

    def _record_news(
        self, server: str, path: str, news: Report | ProbeReply, in_flight: int, now_s: float
    ) -> None:
        row = (self._name, server, path, news[0], news.measured_at_s, now_s, in_flight, news.clock_error_s)
        self._env.record("news", row)

    def _record_unsent(self, request: Request, outcome: Outcome, at_leaf_s: float, left_at_s: float) -> None:
        row = (request[0], request[1], self._name, "", int(outcome), at_leaf_s, left_at_s)
        self._env.record("visits", row)
