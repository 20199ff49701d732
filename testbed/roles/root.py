"""The root: chooses a cell for each request.

Theory of operation. The plan says when requests arrive; timer `arrival` fires at each planned instant. For each,
the stream's policy chooses a cell from the root's view, the request goes to one of the cell's leaves, in turn or drawn,
and is open until its reply comes, its class's timeout passes, or the run ends. Then, once, a row tells its story.

Where no cell is usable (none is allowed, or all reports are too old for the policy's words) the request is refused,
or held until one is: in order of arrival, up to a bound, beyond which requests are shed. Newcomers queue behind the
held. Where a decision takes time the request is sent, and counted, only when it is over.
A report or a reply may make a cell usable again; a fault that changes what is allowed is noticed then.

Messages seen: `Report` (updates the view; policies that follow reports may move their shares) and `Reply` (closes
the request; how long it travelled updates the measured round trip). A reply to a request that has timed out is
late: counted, not an error. A reply to a request that was never sent is an error, unless an earlier life of this root
sent it. `Setting`, `Rotation` and `Surge` come from the engine: counts that leak or are reset; cells or leaves that take no new
requests; more requests, ordered by hand. A
cell all of whose leaves are out is out itself.

A root that is restarted goes on with the plan where it stands then: what was planned before is lost.

Reports come unasked, or a root polls the leaves for them (see `poller`).

Timers: `arrival`; `poll:K` asks for reports; `tick:K` moves the shares of stream K; `timeout:K` at the earliest deadline of stream K, `held:K`
at that of its held requests, `decide:K` when its next decision takes effect.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mypy_extensions import mypyc_attr

from testbed.draw import uniform
from testbed.roles.environment import Environment
from testbed.roles.held import Held, Waiting
from testbed.roles.messages import (
    FAULT,
    FirstToken,
    Message,
    Notice,
    Outcome,
    Reply,
    Report,
    Request,
    Rotation,
    Setting,
    Surge,
)
from testbed.roles.miscount import Miscount
from testbed.roles.poller import Poller, Polls
from testbed.roles.schedule import Schedule
from testbed.routing.policy import Hooks, Policy, Update
from testbed.routing.view import Target, View
from testbed.traffic.plan import RootPlan
from testbed.traffic.surge import joined

NAN = math.nan
_HASH = 2654435761  # Knuth's multiplier: spreads request ids evenly, the same in every arm and engine


@dataclass
class Stream:
    """One line of a root's traffic: a class and the policy that places it.

    Attributes:
        class_name: name of the class in the scenario.
        view: what the policy sees; `view.allowed` are the cells this stream may use.
        policy: chooses a cell.
        hooks: the policy's optional methods.
        cost: what the root believes a cell to cost this stream; for the record, and for policies with costs.
        timeout_s: after this long from the planned arrival the client has gone.
        tick_phase_s: first instant at which the shares move, for policies that move on a timer.
        hold_queue: requests that may wait here while no cell is usable.
        decision_s: time from reading the view until a decision takes effect.
    """

    class_name: str
    view: View
    policy: Policy
    hooks: Hooks
    cost: Callable[[Target], float]
    timeout_s: float
    tick_phase_s: float
    hold_queue: int = 0
    decision_s: float = 0.0


class _Open:
    """A request that has not come back yet."""

    __slots__ = ("attempt", "believed_cost", "leaf", "planned_at_s", "sent_at_s", "staleness_s", "target")

    def __init__(
        self,
        attempt: int,
        target: Target,
        leaf: str,
        planned_at_s: float,
        sent_at_s: float,
        staleness_s: float,
        believed_cost: float,
    ) -> None:
        self.attempt = attempt
        self.target = target
        self.leaf = leaf
        self.planned_at_s = planned_at_s
        self.sent_at_s = sent_at_s
        self.staleness_s = staleness_s
        self.believed_cost = believed_cost


@mypyc_attr(allow_interpreted_subclasses=True)
class Root:
    """Chooses a cell for each request; see the top of this file."""

    def __init__(
        self,
        env: Environment,
        name: str,
        streams: list[Stream],
        plan: RootPlan,
        leaves: dict[str, tuple[str, ...]],
        sampled_fraction: float,
        polls: Sequence[Polls] = (),
        leaf_draws: Mapping[str, int] | None = None,
        fault_base: int = 0,
    ) -> None:
        """Args:
        env: the world around.
        name: this node's name.
        streams: its lines of traffic, in the scenario's order.
        plan: the requests that will arrive here.
        leaves: the leaves of each cell.
        sampled_fraction: share of the decisions recorded with all candidates.
        polls: how leaves are asked for reports; those that report unasked are in none.
        leaf_draws: for cells whose leaf is drawn at random, what the draws are keyed by besides the request.
        fault_base: keys the draws of its faults.
        """
        self._env = env
        self._name = name
        self._streams = streams
        self._plan = plan
        self._planned = len(plan.request_ids)
        self._next = 0
        self._leaves = leaves
        self._turn = dict.fromkeys(leaves, 0)
        self._leaf_draws = leaf_draws or {}
        self._cell_of_leaf = {leaf: cell for cell, names in leaves.items() for leaf in names}
        self._targets = {target.name: target for stream in streams for target in stream.view.targets}
        self._open: list[dict[int, _Open]] = [{} for _ in streams]
        self._stream_of: dict[int, int] = {}
        self._timed_out: set[int] = set()
        self._armed = [False] * len(streams)
        self._updates = [0] * len(streams)
        self._ticks: dict[str, tuple[int, Schedule]] = {}
        self._rngs = [env.rng(f"policy:{index}") for index in range(len(streams))]
        self._sampled_below = int(sampled_fraction * 2**32)
        self._finished = 0
        self._held = [Held(stream.hold_queue) for stream in streams]
        self._waiting = 0  # in all of these
        self._deciding: list[deque[Request]] = [deque() for _ in streams]
        self._pollers = {f"poll:{k}": Poller(env, f"poll:{k}", each) for k, each in enumerate(polls)}
        self._miscount = Miscount(fault_base)
        self._out: set[str] = set()  # cells and leaves out of rotation, for any cause
        self._out_by: dict[str, set[str]] = {FAULT: set()}

    def start(self) -> None:
        """Wait for the first arrival and the first tick of each policy."""
        now_s = self._env.now_s()
        if self._env.life:
            self._next = bisect_left(self._plan.at_s, now_s)
        self._await_arrival()
        for poller in self._pollers.values():
            poller.start()
        for index, stream in enumerate(self._streams):
            if stream.hooks.on_tick is not None:
                name = f"tick:{index}"
                schedule = Schedule(stream.hooks.tick_interval_s, stream.tick_phase_s)
                self._ticks[name] = (index, schedule)
                self._env.set_timer(name, schedule.first_s(now_s))

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Take a reply, a report, or what a fault changes."""
        if isinstance(message, Reply):  # the one of every request, before all else
            self._on_reply(source, message)
            return
        match message:
            case Report():
                self._on_report(source, message)
            case FirstToken():
                self._on_first_token(message)
            case Setting(key="leak"):
                self._miscount.fraction = message.value
            case Setting(key="reset_counts"):
                self._miscount.reset(self._targets.values())
            case Rotation():
                self._on_rotation(message)
            case Surge():
                self._on_surge(message)
            case _:
                raise RuntimeError(f"{self._name}: {message} from {source}: a root takes replies and reports")

    def on_timer(self, name: str) -> None:
        """An arrival, a tick or a timeout is due."""
        if name == "arrival":
            self._arrive()
            self._await_arrival()
        elif name in self._ticks:
            self._tick(name)
        elif name in self._pollers:
            self._pollers[name].on_timer()
        elif name.startswith("held:"):
            self._expire_held(int(name.partition(":")[2]))
        elif name.startswith("decide:"):
            self._take_effect(int(name.partition(":")[2]))
        else:
            self._expire(int(name.partition(":")[2]))

    def stop(self, *, killed: bool = False) -> None:
        """The run is over: what is open stays unfinished. If the root dies, it is lost."""
        still_open = sum(map(len, self._open)) - sum(map(len, self._deciding))
        at_s, targets = self._env.now_s(), self._targets.values()
        self._env.record("counts", self._miscount.row(self._name, at_s, targets, still_open))
        outcome = Outcome.LOST if killed else Outcome.UNFINISHED
        for index, requests in enumerate(self._open):
            for request_id, opened in requests.items():
                if not self._drop_undecided(index, request_id, opened, outcome):
                    self._record(request_id, opened, outcome, NAN, NAN)
        for held in self._held:
            for waiting in held.take_all():
                self._record_unsent(waiting.request, outcome, waiting.arrived_at_s, NAN)

    def is_idle(self) -> bool:
        """All planned requests have been sent and have come back, or timed out."""
        return self._next == self._planned and not self._stream_of and not self._waiting

    def gauges(self) -> tuple[int, int, int]:
        """(requests sent, finished, open)."""
        return self._next, self._finished, len(self._stream_of) + self._waiting

    def _on_rotation(self, rotation: Rotation) -> None:
        """A cell or a leaf goes out of rotation, or comes back: then there may be a place for what is held."""
        names = self._out_by.setdefault(
            rotation.cause, set()
        )  # of faults, and of health checks where there are any
        if rotation.inside:
            names.discard(rotation.target)
        else:
            names.add(rotation.target)
        self._out = set().union(*self._out_by.values())
        cell = self._cell_of_leaf.get(rotation.target, rotation.target)
        now_s = self._env.now_s()
        for cause in self._out_by:  # a cell is out by a fault, or else by faults and checks together
            out = self._out_by[FAULT] if cause == FAULT else self._out
            inside = cell not in out and not out.issuperset(self._leaves[cell])
            for stream in self._streams:
                stream.view.now_s = now_s
                stream.view.rotate(cell, inside=inside, cause=cause)
        if self._waiting:
            self._release_all(now_s)

    def _on_surge(self, surge: Surge) -> None:
        """More requests take their places among those to come."""
        self._plan = joined(self._plan, self._next, surge)
        self._planned = len(self._plan.request_ids)
        self._await_arrival()

    def _await_arrival(self) -> None:
        if self._next < self._planned:
            self._env.set_timer("arrival", self._plan.at_s[self._next])

    def _arrive(self) -> None:
        plan, i = self._plan, self._next
        self._next += 1
        index = plan.traffic[i]
        stream = self._streams[index]
        request = Request(
            plan.request_ids[i],
            0,
            plan.class_index[i],
            plan.prompt_tokens[i],
            plan.output_tokens[i],
            None if plan.sharing is None else plan.sharing.shared(i),
        )
        view = stream.view
        now_s = view.now_s = self._env.now_s()
        if now_s > view.turns_at_s:
            view.refresh()
        target = (
            None
            if self._waiting and self._held[index]
            else stream.policy.choose(view, request, self._rngs[index])
        )
        if target is None:
            self._keep_or_refuse(request, index, plan.at_s[i], now_s)
        else:
            self._dispatch(request, index, target, plan.at_s[i], now_s)

    def _dispatch(
        self, request: Request, index: int, target: Target, planned_at_s: float, now_s: float
    ) -> None:
        stream = self._streams[index]
        assert target in stream.view.allowed, (
            f"{self._name}: the policy chose {target.name}, which is not allowed"
        )
        request_id = request.request_id
        leaf = self._pick_leaf(target.name, request_id)
        opened = _Open(
            request.attempt,
            target,
            leaf,
            planned_at_s,
            now_s + stream.decision_s,
            now_s - target.measured_at_s,
            stream.cost(target),
        )
        if (request_id * _HASH) & 0xFFFFFFFF < self._sampled_below:
            self._record_decision(request_id, stream, target, now_s)
        self._open[index][request_id] = opened
        self._stream_of[request_id] = index
        if not self._armed[index]:
            self._armed[index] = True
            self._env.set_timer(f"timeout:{index}", planned_at_s + stream.timeout_s)
        if stream.decision_s:
            self._decide(request, index, now_s)
            return
        self._env.send(leaf, request)
        target.on_sent(request_id, now_s)

    def _decide(self, request: Request, index: int, now_s: float) -> None:
        """The choice is made, but takes effect later only."""
        effect_at_s = now_s + self._streams[index].decision_s
        if not self._deciding[index]:
            self._env.set_timer(f"decide:{index}", effect_at_s)
        self._deciding[index].append(request)
        self._env.record("holds", (request[0], request[1], self._name, now_s, effect_at_s))

    def _take_effect(self, index: int) -> None:
        """Send what was decided long enough ago."""
        now_s, deciding = self._env.now_s(), self._deciding[index]
        while deciding:
            opened = self._open[index][deciding[0].request_id]
            if opened.sent_at_s > now_s:
                self._env.set_timer(f"decide:{index}", opened.sent_at_s)
                return
            request = deciding.popleft()
            self._env.send(opened.leaf, request)
            opened.target.on_sent(request.request_id, now_s)

    def _drop_undecided(self, index: int, request_id: int, opened: _Open, outcome: Outcome) -> bool:
        """End a request that has not been sent, since its decision takes time; False if it has been."""
        for request in self._deciding[index]:
            if request.request_id == request_id:
                self._deciding[index].remove(request)
                self._record_unsent(request, outcome, opened.planned_at_s, NAN)
                return True
        return False

    def _keep_or_refuse(self, request: Request, index: int, planned_at_s: float, now_s: float) -> None:
        """No cell is usable: the request waits for one, or ends here."""
        held = self._held[index]
        if not held.has_room():
            self._finished += 1
            outcome = Outcome.SHED if held.holds else Outcome.NO_TARGET
            self._record_unsent(request, outcome, planned_at_s, now_s)
            return
        held.put(Waiting(request, "", planned_at_s, planned_at_s + self._streams[index].timeout_s))
        self._waiting += 1
        self._env.set_timer(f"held:{index}", held.next_deadline_s())

    def _release(self, index: int, now_s: float) -> None:
        """Send what is held, the oldest first, for as long as a cell is usable."""
        stream, held = self._streams[index], self._held[index]
        stream.view.now_s = now_s
        stream.view.refresh()
        while held:
            target = stream.policy.choose(stream.view, held.head().request, self._rngs[index])
            if target is None:
                return
            waiting = held.take()
            self._waiting -= 1
            self._dispatch(waiting.request, index, target, waiting.arrived_at_s, now_s)
            self._env.record(
                "holds", (waiting.request[0], waiting.request[1], self._name, waiting.arrived_at_s, now_s)
            )
        self._env.cancel_timer(f"held:{index}")

    def _release_all(self, now_s: float) -> None:
        for index, held in enumerate(self._held):
            if held:
                self._release(index, now_s)

    def _expire_held(self, index: int) -> None:
        """End every held request whose client has gone."""
        held = self._held[index]
        for waiting in held.take_expired(self._env.now_s()):
            self._waiting -= 1
            self._finished += 1
            self._record_unsent(waiting.request, Outcome.TIMED_OUT, waiting.arrived_at_s, NAN)
        if held:
            self._env.set_timer(f"held:{index}", held.next_deadline_s())

    def _record_unsent(self, request: Request, outcome: Outcome, planned_at_s: float, at_s: float) -> None:
        """A request that ends without having been sent: refused or shed at `at_s`, or held until the end."""
        row = (request[0], request[1], self._name, "", "", int(outcome), planned_at_s, at_s)
        self._env.record("dispatches", (*row, NAN, NAN, NAN, NAN))

    def _pick_leaf(self, cell: str, request_id: int) -> str:
        leaves = self._leaves[cell]
        if len(leaves) == 1:
            return leaves[0]
        if self._out:
            inside = tuple(leaf for leaf in leaves if leaf not in self._out)
            leaves = inside or tuple(leaf for leaf in leaves if leaf not in self._out_by[FAULT])
        if cell in self._leaf_draws:
            return leaves[int(uniform(self._leaf_draws[cell], request_id) * len(leaves))]
        turn = self._turn[cell] % len(leaves)
        self._turn[cell] = (turn + 1) % len(leaves)
        return leaves[turn]

    def _on_reply(self, source: str, reply: Reply) -> None:
        request_id, _, outcome, residence_s, _, _, _, _ = reply  # a star would make a list
        index = self._stream_of.pop(request_id, None)
        now_s = self._env.now_s()
        if index is None:
            self._on_late_reply(source, reply, now_s)
            return
        opened = self._open[index].pop(request_id)
        target = opened.target
        target.on_answered(request_id)
        target.on_network(now_s - opened.sent_at_s - residence_s)
        self._finished += 1
        on_reply = self._streams[index].hooks.on_reply
        if on_reply is not None:
            on_reply(target, now_s - opened.sent_at_s, Outcome(outcome))
        self._record(request_id, opened, outcome, now_s, residence_s)
        if self._waiting:
            self._release_all(now_s)

    def _on_first_token(self, news: FirstToken) -> None:
        """A request has begun to answer; one that has timed out is nobody's any more."""
        index = self._stream_of.get(news.request_id)
        if index is not None:
            target = self._open[index][news.request_id].target
            target.on_first_token(news.request_id, self._env.now_s())

    def _on_late_reply(self, source: str, reply: Reply, now_s: float) -> None:
        if reply.request_id not in self._timed_out:
            if self._env.life:
                return  # an earlier life of this root had sent it
            raise RuntimeError(
                f"{self._name}: {reply} from {source} at {now_s:.6f} s, a request that is neither open nor timed out here"
            )
        self._timed_out.remove(reply.request_id)
        self._env.record("late_replies", (reply.request_id, reply.attempt, now_s))

    def _on_report(self, source: str, report: Report) -> None:
        now_s = self._env.now_s()
        cell = self._cell_of_leaf[source]
        self._record_observation(source, cell, report, now_s)
        target = self._targets[cell]
        for poller in self._pollers.values():
            poller.on_report(source)
        if not target.on_report(source, report, now_s):
            return  # overtaken by a newer one: recorded, not believed
        for index, stream in enumerate(self._streams):
            stream.view.now_s = now_s
            stream.view.refresh()
            if stream.hooks.on_report is not None:
                self._record_update(index, stream.hooks.on_report(stream.view, target), now_s)
        if self._waiting:
            self._release_all(now_s)

    def _tick(self, name: str) -> None:
        index, schedule = self._ticks[name]
        stream = self._streams[index]
        now_s = stream.view.now_s = self._env.now_s()
        stream.view.refresh()
        assert stream.hooks.on_tick is not None, "a policy with a tick interval has on_tick"
        self._record_update(index, stream.hooks.on_tick(stream.view), now_s)
        self._env.set_timer(name, schedule.passed(now_s))

    def _expire(self, index: int) -> None:
        """End every request of a stream whose time is up, and wait for the next deadline."""
        now_s = self._env.now_s()
        requests, timeout_s = self._open[index], self._streams[index].timeout_s
        expired: list[int] = []
        self._armed[index] = False
        for request_id, opened in requests.items():  # oldest plan first
            if opened.planned_at_s + timeout_s > now_s:
                self._armed[index] = True
                self._env.set_timer(f"timeout:{index}", opened.planned_at_s + timeout_s)
                break
            expired.append(request_id)
        for request_id in expired:
            self._time_out(index, request_id)

    def _time_out(self, index: int, request_id: int) -> None:
        opened = self._open[index].pop(request_id)
        del self._stream_of[request_id]
        self._finished += 1
        if self._drop_undecided(index, request_id, opened, Outcome.TIMED_OUT):
            return
        self._timed_out.add(request_id)
        if not self._miscount.takes(request_id, opened.attempt):
            opened.target.on_answered(request_id)
        on_reply = self._streams[index].hooks.on_reply
        if on_reply is not None:
            on_reply(opened.target, self._env.now_s() - opened.sent_at_s, Outcome.TIMED_OUT)
        self._record(request_id, opened, Outcome.TIMED_OUT, NAN, NAN)

    def _record(
        self, request_id: int, opened: _Open, outcome: int, replied_at_s: float, residence_s: float
    ) -> None:
        self._env.record(
            "dispatches",
            (request_id, opened.attempt, self._name, opened.target.name, opened.leaf, outcome, opened.planned_at_s,
             opened.sent_at_s, replied_at_s, residence_s, opened.staleness_s, opened.believed_cost),
        )  # fmt: skip

    def _record_observation(self, source: str, cell: str, report: Report, now_s: float) -> None:
        sequence, _, measured_at_s, *rest = report
        self._env.record("observations", (self._name, source, cell, sequence, measured_at_s, now_s, *rest))

    def _record_decision(self, request_id: int, stream: Stream, chosen: Target, now_s: float) -> None:
        for target in stream.view.allowed:
            self._env.record(
                "decisions",
                (request_id, self._name, target.name, now_s, target.sequence, target.measured_at_s,
                 target.received_at_s, float(stream.view.count(target)), stream.cost(target), target.network_s,
                 target is chosen),
            )  # fmt: skip

    def _record_update(self, index: int, update: Update | None, now_s: float) -> None:
        stream = self._streams[index]
        if stream.hooks.tuning is not None:
            tuning = stream.hooks.tuning()
            if tuning is not None:
                self._env.record("tunings", (self._name, stream.class_name, now_s, *tuning))
        if update is None:
            return
        number = self._updates[index]
        self._updates[index] += 1
        allowed = stream.view.allowed
        for i, target in enumerate(stream.view.targets):
            self._env.record(
                "updates",
                (self._name, stream.class_name, number, target.name, now_s, update.step, update.interval_s,
                 update.step * update.interval_s,
                 target.sequence, target.measured_at_s, target.received_at_s, float(stream.view.count(target)),
                 update.costs[i], update.clipped[i], target.network_s, update.before[i], update.after[i],
                 target in allowed),
            )  # fmt: skip
