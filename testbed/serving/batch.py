"""The fake GPU: a queue, a continuous batch, KV memory, and steps that take time but no work.

Theory of operation. Time is cut into steps. What happens at a step boundary, in this order:

1. The step that ends has made its tokens: one for each decoding sequence, and the first one (or, after a
   preemption, the next one) of each sequence whose prefill it completed.
2. Cancelled sequences leave; then those that have all their tokens are finished.
3. While the KV memory holds more than `kv_tokens`, the youngest is preempted: it returns to the head of the queue,
   and its prompt and the tokens made so far become its prefill.
4. From the queue, first come, first served, sequences are admitted while fewer than `max_sequences` run and the
   prefill of the next one fits into the KV memory, which it then holds.
5. The next step begins: all sequences with a complete prefill decode, and up to `step_tokens` less their number of
   prompt tokens are prefilled, dealt in order of admission. It takes
   (a + b * decoding + c * their KV tokens + prefill_b * prefilled tokens) / speed.

A sequence holds its prompt and the tokens made so far. Those that run are always older than those that wait, and
the order of admission is the order of arrival.

No step without news is an event. When nobody is prefilled, and so nobody can be admitted before somebody finishes,
all steps up to the next completion or the exhaustion of the memory are one jump: B decoding sequences holding K
tokens take m (a + b B + c K) + c B m (m - 1) / 2 for m steps. When a sequence will finish is known when it begins to
decode, so sequences wait in buckets by the number of their last step, and a jump touches none of them. An arrival
that can be admitted, a cancellation or a change of speed shortens a jump to the next step boundary. Only the first
waiting arrival does: later ones wait behind it.

Equal instants. An arrival at a step boundary joins the step that begins there. So every call first does the
boundaries up to its own instant; and if a step has begun at this very instant, a call plans it anew, which is
possible because a step changes nothing before it ends. An idle server begins a step at the arrival. Thus
`advance(t)` before or after `admit(request, t)` gives the same.

With a prefix cache an admitted sequence skips what the cache holds of its prompt, all but one token, since the last
one has to be computed for the first output. The cache has a memory of its own, bounded in tokens, beside the KV memory
of the running sequences, each of which holds its prompt whole, as if nothing were shared. A prompt is in the cache
from the end of its prefill, and in a session with its output from when it is finished; what it found counts as used
when it is admitted. Requests of one new prefix that are prefilled together thus all compute it.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush

from testbed.roles.messages import Request
from testbed.serving.prefix_cache import PrefixCache
from testbed.serving.profile import Profile
from testbed.serving.service import Served


class _Sequence:
    """A request at the server.

    It waits, is prefilled, or decodes; the last exactly when `last_step` is above 0. `made` counts the tokens made
    so far, and is not kept up while it decodes, for then the distance to `last_step` says it.
    """

    __slots__ = (
        "at_server_s",
        "cached_tokens",
        "first_token_at_s",
        "last_step",
        "made",
        "preemptions",
        "prefill_left",
        "request",
        "started_at_s",
    )

    def __init__(self, request: Request, at_server_s: float) -> None:
        self.request = request
        self.at_server_s = at_server_s
        self.started_at_s = math.nan
        self.first_token_at_s = math.nan
        self.prefill_left = request.prompt_tokens
        self.made = 0
        self.last_step = 0
        self.preemptions = 0
        self.cached_tokens = 0


class Batch:
    """A `ServiceModel` of one GPU server with continuous batching and chunked prefill.

    `preemptions` counts them all. `first_tokens` gathers the requests whose first token was made, in order, for whoever
    sets it to a list and clears it.
    """

    def __init__(
        self,
        profile: Profile,
        class_count: int,
        speed: float = 1.0,
        prefix_cache: PrefixCache | None = None,
    ) -> None:
        """An idle server at this multiple of the profile's speed, with a prefix cache or without."""
        assert profile.decode_a_s > 0, f"a step of {profile.name} has to take time"
        assert speed > 0, f"speed {speed}"
        self._decode_a_s = profile.decode_a_s
        self._decode_b_s = profile.decode_b_s
        self._decode_c_s = profile.decode_c_s
        self._prefill_b_s = profile.prefill_b_s
        self._kv_tokens = profile.kv_tokens
        self._max_sequences = profile.max_sequences
        self._step_tokens = profile.step_tokens
        self._speed = speed
        self._prefill_factor = 1.0
        self._cache = prefix_cache
        self.preemptions = 0
        self.first_tokens: list[Request] | None = None

        self._here: dict[tuple[int, int], _Sequence] = {}  # by key, in order of arrival
        self._by_class = [0] * class_count
        self._queue: deque[_Sequence] = deque()
        self._running: dict[_Sequence, None] = {}  # in order of admission: the youngest is last
        self._prefilling: deque[_Sequence] = deque()  # in order of admission
        self._leaving: list[_Sequence] = []  # cancelled in the step under way
        self._buckets: dict[int, list[_Sequence]] = {}  # who decodes, by last step
        self._last_steps: list[int] = []  # heap of the keys of _buckets, and of some that are no longer there
        self._decoding = 0  # sequences that decode
        self._decoding_kv = 0  # KV tokens that they hold
        self._kv_used = 0  # KV tokens that all running sequences hold
        self._prompt_left = 0
        self._output_left = 0

        # The steps under way: from _start_s to _end_s, all alike but for the growing KV memory.
        self._step = 0  # steps that have ended
        self._steps = 0  # steps under way, 0 when idle
        self._start_s = 0.0
        self._end_s = math.inf
        self._first_step_s = 0.0
        self._growth_s = 0.0  # by which each step is longer than the one before
        self._prefill_tokens = 0  # prefilled in this step
        self._completing = 0  # the first so many of _prefilling are complete when it ends
        self._last_chunk = 0  # prompt tokens of the one behind them

        self._busy_before_s = 0.0  # in earlier busy periods
        self._busy_from_s = 0.0
        self._done: list[Served] = []

    @property
    def queued(self) -> int:
        """Requests that wait; one that was preempted waits again."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Sequences in the batch; one cancelled in the step under way stays until it ends."""
        return len(self._running)

    def fits(self, request: Request) -> bool:
        """Whether its prompt and its output fit into the empty KV memory; otherwise it could never finish."""
        return request.prompt_tokens + request.output_tokens <= self._kv_tokens

    def admit(self, request: Request, now_s: float) -> None:
        """A request arrives; it joins the batch at the next step boundary that has room for it.

        The request must fit (`fits`), and its key must not be here already.
        """
        if self._end_s <= now_s:
            self._run(now_s)
        key = (request.request_id, request.attempt)
        assert self.fits(request), f"request {key} can never fit into the KV memory"
        assert request.prompt_tokens > 0 < request.output_tokens, f"request {key} brings no tokens"
        assert key not in self._here, f"request {key} is here already"
        sequence = _Sequence(request, now_s)
        self._here[key] = sequence
        self._by_class[request.class_index] += 1
        self._prompt_left += request.prompt_tokens
        self._output_left += request.output_tokens
        self._queue.append(sequence)
        if len(self._queue) == 1:
            self._notice_head(now_s)

    def cancel(self, request_id: int, attempt: int, now_s: float) -> bool:
        """Forget a request; if it runs, its place and its memory are free from the next step boundary on.

        False if it is not here: it never came, or it is finished, or cancelled already.
        """
        if self._end_s <= now_s:
            self._run(now_s)
        sequence = self._here.pop((request_id, attempt), None)
        if sequence is None:
            return False
        if sequence not in self._running:
            was_head = sequence is self._queue[0]
            self._queue.remove(sequence)
            self._forget(sequence)
            if was_head and self._queue:
                self._notice_head(now_s)
        elif self._start_s == now_s:
            self._leave(sequence)
            self._begin(now_s)
        else:
            self._leaving.append(sequence)
            self._shorten(now_s)
        return True

    def set_speed(self, speed: float, now_s: float) -> None:
        """Work at this multiple of the profile's speed from the next step boundary on."""
        assert speed > 0, f"speed {speed}"
        if self._end_s <= now_s:
            self._run(now_s)
        self._speed = speed
        self._plan_anew(now_s)

    def set_prefill(self, factor: float, now_s: float) -> None:
        """Let prefill take so many times as long as the profile has it, from the next step boundary on."""
        assert factor > 0, f"prefill {factor}"
        if self._end_s <= now_s:
            self._run(now_s)
        self._prefill_factor = factor
        self._plan_anew(now_s)

    def _plan_anew(self, now_s: float) -> None:
        """What steps cost has changed."""
        if not self._steps:
            return
        if self._start_s == now_s:
            self._begin(now_s)
        else:
            self._shorten(now_s)

    def next_event_s(self) -> float:
        """The next step boundary with news; infinite when idle."""
        return self._done[0].finished_at_s if self._done else self._end_s

    def advance(self, now_s: float) -> list[Served]:
        """All that finished by now and was not handed out yet, in order of finishing, then of admission."""
        if self._end_s <= now_s:
            self._run(now_s)
        if not self._done:
            return []
        done, self._done = self._done, []
        return done

    def open(self) -> list[Served]:
        """All that are still here and not cancelled, in order of arrival."""
        return [
            Served(
                sequence.request,
                sequence.at_server_s,
                sequence.started_at_s,
                sequence.first_token_at_s,
                math.nan,
                sequence.preemptions,
                sequence.cached_tokens,
            )
            for sequence in self._here.values()
        ]

    def by_class(self) -> tuple[int, ...]:
        """Requests here of each class: `queued` and `running` together."""
        return tuple(self._by_class)

    def prompt_tokens_left(self, now_s: float) -> int:
        """Tokens still to prefill, those of preempted sequences included; a step counts when it ends."""
        if self._end_s <= now_s:
            self._run(now_s)
        return self._prompt_left

    def output_tokens_left(self, now_s: float) -> int:
        """Output tokens still to make; a step counts when it ends."""
        made = self._elapsed_steps(now_s) * self._decoding
        return self._output_left - made

    def kv_fraction(self, now_s: float) -> float:
        """Share of the KV memory that running sequences hold; a step counts when it ends."""
        grown = self._elapsed_steps(now_s) * self._decoding
        return (self._kv_used + grown) / self._kv_tokens

    def busy_s(self, now_s: float) -> float:
        """Seconds with a step under way."""
        if self._end_s <= now_s:
            self._run(now_s)
        return self._busy_before_s + (now_s - self._busy_from_s if self._steps else 0.0)

    # --- the steps ------------------------------------------------------------------------------------------

    def _run(self, now_s: float) -> None:
        """Do every boundary up to now, at its own instant."""
        while self._end_s <= now_s:
            self._end(self._end_s)

    def _end(self, at_s: float) -> None:
        """The steps under way are over: count their tokens, settle who leaves, and begin the next."""
        self._step += self._steps
        made = self._steps * self._decoding
        self._decoding_kv += made
        self._kv_used += made
        self._output_left -= made
        if self._prefill_tokens:
            self._end_prefill(at_s)
        if self._leaving:
            for sequence in self._leaving:
                self._leave(sequence)
            self._leaving.clear()
        finished = self._buckets.pop(self._step, None)
        if finished is not None:
            self._finish(finished, at_s)
        while self._kv_used > self._kv_tokens:
            self._preempt_youngest()
        self._begin(at_s)

    def _begin(self, at_s: float) -> None:
        """Admit who has room and plan the next steps. Doing it again at the same instant makes a new plan."""
        queue, running = self._queue, self._running
        while queue and len(running) < self._max_sequences:
            needed = queue[0].prefill_left
            if self._kv_used + needed > self._kv_tokens:
                break
            sequence = queue.popleft()
            running[sequence] = None
            self._prefilling.append(sequence)
            self._kv_used += needed
            if self._cache is not None:
                self._skip_cached(sequence, self._cache, at_s)
        if not running:
            self._rest(at_s)
            return
        if not self._steps:
            self._busy_from_s = at_s
        self._start_s = at_s
        self._deal(at_s)
        self._steps = 1 if self._prefill_tokens else self._steps_until_news()
        decode_s = self._decode_a_s + self._decode_b_s * self._decoding + self._decode_c_s * self._decoding_kv
        self._first_step_s = (
            decode_s + self._prefill_b_s * self._prefill_factor * self._prefill_tokens
        ) / self._speed
        self._growth_s = self._decode_c_s * self._decoding / self._speed
        self._end_s = self._boundary_s(self._steps)

    def _skip_cached(self, sequence: _Sequence, cache: PrefixCache, at_s: float) -> None:
        """An admitted sequence need not prefill what the cache holds of its prompt; one token always remains."""
        found = min(cache.use(sequence.request.prefix, at_s), sequence.prefill_left - 1)
        sequence.prefill_left -= found
        self._prompt_left -= found
        if not sequence.preemptions:
            sequence.cached_tokens = found

    def _rest(self, at_s: float) -> None:
        """Nothing to do: the server is idle."""
        if self._steps:
            self._busy_before_s += at_s - self._busy_from_s
        self._steps = 0
        self._end_s = math.inf

    def _deal(self, at_s: float) -> None:
        """Deal the prompt tokens of the next step, in order of admission."""
        budget = left = max(0, self._step_tokens - self._decoding)
        completing = 0
        self._last_chunk = 0
        for sequence in self._prefilling:
            if not left:
                break
            if sequence.started_at_s != sequence.started_at_s:  # still NaN: not started
                sequence.started_at_s = at_s
            if sequence.prefill_left > left:
                self._last_chunk = left
                left = 0
                break
            left -= sequence.prefill_left
            completing += 1
        self._completing = completing
        self._prefill_tokens = budget - left

    def _end_prefill(self, at_s: float) -> None:
        """The prefill of the step is done: who is complete has a token, and decodes from now on."""
        completing = self._completing
        kv = 0
        for _ in range(completing):
            sequence = self._prefilling.popleft()
            sequence.prefill_left = 0
            sequence.made += 1
            if sequence.made == 1:
                sequence.first_token_at_s = at_s
                if self.first_tokens is not None:
                    self.first_tokens.append(sequence.request)
            request = sequence.request
            kv += request.prompt_tokens + sequence.made
            last_step = sequence.last_step = self._step + request.output_tokens - sequence.made
            bucket = self._buckets.get(last_step)
            if bucket is None:
                self._buckets[last_step] = [sequence]
                heappush(self._last_steps, last_step)
            else:
                bucket.append(sequence)
            if self._cache is not None:
                self._cache.hold(request.prefix, at_s)
        if self._last_chunk:
            self._prefilling[0].prefill_left -= self._last_chunk
        self._decoding += completing
        self._decoding_kv += kv
        self._kv_used += completing
        self._output_left -= completing
        self._prompt_left -= self._prefill_tokens

    def _steps_until_news(self) -> int:
        """Steps until somebody finishes or the KV memory is exhausted, if nobody is prefilled."""
        while self._last_steps[0] not in self._buckets:
            heappop(self._last_steps)
        until_full = (self._kv_tokens - self._kv_used) // self._decoding + 1
        return min(self._last_steps[0] - self._step, until_full)

    # --- inside a jump --------------------------------------------------------------------------------------

    def _boundary_s(self, steps: int) -> float:
        """The instant at which so many of the steps under way are over."""
        return self._start_s + (self._first_step_s * steps + self._growth_s * (steps * (steps - 1) // 2))

    def _steps_by(self, now_s: float) -> int:
        """The first boundary of the steps under way that is not before now, counted from 1.

        The root of the quadratic is only a first guess: the instants themselves decide, so that no rounding can
        put an arrival on the wrong side of a boundary.
        """
        linear_s = self._first_step_s - self._growth_s / 2
        passed_s = now_s - self._start_s
        root_s = linear_s + math.sqrt(linear_s * linear_s + 2 * self._growth_s * passed_s)
        steps = min(max(1, math.ceil(2 * passed_s / root_s)), self._steps)
        while steps < self._steps and self._boundary_s(steps) < now_s:
            steps += 1
        while steps > 1 and self._boundary_s(steps - 1) >= now_s:
            steps -= 1
        return steps

    def _elapsed_steps(self, now_s: float) -> int:
        """Whole steps of those under way that are over by now."""
        if self._end_s <= now_s:
            self._run(now_s)
        if self._steps < 2 or now_s <= self._start_s:
            return 0
        steps = self._steps_by(now_s)
        return steps if self._boundary_s(steps) <= now_s else steps - 1

    def _shorten(self, now_s: float) -> None:
        """Let the steps under way end at the first boundary that is not before now; if it is now, it is due."""
        if self._steps > 1:
            self._steps = self._steps_by(now_s)
            self._end_s = self._boundary_s(self._steps)

    def _notice_head(self, now_s: float) -> None:
        """Somebody new is at the head of the queue: see that the first boundary with room for it is a boundary."""
        if not self._steps or self._start_s == now_s:
            self._begin(now_s)
        elif self._steps > 1 and len(self._running) < self._max_sequences:
            held = self._kv_used + self._steps_by(now_s) * self._decoding
            if held + self._queue[0].prefill_left <= self._kv_tokens:
                self._shorten(now_s)

    # --- who leaves the batch -------------------------------------------------------------------------------

    def _finish(self, finished: list[_Sequence], at_s: float) -> None:
        """These have made all their tokens."""
        kv = 0
        for sequence in finished:
            request = sequence.request
            kv += request.prompt_tokens + request.output_tokens
            del self._running[sequence]
            del self._here[request.request_id, request.attempt]
            self._by_class[request.class_index] -= 1
            self._done.append(
                Served(
                    request,
                    sequence.at_server_s,
                    sequence.started_at_s,
                    sequence.first_token_at_s,
                    at_s,
                    sequence.preemptions,
                    sequence.cached_tokens,
                )
            )
            if self._cache is not None:
                # the next turn of a session repeats the output; of other prompts nobody knows what follows
                self._cache.hold(request.prefix, at_s, request.output_tokens if request.session else 0)
        self._decoding -= len(finished)
        self._decoding_kv -= kv
        self._kv_used -= kv

    def _preempt_youngest(self) -> None:
        """The youngest makes room: it waits at the head of the queue, and all it holds is to be prefilled again."""
        sequence, _ = self._running.popitem()
        self._withdraw(sequence)
        held = sequence.request.prompt_tokens + sequence.made
        self._prompt_left += held - sequence.prefill_left
        sequence.prefill_left = held
        sequence.preemptions += 1
        self.preemptions += 1
        self._queue.appendleft(sequence)

    def _leave(self, sequence: _Sequence) -> None:
        """A cancelled sequence leaves the batch and the server."""
        del self._running[sequence]
        self._withdraw(sequence)
        self._forget(sequence)

    def _withdraw(self, sequence: _Sequence) -> None:
        """Take a running sequence and its KV memory out of the batch."""
        request = sequence.request
        if sequence.last_step:
            bucket = self._buckets[sequence.last_step]
            bucket.remove(sequence)
            if not bucket:
                del self._buckets[sequence.last_step]
            sequence.made = request.output_tokens - (sequence.last_step - self._step)
            sequence.last_step = 0
            self._decoding -= 1
            self._decoding_kv -= request.prompt_tokens + sequence.made
        else:
            self._prefilling.remove(sequence)
        self._kv_used -= request.prompt_tokens + sequence.made

    def _forget(self, sequence: _Sequence) -> None:
        """Its tokens need no longer be made, and it is no longer counted."""
        request = sequence.request
        self._by_class[request.class_index] -= 1
        self._prompt_left -= sequence.prefill_left
        self._output_left -= request.output_tokens - sequence.made
