"""The server: admits requests into its service model and answers when they are done.

Theory of operation. The service model (a continuous batch, slots, or processor sharing) is a pure state machine;
timer `step` fires at its next event. Whatever finished by then is answered, each at the instant the model planned.

Messages seen: `Request` and `Probe` from leaves, `Cancel`, and `Setting` from the engine when a fault changes how it
works or what it tells. A request that could never fit into the memory is answered FAILED at once; one that fails as a
fault has it, when its time is up, and it sees no service meanwhile, yet counts among those that are here.

Timers: `step`; `fail`, when the next request fails; `sample` records the truth, of a server without work now and then for many instants at once; `report` tells the leaves, where their policy reads reports.

Where the leaves join idle queues there is no timer: a server reports when it runs out of work, to one leaf at random,
in whose queue it then stands; when another leaf gives it a request it reports there once more, and stands in none.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from testbed.roles.environment import LIFE_BITS, Environment
from testbed.roles.failures import Failures
from testbed.roles.messages import (
    Cancel,
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
    Setting,
)
from testbed.roles.server_configuration import ServerConfiguration
from testbed.roles.telemetry import Telemetry
from testbed.serving.latency_memory import LatencyMemory
from testbed.serving.service import Served

COMPLETED = int(Outcome.COMPLETED)
QUIET_SAMPLES = 10  # taken at once by a server without work, which else would be woken up for each alone


@mypyc_attr(allow_interpreted_subclasses=True)
class Server:
    """The fake GPU server; see the top of this file."""

    def __init__(self, env: Environment, name: str, told: ServerConfiguration) -> None:
        """Args:
        env: the world around.
        name: this node's name.
        told: all else.
        """
        self._env = env
        self._name = name
        self._service = told.service
        self._samples = told.samples
        self._is_quiet = False  # idle, and the coming samples are taken later
        self._reports = told.reports
        self._changes = told.changes
        self._first_tokens = told.first_tokens
        self._leaves = told.leaves
        self._memory = LatencyMemory() if told.answers_probes else None
        self._queue_rng = env.rng("idle") if told.queues_when_idle else None
        self._queue_at: str | None = None  # the leaf in whose queue of idle servers it stands
        self._failures = Failures(told.fault_base)
        self._telemetry = Telemetry()
        self._is_absent = False
        self._leaf_of: dict[tuple[int, int], tuple[str, int]] = {}  # -> leaf, in flight when it came
        self._step_at_s = float("inf")
        self._arrivals = 0
        self._finished = 0
        self._sequence = env.life << LIFE_BITS

    def start(self) -> None:
        """Wait for the first sample and report."""
        now_s = self._env.now_s()
        self._env.set_timer("sample", self._samples.first_s(now_s))
        if self._reports is not None:
            self._env.set_timer("report", self._reports.first_s(now_s))
        self._join_idle_queue()

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Take a request, a probe, a cancellation, or what a fault sets."""
        if isinstance(message, Request):  # the one of every request, before all else
            if self._is_quiet:
                self._end_quiet()
            self._on_request(source, message)
            return
        match message:
            case Probe():
                self._on_probe(source, message)
            case Cancel():
                self._on_cancel(message)
            case Poll():
                self._send_report([source])
            case Setting():
                self._sample_quiet(self._env.now_s())
                self._on_setting(message)
            case _:
                raise RuntimeError(f"{self._name}: {message} from {source}: not for a server")

    def on_timer(self, name: str) -> None:
        """A step of the service, a sample or a report is due."""
        if name == "step":
            self._step_at_s = float("inf")
            self._advance(self._env.now_s())
            self._await_step()
        elif name == "sample":
            self._sample()
        elif name == "fail":
            self._fail()
        else:
            self._report()

    def stop(self, *, killed: bool = False) -> None:
        """The run is over, or the server dies: record what is still here; at the end what is due is done first."""
        now_s = self._env.now_s()
        self._sample_quiet(now_s)
        if not killed:  # else no row would tell of what finished since the last step and a sample has seen
            self._advance(now_s)
        for served in self._service.open():
            self._record(served, float("nan"))

    def is_idle(self) -> bool:
        """Nothing waits or runs."""
        return not self._leaf_of and not self._failures

    def gauges(self) -> tuple[int, int, int]:
        """(requests received, finished, in flight)."""
        return self._arrivals, self._finished, self._in_flight()

    def _on_request(self, leaf: str, request: Request) -> None:
        now_s = self._env.now_s()
        self._arrivals += 1
        if self._failures.fraction and self._failures.strikes(request):
            self._on_failing(leaf, request, now_s)
            return
        if self._step_at_s <= now_s:  # what is due comes before what arrives now
            self._advance(now_s)
        if not self._service.fits(request):
            self._fail_at_once(leaf, request, now_s)
            return
        self._service.admit(request, now_s)
        self._leaf_of[request[0], request[1]] = (leaf, self._in_flight())
        self._await_step()
        if self._queue_at is not None:
            self._leave_idle_queue(leaf)

    def _on_failing(self, leaf: str, request: Request, now_s: float) -> None:
        """It fails, now or when its time is up."""
        if not self._failures.after_s:
            self._fail_at_once(leaf, request, now_s)
            return
        self._failures.take(leaf, request, now_s)
        self._await_failure()
        if self._queue_at is not None:
            self._leave_idle_queue(leaf)

    def _fail_at_once(self, leaf: str, request: Request, now_s: float) -> None:
        self._answer_unserved(leaf, request, Outcome.FAILED, 0.0, now_s)
        if self._queue_at == leaf:  # which took us out of its queue, for nothing
            self._queue_at = None
            self._join_idle_queue()

    def _in_flight(self) -> int:
        """Requests that are here: in service, waiting for it, or waiting to fail."""
        return len(self._leaf_of) + len(self._failures)

    def _on_probe(self, leaf: str, probe: Probe) -> None:
        now_s = self._env.now_s()
        in_flight = self._in_flight()
        latency_s = self._memory.latency_s(in_flight, now_s) if self._memory is not None else 0.0
        reply = self._telemetry.reply(ProbeReply(probe.probe_id, 0, in_flight, latency_s, now_s))
        if reply is not None:
            self._env.send(leaf, reply)

    def _on_setting(self, setting: Setting) -> None:
        now_s = self._env.now_s()
        match setting.key:
            case "speed":
                self._service.set_speed(setting.value, now_s)
                self._await_step()
            case "prefill":
                self._service.set_prefill(setting.value, now_s)
                self._await_step()
            case "errors":
                self._failures.fraction = setting.value
            case "error_after":
                self._failures.after_s = setting.value
            case "absent":
                self._is_absent = bool(setting.value)
            case _:
                known = self._telemetry.take(setting.key, setting.value, now_s)
                assert known, f"{self._name}: {setting} is not for a server"

    def _await_failure(self) -> None:
        next_at_s = self._failures.next_at_s()
        if next_at_s != float("inf"):
            self._env.set_timer("fail", next_at_s)

    def _fail(self) -> None:
        """Answer every request that fails by now."""
        now_s = self._env.now_s()
        for leaf, request, stay_s in self._failures.due(now_s):
            self._answer_unserved(leaf, request, Outcome.FAILED, stay_s, now_s)
        self._await_failure()
        self._join_idle_queue()

    def _answer_unserved(
        self, leaf: str, request: Request, outcome: Outcome, stay_s: float, now_s: float
    ) -> None:
        """Answer a request that has seen no service, `stay_s` after it came."""
        self._finished += 1
        service = self._service
        counts = (service.queued, self._in_flight(), *self._tokens_left(now_s))
        self._env.send(leaf, Reply(request[0], request[1], int(outcome), stay_s, *counts))

    def _tokens_left(self, now_s: float) -> tuple[int, int]:
        """Prompt and output tokens still to serve; the service does first what is due now."""
        return self._service.prompt_tokens_left(now_s), self._service.output_tokens_left(now_s)

    def _on_cancel(self, cancel: Cancel) -> None:
        if self._failures and self._failures.cancel(cancel.request_id, cancel.attempt):
            self._join_idle_queue()
            return
        if self._service.cancel(cancel.request_id, cancel.attempt, self._env.now_s()):
            del self._leaf_of[cancel.request_id, cancel.attempt]
            self._await_step()
            self._join_idle_queue()

    def _advance(self, now_s: float) -> None:
        """Answer everything that finished by now."""
        service, leaf_of = self._service, self._leaf_of
        done = service.advance(now_s)
        if self._first_tokens:
            self._tell_first_tokens(self._first_tokens)
        if not done:
            return
        # what is left does not change while the finished are answered
        left = service.queued, service.prompt_tokens_left(now_s), service.output_tokens_left(now_s)
        queued, prompt_tokens, output_tokens = left
        failing = len(self._failures)
        for served in done:
            request = served.request
            request_id, attempt = request[0], request[1]
            leaf, in_flight = leaf_of.pop((request_id, attempt))
            self._finished += 1
            self._record(served, now_s)
            at_server_s = served.at_server_s
            if self._memory is not None:
                self._memory.add(in_flight, served.finished_at_s - at_server_s, now_s)
            self._env.send(
                leaf,
                Reply(request_id, attempt, COMPLETED, now_s - at_server_s, queued, len(leaf_of) + failing,
                      prompt_tokens, output_tokens),
            )  # fmt: skip
        if self._queue_rng is not None:
            self._join_idle_queue()

    def _tell_first_tokens(self, requests: list[Request]) -> None:
        for request in requests:
            key = (request.request_id, request.attempt)
            if key in self._leaf_of:  # else it was cancelled meanwhile
                self._env.send(self._leaf_of[key][0], FirstToken(*key))
        requests.clear()

    def _join_idle_queue(self) -> None:
        """Without work, and in no queue yet: stand in that of one leaf, drawn at random."""
        if self._queue_rng is None or self._queue_at is not None or self._in_flight():
            return
        self._queue_at = self._leaves[int(self._queue_rng.random() * len(self._leaves))]
        self._send_report([self._queue_at])

    def _leave_idle_queue(self, leaf: str) -> None:
        """A leaf has given us work; if it is not the one that took us out of its queue, that one is to know."""
        queue_at, self._queue_at = self._queue_at, None
        if queue_at is not None and queue_at != leaf:
            self._send_report([queue_at])

    def _await_step(self) -> None:
        next_at_s = self._service.next_event_s()
        if next_at_s != self._step_at_s:
            self._step_at_s = next_at_s
            if next_at_s == float("inf"):
                self._env.cancel_timer("step")
            else:
                self._env.set_timer("step", next_at_s)

    def _sample(self) -> None:
        """Sample now. What is idle stays as it is until work comes: then many samples are taken at once, later."""
        now_s = self._env.now_s()
        if self._is_quiet:
            self._sample_quiet(now_s)
        else:
            self._record_sample(now_s)
            self._samples.passed(now_s)
        self._is_quiet = not self._in_flight() and self._step_at_s == float("inf")
        self._env.set_timer("sample", self._samples.after_s(QUIET_SAMPLES - 1 if self._is_quiet else 0))

    def _sample_quiet(self, now_s: float) -> None:
        """Take the samples that were left while nothing changed, if so."""
        while self._is_quiet and self._samples.next_at_s <= now_s:
            at_s = self._samples.next_at_s
            self._record_sample(at_s)
            self._samples.passed(at_s)

    def _end_quiet(self) -> None:
        """Work comes: sample each on time again."""
        self._sample_quiet(self._env.now_s())
        self._is_quiet = False
        self._env.set_timer("sample", self._samples.next_at_s)

    def _record_sample(self, now_s: float) -> None:
        service, failures = self._service, self._failures
        tokens = self._tokens_left(now_s)  # first: does what is due now
        self._env.record(
            "samples",
            (self._name, now_s, service.queued, service.running + len(failures),
             failures.with_those_here(service.by_class()), *tokens, service.kv_fraction(now_s),
             service.busy_s(now_s), self._arrivals),
        )  # fmt: skip

    def _report(self) -> None:
        assert self._reports is not None
        now_s = self._env.now_s()
        if self._changes is None or self._changes.is_due(self._in_flight(), now_s):
            self._send_report(self._leaves)
        self._env.set_timer("report", self._reports.passed(now_s))

    def _send_report(self, leaves: list[str]) -> None:
        now_s = self._env.now_s()
        service, failures = self._service, self._failures
        tokens = self._tokens_left(now_s)  # first: does what is due now
        report = Report(
            self._sequence, 0, now_s, service.queued, service.running + len(failures),
            failures.with_those_here(service.by_class()), *tokens, self._arrivals,
            0.0, 1.0, float("nan"), float("nan"), 0.0, service.busy_s(now_s),
        )  # fmt: skip
        self._sequence += 1
        told = None if self._is_absent else self._telemetry.report(report)
        if told is not None:
            for leaf in leaves:
                self._env.send(leaf, told)

    def _record(self, served: Served, answered_at_s: float) -> None:
        request, at_server_s, started_at_s, first_token_at_s, finished_at_s, preemptions, cached_tokens = (
            served
        )
        self._env.record(
            "services",
            (request[0], request[1], self._name, at_server_s, started_at_s, first_token_at_s, finished_at_s,
             answered_at_s, preemptions, cached_tokens),
        )  # fmt: skip
