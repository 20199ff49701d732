"""Continuous batching: by hand, against a simulator that takes every step, and under any sequence of events."""

import math
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.roles.messages import Request
from testbed.serving.batch import Batch
from testbed.serving.prefix_cache import PrefixCache
from testbed.serving.profile import PROFILES, Profile
from testbed.serving.service import Served
from tests.serving.service_play import Action, Played, act, play, request

# All times are sums of powers of two, so that every sum in these tests is exact and equal instants are frequent.
DYADIC = Profile(
    name="dyadic",
    decode_a_s=1.0,
    decode_b_s=0.25,
    decode_c_s=2.0**-10,
    prefill_b_s=2.0**-6,
    kv_tokens=200,
    max_sequences=4,
    step_tokens=32,
    source="made for tests",
)
PLAIN = Profile("plain", 1.0, 0.0, 0.0, 0.0, 1000, 10, 100, "made for tests: every step takes a second")


# --- by hand --------------------------------------------------------------------------------------------------


def test_a_request_alone_takes_its_prefill_and_a_step_per_further_token() -> None:
    """The first token ends the prefill; each further one costs a + b + c times the growing context."""
    batch = Batch(DYADIC, class_count=1)

    (served,) = play(batch, [Action(10.0, request(7, prompt=16, output=4))]).served

    first_token_at_s = 10.0 + 1.0 + 16 * 2.0**-6
    decode_s = sum(1.25 + context * 2.0**-10 for context in (17, 18, 19))
    assert served == Served(
        request(7, prompt=16, output=4), 10.0, 10.0, first_token_at_s, first_token_at_s + decode_s, 0
    )


def test_one_output_token_is_finished_with_the_prefill() -> None:
    """No decode step follows."""
    (served,) = play(Batch(PLAIN, 1), [Action(0.0, request(0, output=1))]).served

    assert (served.first_token_at_s, served.finished_at_s) == (1.0, 1.0)


def test_a_long_prompt_is_prefilled_in_chunks_beside_the_decoding() -> None:
    """250 tokens at 100 a step: alone three steps; with one sequence decoding the budget is 99."""
    alone = play(Batch(PLAIN, 1), [Action(0.0, request(0, prompt=250))]).served
    beside = play(
        Batch(PLAIN, 1), [Action(0.0, request(1, output=50)), Action(0.5, request(0, prompt=298))]
    ).served

    assert alone[0].finished_at_s == 3.0
    assert beside[0].started_at_s == 1.0
    assert beside[0].finished_at_s == 5.0  # 99 + 99 + 99 + 1


def test_prompts_are_dealt_in_order_of_admission() -> None:
    """The second prompt gets what the first leaves of the step."""
    served = play(
        Batch(PLAIN, 1), [Action(0.0, request(0, prompt=60)), Action(0.0, request(1, prompt=60))]
    ).served

    assert [(one.request.request_id, one.started_at_s, one.finished_at_s) for one in served] == [
        (0, 0.0, 1.0),
        (1, 0.0, 2.0),
    ]


def test_prefills_wait_while_the_decoding_fill_the_step() -> None:
    """Two decode at a budget of two tokens: the third is admitted, but its prefill starts when one is finished."""
    batch = Batch(PLAIN.with_limits(step_tokens=2), 1)

    served = play(
        batch,
        [Action(0.0, request(0, output=5)), Action(0.0, request(1, output=9)), Action(0.0, request(2))],
    ).served

    assert [one.finished_at_s for one in served] == [5.0, 6.0, 9.0]
    assert served[1].request.request_id == 2
    assert served[1].started_at_s == 5.0


def test_a_thousand_tokens_are_one_event() -> None:
    """The prefill and one jump."""
    assert (
        play(Batch(PLAIN.with_limits(kv_tokens=2000), 1), [Action(0.0, request(0, output=1000))]).events == 2
    )


def test_many_completions_are_one_event() -> None:
    """Those that finish in one step are handed out together, in order of admission."""
    batch = Batch(PLAIN, 1)

    played = play(batch, [Action(0.0, request(identity, output=9)) for identity in range(10)])

    assert played.events == 2
    assert [one.request.request_id for one in played.served] == list(range(10))


def test_an_arrival_shortens_a_jump_to_the_next_boundary_and_later_ones_do_not() -> None:
    """It joins the step that begins there; those that come before that boundary join with it."""
    batch = Batch(PLAIN, 1)
    batch.admit(request(0, output=100), 0.0)
    batch.advance(1.0)
    assert batch.next_event_s() == 100.0

    batch.admit(request(1), 41.5)
    assert batch.next_event_s() == 42.0
    batch.admit(request(2), 41.75)
    assert batch.next_event_s() == 42.0

    assert [one.started_at_s for one in batch.advance(43.0)] == [42.0, 42.0]


def test_an_arrival_without_room_does_not_shorten_a_jump() -> None:
    """All places are taken, or the memory will be too full at the next boundary."""
    full, tight = Batch(PLAIN.with_limits(max_sequences=1), 1), Batch(PLAIN.with_limits(kv_tokens=200), 1)
    for batch in (full, tight):
        batch.admit(request(0, prompt=100, output=50), 0.0)
        batch.advance(1.0)
        batch.admit(request(1, prompt=99, output=1), 5.5)

        assert batch.next_event_s() == 50.0
        assert (batch.queued, batch.running) == (1, 1)


@pytest.mark.parametrize("advance_first", [True, False])
def test_an_arrival_at_a_boundary_joins_the_step_that_begins_there(advance_first: bool) -> None:
    """Whether the loop looked at the boundary or at the arrival first: at an event, or inside a jump."""
    for boundary_s in (1.0, 7.0):
        batch = Batch(PLAIN, 1)
        batch.admit(request(0, output=100), 0.0)
        if advance_first:
            batch.advance(boundary_s)
        batch.admit(request(1), boundary_s)

        (served,) = batch.advance(boundary_s + 1)

        assert (served.started_at_s, served.finished_at_s) == (boundary_s, boundary_s + 1)


def test_a_late_advance_gives_the_planned_instants() -> None:
    """Five completions late, all of them at their own instants, and who waited started at its own."""
    actions = [Action(0.0, request(identity, output=identity + 1)) for identity in range(5)]
    profile = DYADIC.with_limits(max_sequences=2)
    in_time = play(Batch(profile, 1), actions).served

    late = Batch(profile, 1)
    for action in actions:
        act(late, action)

    assert late.advance(1000.0) == in_time
    assert late.next_event_s() == math.inf


def test_completions_noticed_by_an_arrival_are_handed_out_by_the_next_advance() -> None:
    """Nothing is lost when the loop is late for the timer, and the loop is told to come at once."""
    batch = Batch(PLAIN, 1)
    batch.admit(request(0), 0.0)

    batch.admit(request(1), 1.25)

    assert batch.next_event_s() == 1.0
    assert [one.request.request_id for one in batch.advance(1.25)] == [0]
    assert batch.next_event_s() == 2.25


def test_the_youngest_is_preempted_and_prefilled_again() -> None:
    """Two of 40 + 20 tokens in a memory of 100: exhausted when both have made more than 10.

    At 12 s each holds 51 tokens, so the younger returns to the queue; the older is finished at 20 s; then the
    younger prefills its 51 tokens, which makes the twelfth, and decodes the other eight.
    """
    batch = Batch(PLAIN.with_limits(kv_tokens=100), 1)
    both = [Action(0.0, request(0, prompt=40, output=20)), Action(0.0, request(1, prompt=40, output=20))]

    older, younger = play(batch, both).served

    assert (older.finished_at_s, older.preemptions) == (20.0, 0)
    assert (younger.first_token_at_s, younger.preemptions) == (1.0, 1)
    assert younger.finished_at_s == 20.0 + 1 + 8
    assert batch.preemptions == 1


def test_what_cannot_ever_fit_is_known_beforehand() -> None:
    """Prompt and output together, against the empty memory; admitting it all the same is a bug."""
    batch = Batch(PLAIN.with_limits(kv_tokens=100), 1)

    assert batch.fits(request(0, prompt=60, output=40))
    assert not batch.fits(request(0, prompt=60, output=41))
    with pytest.raises(AssertionError, match="never fit"):
        batch.admit(request(0, prompt=60, output=41), 0.0)


def test_a_key_may_be_here_only_once() -> None:
    """Another attempt of the same request is another key."""
    batch = Batch(PLAIN, 1)
    batch.admit(request(0), 0.0)
    batch.admit(request(0)._replace(attempt=1), 0.0)

    with pytest.raises(AssertionError, match="here already"):
        batch.admit(request(0), 0.5)


def test_speed_changes_with_the_next_step() -> None:
    """The step under way keeps its length, of a jump and of a prefill; at a boundary the change is at once."""
    changes = {
        0.0: 5.0,
        0.5: 5.5,
        1.0: 5.5,
        3.25: 7.0,
        4.0: 7.0,
    }  # speed 2 at this instant: 10 tokens by then

    for at_s, finished_at_s in changes.items():
        (served,) = play(
            Batch(PLAIN, 1), [Action(0.0, request(0, output=10)), Action(at_s, speed=2.0)]
        ).served

        assert served.finished_at_s == finished_at_s


def test_a_cancelled_request_frees_its_place_at_the_next_boundary() -> None:
    """And is not served; who waited starts there."""
    batch = Batch(PLAIN.with_limits(max_sequences=1), 2)
    batch.admit(request(0, output=100), 0.0)
    batch.admit(request(1, class_index=1), 2.0)

    assert batch.cancel(0, 0, 6.5)
    assert not batch.cancel(0, 0, 6.75)
    assert (batch.by_class(), batch.running, batch.queued) == ((1, 1), 1, 1)

    (served,) = batch.advance(8.0)
    assert (served.request.request_id, served.started_at_s, served.finished_at_s) == (1, 7.0, 8.0)
    assert batch.by_class() == (0, 0)


def test_a_cancelled_head_lets_the_next_one_in() -> None:
    """A prompt too long for the memory left blocks a short one until it is cancelled."""
    batch = Batch(PLAIN.with_limits(kv_tokens=200), 1)
    batch.admit(request(0, prompt=100, output=50), 0.0)
    batch.advance(1.0)
    batch.admit(request(1, prompt=150), 5.5)
    batch.admit(request(2, prompt=10), 5.75)

    assert batch.cancel(1, 0, 8.5)

    assert [one.started_at_s for one in batch.advance(10.0)] == [9.0]


def test_a_cancelled_request_leaves_no_event_behind() -> None:
    """The jump goes on to the completion of the other one."""
    batch = Batch(PLAIN, 1)
    batch.admit(request(0, output=50), 0.0)
    batch.admit(request(1, output=100), 0.0)
    batch.advance(1.0)
    assert batch.next_event_s() == 50.0

    batch.cancel(0, 0, 10.5)
    batch.advance(11.0)

    assert batch.next_event_s() == 100.0


def test_a_request_cancelled_in_its_last_step_is_not_served() -> None:
    """The cancellation came before it was finished; after it, there is nothing left to cancel."""
    before, after = Batch(PLAIN, 1), Batch(PLAIN, 1)
    for batch in (before, after):
        batch.admit(request(0, output=3), 0.0)

    assert before.cancel(0, 0, 2.5)
    assert before.advance(10.0) == []
    assert not after.cancel(0, 0, 3.0)
    assert len(after.advance(10.0)) == 1


def test_tokens_left_and_memory_count_the_steps_that_are_over() -> None:
    """Also inside a jump, which nobody has looked at yet."""
    batch = Batch(PLAIN, 1)
    batch.admit(request(0, prompt=250, output=100), 0.0)
    batch.admit(request(1, prompt=30, output=5), 0.0)

    seen = {
        at_s: (batch.prompt_tokens_left(at_s), batch.output_tokens_left(at_s)) for at_s in (0.5, 1.0, 2.5)
    }
    assert seen == {0.5: (280, 105), 1.0: (180, 105), 2.5: (80, 105)}
    assert batch.kv_fraction(2.5) == 0.28

    assert batch.output_tokens_left(6.0) == 105 - 2 - 6
    assert batch.output_tokens_left(6.75) == 105 - 2 - 6
    assert batch.kv_fraction(6.75) == 0.288
    assert batch.output_tokens_left(50.5) == 100 - 48
    assert batch.kv_fraction(50.5) == (250 + 48) / 1000
    assert batch.output_tokens_left(200.0) == 0


def test_busy_time_is_the_time_with_a_step_under_way() -> None:
    """Two busy periods of 5 and 2 seconds."""
    batch = Batch(PLAIN, 1)
    batch.admit(request(0, output=5), 1.0)
    assert batch.busy_s(3.5) == 2.5
    batch.advance(10.0)
    batch.admit(request(1, output=2), 10.0)

    assert batch.busy_s(11.0) == 6.0
    assert batch.busy_s(20.0) == 7.0


def test_open_requests_show_what_they_have_reached() -> None:
    """NaN for the rest."""
    batch = Batch(PLAIN.with_limits(max_sequences=2), 1)
    batch.admit(request(0, output=50), 0.0)
    batch.admit(request(1, prompt=250), 0.5)
    batch.admit(request(2), 0.75)
    batch.advance(1.5)

    reached = [(one.at_server_s, one.started_at_s, one.first_token_at_s) for one in batch.open()]

    assert repr(reached) == repr([(0.0, 0.0, 1.0), (0.5, 1.0, math.nan), (0.75, math.nan, math.nan)])
    assert all(math.isnan(one.finished_at_s) for one in batch.open())


# --- the rate curve -------------------------------------------------------------------------------------------


def closed_loop_per_s(batch: Batch, in_flight: int, prompt: int, output: int, stagger_s: float) -> float:
    """Completions per second with so many always in flight, by Little's law, after a staggered start."""
    sojourns_s: list[float] = []
    issued = 0
    while len(sojourns_s) < 10 * in_flight:
        start_s = issued * stagger_s if issued < in_flight else math.inf
        if start_s <= batch.next_event_s():
            batch.admit(request(issued, prompt, output), start_s)
            issued += 1
            continue
        for served in batch.advance(batch.next_event_s()):
            sojourns_s.append(served.finished_at_s - served.at_server_s)
            batch.admit(request(10_000 + len(sojourns_s), prompt, output), served.finished_at_s)
    settled_s = sojourns_s[2 * in_flight :]
    return in_flight * len(settled_s) / sum(settled_s)


@pytest.mark.parametrize(
    ("name", "in_flight", "prompt", "output"),
    [
        ("llama3-8b_a100_tp1_composed", 1, 512, 128),
        ("llama3-8b_a100_tp1_composed", 64, 48, 8),
        ("llama3-70b_h100_tp4_composed", 16, 512, 128),
        ("llama3-70b_h100_tp4_composed", 200, 512, 128),
        ("llama3-70b_a100_tp8_composed", 50, 1000, 200),
        ("small", 32, 500, 128),
        ("bench", 100, 64, 8),
    ],
)
def test_a_closed_loop_runs_at_the_rate_curve(name: str, in_flight: int, prompt: int, output: int) -> None:
    """N always in flight: l(N) = N / (alpha + beta N) within 1 %, whether they start together or spread out."""
    curve = PROFILES[name].rate_curve(prompt, output)

    for stagger_s in (0.0, curve.latency_s(in_flight) / in_flight):
        batch = Batch(PROFILES[name], 1)
        rate_per_s = closed_loop_per_s(batch, in_flight, prompt, output, stagger_s)

        assert rate_per_s == pytest.approx(curve.rate_per_s(in_flight), rel=0.01)


def test_the_step_budget_caps_the_rate_where_the_curve_does_not() -> None:
    """The curve knows no budget: at 2,048 tokens a step, short outputs cannot keep 1,000 sequences fed.

    With S tokens a step, each request costs its prompt and O - 1 decoding tokens of them, so at saturation
    S / (P + O - 1) requests pass through a step.
    """
    bench = PROFILES["bench"].with_limits(step_tokens=2048)
    batch = Batch(bench, 1)

    rate_per_s = closed_loop_per_s(batch, in_flight=1000, prompt=64, output=8, stagger_s=0.0)

    per_step = bench.step_tokens / (64 + 8 - 1)
    step_s = bench.decode_a_s + per_step * (bench.rate_curve(64, 8).beta_s)
    assert rate_per_s == pytest.approx(per_step / step_s, rel=0.01)
    assert bench.budget_rate_per_s(64, 8) == pytest.approx(per_step / step_s, rel=1e-12)
    assert rate_per_s < 0.3 * bench.rate_curve(64, 8).rate_per_s(1000)


# --- scaling --------------------------------------------------------------------------------------------------


def busy_actions(seed: int, count: int, gap_s: float) -> list[Action]:
    """Poisson arrivals of mixed size with some cancellations and speed changes."""
    rng = random.Random(seed)
    actions = []
    at_s = 0.0
    for identity in range(count):
        at_s += rng.expovariate(1 / gap_s)
        drawn = rng.random()
        if drawn < 0.05 and identity:
            actions.append(Action(at_s, cancelled=(rng.randrange(identity), 0)))
        elif drawn < 0.08:
            actions.append(Action(at_s, speed=rng.choice([0.4, 0.7, 1.0, 1.3])))
        else:
            prompt, output = 1 + int(rng.expovariate(1 / 300)), 1 + int(rng.expovariate(1 / 60))
            actions.append(Action(at_s, request(identity, prompt, output, rng.randrange(2))))
    return actions


def instants(played: Played) -> list[tuple[float, ...]]:
    """All instants of all that were served."""
    return [one[1:5] for one in played.served]


def test_doubled_times_double_every_instant_to_the_bit() -> None:
    """No constant hides in the code: a busy server with preemptions, cancellations and speed changes."""
    profile = PROFILES["small"].with_limits(kv_tokens=6000)
    actions = busy_actions(seed=5, count=2000, gap_s=0.12)
    batch, doubled = Batch(profile, 2), Batch(profile.scaled(2.0), 2)

    once = play(batch, actions)
    twice = play(doubled, [action._replace(at_s=2 * action.at_s) for action in actions])

    assert batch.preemptions > 50
    assert instants(twice) == [tuple(2 * at_s for at_s in row) for row in instants(once)]
    assert twice.events == once.events
    assert doubled.busy_s(10_000.0) == 2 * batch.busy_s(5_000.0)


# --- the reference: every step by itself ----------------------------------------------------------------------


@dataclass(eq=False)
class Plodding:
    """One sequence of the plodding simulator."""

    request: Request
    at_server_s: float
    started_at_s: float = math.nan
    first_token_at_s: float = math.nan
    made: int = 0
    left_to_prefill: int = 0
    preemptions: int = 0
    cached_tokens: int = 0
    cancelled: bool = False

    @property
    def held(self) -> int:
        return self.request.prompt_tokens + self.made

    def served(self, at_s: float) -> Served:
        return Served(
            self.request,
            self.at_server_s,
            self.started_at_s,
            self.first_token_at_s,
            at_s,
            self.preemptions,
            self.cached_tokens,
        )


@dataclass
class Plodder:
    """The rules of the batch, a step at a time and a sequence at a time."""

    profile: Profile
    cache: dict[int, int] | None = None  # unbounded: key -> tokens held
    speed: float = 1.0
    waiting: list[Plodding] = field(default_factory=list)
    running: list[Plodding] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)
    preemptions: int = 0

    def play(self, actions: list[Action]) -> list[Served]:
        todo = list(actions)
        at_s = 0.0
        while todo or self.running:
            if not self.running:
                at_s = todo[0].at_s
            while todo and todo[0].at_s == at_s:
                self.do(todo.pop(0), at_boundary=True)
                self.admit()
            if not self.running:
                continue
            end_s, chunks = self.begin(at_s)
            while todo and todo[0].at_s < end_s:
                self.do(todo.pop(0), at_boundary=False)
            self.end(end_s, chunks)
            self.admit()
            at_s = end_s
        return self.served

    def do(self, action: Action, at_boundary: bool) -> None:
        if action.speed is not None:
            self.speed = action.speed
        if action.request is not None:
            prefill = action.request.prompt_tokens
            self.waiting.append(Plodding(action.request, action.at_s, left_to_prefill=prefill))
        if action.cancelled is not None:
            self.waiting = [one for one in self.waiting if one.request[:2] != action.cancelled]
            for one in self.running:
                one.cancelled = one.cancelled or one.request[:2] == action.cancelled
            if at_boundary:
                self.running = [one for one in self.running if not one.cancelled]

    def admit(self) -> None:
        while self.waiting and len(self.running) < self.profile.max_sequences:
            used = sum(one.held for one in self.running)
            if used + self.waiting[0].held > self.profile.kv_tokens:
                return
            one = self.waiting.pop(0)
            self.running.append(one)
            if self.cache is not None:
                found = min(self.cached(one.request.prefix), one.left_to_prefill - 1)
                one.left_to_prefill -= found
                one.cached_tokens = one.cached_tokens if one.preemptions else found

    def cached(self, prefix: tuple[int, ...]) -> int:
        found = 0
        for key, tokens in zip(prefix[::2], prefix[1::2], strict=True):
            found += min(self.cache.get(key, 0), tokens)
            if self.cache.get(key, 0) < tokens:
                break
        return found

    def keep(self, request: Request, answer: int) -> None:
        if self.cache is None or not request.prefix:
            return
        for key, tokens in zip(request.prefix[::2], request.prefix[1::2], strict=True):
            self.cache[key] = max(self.cache.get(key, 0), tokens)
        key, tokens = request.prefix[-2:]
        self.cache[key] = max(self.cache[key], tokens + answer)

    def begin(self, at_s: float) -> tuple[float, dict[Plodding, int]]:
        decoding = [one for one in self.running if not one.left_to_prefill]
        budget = max(0, self.profile.step_tokens - len(decoding))
        chunks: dict[Plodding, int] = {}
        for one in self.running:
            chunk = min(one.left_to_prefill, budget)
            if chunk:
                chunks[one] = chunk
                budget -= chunk
                if math.isnan(one.started_at_s):
                    one.started_at_s = at_s
        step_s = (
            self.profile.decode_a_s
            + self.profile.decode_b_s * len(decoding)
            + self.profile.decode_c_s * sum(one.held for one in decoding)
            + self.profile.prefill_b_s * sum(chunks.values())
        )
        return at_s + step_s / self.speed, chunks

    def end(self, at_s: float, chunks: dict[Plodding, int]) -> None:
        for one in self.running:
            if one.left_to_prefill and one not in chunks:
                continue
            one.left_to_prefill -= chunks.get(one, 0)
            if not one.left_to_prefill:
                one.made += 1
                self.keep(one.request, 0)
                if one.made == 1:
                    one.first_token_at_s = at_s
        self.running = [one for one in self.running if not one.cancelled]
        finished = [one for one in self.running if one.made == one.request.output_tokens]
        self.served += [one.served(at_s) for one in finished]
        for one in finished:
            self.keep(one.request, one.request.output_tokens if one.request.session else 0)
        self.running = [one for one in self.running if one not in finished]
        while sum(one.held for one in self.running) > self.profile.kv_tokens:
            youngest = self.running.pop()
            youngest.left_to_prefill = youngest.held
            youngest.preemptions += 1
            self.preemptions += 1
            self.waiting.insert(0, youngest)


def prefix_of(kind: int, prompt: int) -> tuple[int, ...]:
    """Nothing, a session alone, or one of two sessions behind a common beginning of up to 30 tokens."""
    if kind == 0 or prompt < 2:
        return ()
    if kind == 1:
        return (100, prompt)
    common = min(30, prompt - 1)
    return (1000 + common, common, 100 * kind, prompt - common)


@st.composite
def dyadic_actions(draw: st.DrawFn) -> list[Action]:
    """Arrivals, cancellations and speed changes at multiples of 1/8 s: equal instants are frequent."""
    actions: list[Action] = []
    at_s, arrived = 0.0, 0
    for _ in range(draw(st.integers(1, 40))):
        at_s += draw(st.sampled_from([0.0, 0.0, 0.125, 1.0, 2.5, 8.0, 40.0]))
        kind = draw(st.integers(0, 9))
        if kind == 0 and arrived:
            actions.append(Action(at_s, cancelled=(draw(st.integers(0, arrived - 1)), 0)))
        elif kind == 1:
            actions.append(Action(at_s, speed=draw(st.sampled_from([0.5, 1.0, 4.0]))))
        else:
            prompt, output = draw(st.integers(1, 90)), draw(st.integers(1, 90))
            prefix = prefix_of(draw(st.integers(0, 3)), prompt)
            session = prefix[-2] if draw(st.booleans()) and prefix else 0
            actions.append(Action(at_s, request(arrived, prompt, output, arrived % 2, session, prefix)))
            arrived += 1
    return actions


LIMITS = st.fixed_dictionaries(
    {
        "max_sequences": st.integers(1, 6),
        "kv_tokens": st.integers(180, 500),
        "step_tokens": st.sampled_from([1, 3, 32, 500]),
    }
)
# A quarter of the sum of four such times is exact too, which the growth of a jump needs.
WITHOUT_GROWTH = Profile("even", 1.0, 0.25, 0.0, 2.0**-6, 200, 4, 32, "made for tests")


@settings(max_examples=300, deadline=None)
@given(
    profile=st.sampled_from([DYADIC, WITHOUT_GROWTH, PLAIN]),
    limits=LIMITS,
    actions=dyadic_actions(),
    events_first=st.booleans(),
    is_caching=st.booleans(),
)
def test_jumps_change_nothing_to_the_bit(
    profile: Profile, limits: dict[str, int], actions: list[Action], events_first: bool, is_caching: bool
) -> None:
    """Exact times: the same instants, order, preemptions and hits as a simulator that takes every step by itself."""
    profile = profile.with_limits(**limits)
    cache = PrefixCache(10**9) if is_caching else None

    served = play(Batch(profile, 2, prefix_cache=cache), actions, events_first=events_first).served

    assert served == Plodder(profile, {} if is_caching else None).play(actions)


@pytest.mark.parametrize(("name", "gap_s"), [("small", 0.15), ("llama3-8b_a100_tp1_composed", 0.01)])
@pytest.mark.parametrize("kv_tokens", [5000, 40_000])
def test_jumps_change_nothing_for_real_profiles(name: str, gap_s: float, kv_tokens: int) -> None:
    """As above, to 1e-9, with rounding and random instants."""
    profile = PROFILES[name].with_limits(kv_tokens=kv_tokens)
    actions = busy_actions(seed=11, count=500, gap_s=gap_s)
    batch, plodder = Batch(profile, 2), Plodder(profile)

    served = play(batch, actions).served
    expected = plodder.play(actions)

    assert (batch.preemptions > 20) == (kv_tokens == 5000)
    assert batch.preemptions == plodder.preemptions
    assert [(one.request, one.preemptions) for one in served] == [
        (one.request, one.preemptions) for one in expected
    ]
    for one, other in zip(served, expected, strict=True):
        assert one[1:5] == pytest.approx(other[1:5], rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(limits=LIMITS, actions=dyadic_actions(), late_s=st.sampled_from([0.0, 0.3, 5.0, 1000.0]))
def test_limits_hold_at_every_instant_and_nothing_is_lost(
    limits: dict[str, int], actions: list[Action], late_s: float
) -> None:
    """Memory and places are never exceeded, all counts agree, and lateness of the loop changes no instant."""
    profile = DYADIC.with_limits(**limits)
    cache = PrefixCache(120)  # so small that it evicts
    batch = Batch(profile, 2, prefix_cache=cache)

    def watch(now_s: float) -> None:
        assert 0 <= batch.kv_fraction(now_s) <= 1
        assert batch.running <= profile.max_sequences
        assert sum(batch.by_class()) == batch.queued + batch.running
        assert batch.prompt_tokens_left(now_s) >= 0
        assert batch.output_tokens_left(now_s) >= 0
        assert 0 <= cache.tokens <= 120

    played = play(batch, actions, watch=watch)

    arrived = {action.request.request_id for action in actions if action.request is not None}
    served = {one.request.request_id for one in played.served}
    assert len(served) == len(played.served)
    assert served.isdisjoint(identity for identity, _ in played.cancelled)
    assert served | {identity for identity, _ in played.cancelled} == arrived
    assert (batch.queued, batch.running, batch.by_class(), batch.open()) == (0, 0, (0, 0), [])
    end_s = played.served[-1].finished_at_s + 100 if played.served else 10_000.0
    assert (batch.prompt_tokens_left(end_s), batch.output_tokens_left(end_s)) == (0, 0)
    assert batch.kv_fraction(end_s) == 0
    for one in played.served:
        assert one.at_server_s <= one.started_at_s < one.first_token_at_s <= one.finished_at_s

    late = Batch(profile, 2, prefix_cache=PrefixCache(120))
    handed_out = []
    for action in actions:
        if late.next_event_s() + late_s <= action.at_s:
            handed_out += late.advance(action.at_s)
        act(late, action)
    assert handed_out + late.advance(1e9) == played.served


def test_rounding_never_moves_an_arrival_across_a_boundary() -> None:
    """Arrivals at a boundary of a jump as the server computes it, and one bit on either side of it."""
    profile = PROFILES["llama3-70b_a100_tp4_composed"]
    for steps in (1, 2, 3, 10, 99, 100, 777):
        for toward in (-math.inf, None, math.inf):
            batch = Batch(profile, 1)
            batch.admit(request(0, prompt=100, output=1000), 0.1)
            batch.advance(batch.next_event_s())
            boundary_s = batch._boundary_s(steps)
            at_s = boundary_s if toward is None else math.nextafter(boundary_s, toward)

            batch.admit(request(1), at_s)

            batch.advance(at_s)
            while batch.queued:
                batch.advance(batch.next_event_s())
            started_at_s = batch.open()[1].started_at_s
            if toward == math.inf:
                assert started_at_s > boundary_s
                assert started_at_s == pytest.approx(boundary_s + profile.decode_a_s, rel=0.01)
            else:
                assert started_at_s == boundary_s
