"""What a link can do beyond delay and independent loss takes hold with the asked size, and is counted."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from testbed.errors import RunError
from testbed.links.delay import least_delay_s, mean_delay_s, mean_loss
from testbed.links.link import LinkModel
from testbed.scenario.fault_words import Setting
from testbed.scenario.link_words import Impairment, Replay
from testbed.scenario.topology import Effect, Link
from tests.links.course import SEED, delays_s, is_lost, model, send

MESSAGES = 20_000


def words(**keys: object) -> Setting:
    return Setting.model_validate(keys)


def bursts(lost: list[bool]) -> list[int]:
    """Lengths of the runs of losses."""
    return [len(list(run)) for dropped, run in groupby(lost) if dropped]


# --- losses in bursts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "burst"), [(0.02, 8.0), (0.3, 3.0), (0.4, 1.0)])
def test_bursts_have_the_asked_mean_loss_and_length(loss: float, burst: float) -> None:
    """The length of a burst is geometric; the share lost varies more than independent losses do, since they cluster."""
    link = model(loss=f"{loss * 100} %", loss_burst=burst)

    lost = is_lost(send(link, 5 * MESSAGES))

    found = bursts(lost)
    length_error = math.sqrt(burst * (burst - 1) / len(found))
    leaving, coming = 1 / burst, loss / (burst * (1 - loss))
    memory = (2 - leaving - coming) / (leaving + coming)
    assert abs(np.mean(found) - burst) <= 3 * length_error + 1e-9
    assert abs(np.mean(lost) - loss) < 3 * math.sqrt(loss * (1 - loss) * memory / len(lost))
    assert link.counts.loss == sum(lost)


def test_lengths_of_bursts_are_geometric() -> None:
    found = bursts(is_lost(send(model(loss="10 %", loss_burst=4.0), 5 * MESSAGES)))
    expected = [stats.geom.pmf(k, 1 / 4) * len(found) for k in range(1, 12)]
    expected.append(len(found) - sum(expected))
    counted = [sum(length == k for length in found) for k in range(1, 12)]
    counted.append(len(found) - sum(counted))

    assert stats.chisquare(counted, expected).pvalue > 0.01


def test_a_burst_goes_on_where_another_fault_changes_the_link() -> None:
    """The memory of the losses is the link's: a change of its delay does not begin them anew."""
    steady, changed = model(loss="50 %", loss_burst=20.0), model(loss="50 %", loss_burst=20.0)

    expected = is_lost(send(steady, 400))
    first = is_lost(send(changed, 200))
    changed.apply(0, words(delay="1 s"))
    rest = is_lost(send(changed, 200, first=200))

    assert first + rest == expected


# --- correlated delays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitter", [{"normal": "2 ms"}, {"lognormal": "10 ms"}, {"exponential": "20 ms"}])
def test_correlated_delays_keep_their_distribution(jitter: dict[str, str]) -> None:
    """The sum of squared differences between quantiles shrinks as it does for independent draws of fewer messages.

    Every 40th of delays of correlation 0.8 is all but independent of the one before (0.8^40 = 1e-4).
    """
    plain = model(delay="20 ms", jitter=jitter)
    correlated = model(delay="20 ms", jitter=jitter, correlation=0.8)

    every_40th = delays_s(send(correlated, 40 * 2000))[::40]

    assert stats.ks_2samp(every_40th, delays_s(send(plain, MESSAGES))).pvalue > 0.01


@pytest.mark.parametrize("correlation", [0.2, 0.8, 0.95])
def test_delays_are_correlated_as_asked_at_every_lag(correlation: float) -> None:
    """Normal scores of an autoregression of order 1: rho^k at lag k; the standard error is Bartlett's."""
    drawn = np.array(
        delays_s(send(model(delay="20 ms", jitter={"normal": "2 ms"}, correlation=correlation), MESSAGES))
    )
    scores = drawn - drawn.mean()

    for lag in (1, 2, 5):
        found = float((scores[:-lag] * scores[lag:]).sum() / (scores**2).sum())
        error = math.sqrt((1 + correlation**2) / (1 - correlation**2) / len(scores))
        assert abs(found - correlation**lag) < 4 * error, lag


# --- copies -------------------------------------------------------------------------------------------------


def test_the_asked_share_of_messages_comes_twice_each_copy_with_a_delay_of_its_own() -> None:
    link = model(delay="20 ms", jitter={"normal": "2 ms"}, duplicate="3 %")

    sent = send(link, MESSAGES)

    copies = [each for each in sent if len(each.releases) == 2]
    low, high = stats.binom.interval(0.999, MESSAGES, 0.03)
    assert low <= len(copies) == link.counts.duplicated <= high
    assert all(first != second for _, (first, second) in copies)
    pairs = np.array([each.releases for each in copies]) - np.array([[each.at_s] for each in copies])
    assert abs(stats.pearsonr(*pairs.T).statistic) < 4 / math.sqrt(len(copies))


# --- order --------------------------------------------------------------------------------------------------


def test_the_asked_fraction_is_released_at_once_and_overtakes_the_others() -> None:
    """netem's `reorder`: these go out at once, the others wait their delay; each overtakes those under way."""
    link = model(delay="20 ms", reorder={"fraction": "5 %"})

    found = delays_s(send(link, MESSAGES))

    at_once = sum(delay_s == 0.0 for delay_s in found)
    low, high = stats.binom.interval(0.999, MESSAGES, 0.05)
    assert low <= at_once == link.counts.reordered <= high
    assert {round(delay_s, 9) for delay_s in found} == {0.0, 0.020}


@pytest.mark.parametrize(("how", "delay_s"), [("ahead", 0.015), ("late", 0.025)])
def test_a_message_out_of_turn_is_ahead_or_late_by_the_stated_time(how: str, delay_s: float) -> None:
    found = delays_s(send(model(delay="20 ms", reorder={"fraction": "10 %", how: "5 ms"}), 2000))

    assert {round(each, 9) for each in found} == {0.020, delay_s}


def test_overtakings_are_counted_whatever_caused_them() -> None:
    """Jitter, and a delay that heals: the messages after it come before those under way."""
    jittered, healed = model(delay="20 ms", jitter={"uniform": "10 ms"}), model(delay="20 ms", watched=True)

    releases = [each.releases[0] for each in send(jittered, 2000)]
    send(healed, 10)
    healed.apply(0, words(delay="+200 ms"))
    send(healed, 10, first=10)
    healed.heal(0)
    send(healed, 200, first=20)

    latest = np.maximum.accumulate([-np.inf, *releases[:-1]])
    assert jittered.counts.reordered == int((releases < latest).sum()) > 500
    assert healed.counts.reordered == 199  # all before the last one under the fault is released, at 0.239 s


def test_a_link_of_constant_delay_overtakes_nothing() -> None:
    link = model(delay="20 ms")

    send(link, 500)

    assert link.counts.reordered == 0


# --- rates --------------------------------------------------------------------------------------------------


def test_a_limited_rate_spaces_messages_and_drops_what_finds_no_room() -> None:
    """1000 messages a second into 100: ten leave while a hundred come; at most five wait behind the one being sent."""
    link = model(delay="20 ms", rate="100 /s", queue=5)

    sent = send(link, 1000)

    left_s = np.array([each.releases[0] - 0.020 for each in sent if each.releases])
    assert np.diff(left_s) == pytest.approx(0.010)
    assert len(left_s) == 105  # one each 10 ms in the second, and those that wait at its end
    assert link.counts.queue == 1000 - 105
    waits_s = [each.releases[0] - 0.020 - each.at_s for each in sent if each.releases]
    assert max(waits_s) <= 0.060 + 1e-9  # its own 10 ms and at most five others'


def test_below_its_rate_a_limited_link_drops_nothing() -> None:
    link = model(rate="2000 /s", queue=0)

    sent = send(link, 1000)

    assert delays_s(sent) == pytest.approx([1 / 2000] * 1000)
    assert link.counts.queue == 0


def test_bandwidth_counts_the_bytes_of_the_prompt() -> None:
    """64 bytes and 4 for each of 1000 prompt tokens at 40,640 bytes a second: 0.1 s each."""
    link = model(bandwidth="40.64 kB/s", queue=100)

    sent = send(link, 20, prompt=1000)

    assert [each.releases[0] for each in sent] == pytest.approx([0.1 * (i + 1) for i in range(20)])


def test_no_queue_is_hidden_where_none_is_asked_for() -> None:
    """Some injectors drop beyond 1000 messages under way: a second at 20,000 a second keeps 20,000."""
    link = model(delay="1 s", jitter={"normal": "10 ms"}, duplicate="1 %")

    send(link, 20_000, spacing_s=5e-5)

    assert link.counts.read()[:3] == (0, 0, 0)


# --- down ---------------------------------------------------------------------------------------------------


def test_a_cut_link_drops_everything_and_says_why() -> None:
    link = model(delay="20 ms")

    link.apply(0, words(cut=True))
    lost = is_lost(send(link, 100))
    link.heal(0)

    assert all(lost)
    assert link.counts.cut == 100
    assert not any(is_lost(send(link, 100, first=100)))


def test_a_flapping_link_is_down_for_its_share_of_each_period() -> None:
    link = model(flap={"period": "125 ms", "down": "25 %"})

    lost = is_lost(send(link, 1024, spacing_s=1 / 1024))

    assert lost == [i % 128 < 32 for i in range(1024)]
    assert link.counts.cut == 256


def test_flapping_begins_at_its_instant() -> None:
    link = model(flap={"period": "1 s", "down": "12.5 %", "since": "0.25 s"})

    lost = is_lost(send(link, 1024, spacing_s=1 / 1024))

    assert [i for i, dropped in enumerate(lost) if dropped] == list(range(256, 384))


# --- replayed -----------------------------------------------------------------------------------------------


@pytest.fixture(name="file")
def a_file(tmp_path: Path) -> Path:
    path = tmp_path / "wan.csv"
    path.write_text("at_s,delay_s,loss\n0,0.020,0\n0.5,0.250,0\n1.0,0.040,0.25\n2.0,0.010,0\n")
    return path


def test_delay_and_loss_follow_the_file(file: Path) -> None:
    """Each row holds until the next, the last one for good."""
    sent = send(model(replay={"path": str(file)}), 3000)

    delay_of = {i: round(each.releases[0] - each.at_s, 9) for i, each in enumerate(sent) if each.releases}
    assert {delay_of[i] for i in range(500)} == {0.020}
    assert {delay_of[i] for i in range(500, 1000)} == {0.250}
    assert {delay_of[i] for i in range(2000, 3000)} == {0.010}
    low, high = stats.binom.interval(0.999, 1000, 0.25)
    assert low <= sum(is_lost(sent[1000:2000])) <= high
    assert not any(is_lost(sent[:1000] + sent[2000:]))


def test_a_file_may_begin_anew_and_be_stretched(file: Path) -> None:
    """Two seconds a turn, each second of the file a tenth of one."""
    sent = send(model(replay={"path": str(file), "repeat": True, "unit": "100 ms", "since": "0.1 s"}), 700)

    assert delays_s(sent[100:150]) == pytest.approx([0.002] * 50)
    assert delays_s(sent[151:200]) == pytest.approx([0.025] * 49)
    assert delays_s(sent[301:350]) == pytest.approx([0.002] * 49)
    assert delays_s(sent[501:550]) == pytest.approx([0.002] * 49)


def released_and_lost(link: LinkModel) -> tuple[set[float], int]:
    """Delays and losses of messages sent from 1 s to 1.5 s, where the file says 40 ms and a loss of a quarter."""
    sent = send(link, 500, first=1000)
    return {round(each, 9) for each in delays_s(sent)}, sum(is_lost(sent))


@pytest.mark.parametrize(
    ("changes", "delay_s"),
    [
        ([{"delay": "2 s"}], 2.0),
        ([{"delay": "x3"}], 0.120),
        ([{"delay": "+200 ms"}], 0.240),
        ([{"delay": "-1 s"}], 0.0),
        ([{"delay": "x3"}, {"delay": "-30 ms"}], 0.090),
        ([{"delay": "-50 ms"}, {"delay": "+10 ms"}], 0.010),
        ([{"delay": "2 s"}, {"delay": "x2"}], 4.0),
        ([{"delay": "x3"}, {"delay": "2 s"}], 2.0),
    ],
)
def test_a_delay_that_a_fault_sets_holds_on_a_link_that_replays_a_file(
    file: Path, changes: list[dict[str, Any]], delay_s: float
) -> None:
    """A plain one in place of the file's, a change of it on top; the file's loss stays, and the heal brings all back."""
    link = model(delay="7 ms", replay={"path": str(file)})
    before = released_and_lost(link)

    for fault, keys in enumerate(changes):
        link.apply(fault, words(**keys))
    during = released_and_lost(link)
    for fault in range(len(changes)):
        link.heal(fault)

    assert before == ({0.040}, before[1])
    assert during == ({delay_s}, before[1])
    assert released_and_lost(link) == before
    assert before[1] > 0


def test_a_loss_that_a_fault_sets_holds_on_a_link_that_replays_a_file(file: Path) -> None:
    """The file's delay stays, and the heal brings its loss back."""
    link = model(replay={"path": str(file)})
    before = released_and_lost(link)

    link.apply(0, words(loss="0 %"))
    kept = released_and_lost(link)
    link.apply(1, words(loss="100 %"))
    black = released_and_lost(link)
    link.heal(0)
    link.heal(1)

    assert kept == ({0.040}, 0)
    assert black == (set(), 500)
    assert released_and_lost(link) == before


def test_a_file_replayed_by_a_fault_takes_the_place_of_what_was_set_before(file: Path) -> None:
    """Also of changes on top of an earlier file; what the same words set is for what the file leaves out."""
    link = model(delay="7 ms", replay={"path": str(file)})

    link.apply(0, words(delay="x3", loss="100 %"))
    link.apply(1, words(delay="9 ms", loss="100 %", replay={"path": str(file)}))

    assert released_and_lost(link)[0] == {0.040}


def test_a_change_of_the_delay_holds_where_the_file_has_losses_alone(tmp_path: Path) -> None:
    path = tmp_path / "loss.csv"
    path.write_text("at_s,loss\n0,0\n")
    link = model(delay="7 ms", replay={"path": str(path)})

    link.apply(0, words(delay="x3"))

    assert released_and_lost(link) == ({0.021}, 0)


def test_a_later_line_ends_the_replay_of_what_it_gives(file: Path) -> None:
    """As a fault does."""
    replaying = Effect().changed(Impairment.model_validate({"replay": {"path": str(file)}}))
    effect = replaying.changed(Impairment.model_validate({"delay": "5 ms"}))

    link = LinkModel(SEED, Link(0, "root.west", "us/leaf-1", "request", effect))

    assert released_and_lost(link)[0] == {0.005}
    assert mean_delay_s(effect) == least_delay_s(effect) == 0.005
    assert mean_loss(effect) == mean_loss(replaying) > 0.0


def test_the_mean_and_the_least_delay_count_what_is_on_top_of_a_file(file: Path) -> None:
    """Half a second each of 20 and 250 ms and a second of 40 ms; the last row, of 10 ms, is for no time."""
    replaying = Effect().changed(Impairment.model_validate({"replay": {"path": str(file)}}))
    effect = replaying.changed(words(delay="-30 ms"))

    assert mean_delay_s(effect) == pytest.approx((0.5 * 0.0 + 0.5 * 0.220 + 1.0 * 0.010) / 2)
    assert least_delay_s(effect) == 0.0
    assert least_delay_s(replaying.changed(words(delay="+30 ms"))) == pytest.approx(0.040)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,delay\n0,1\n", ":1: the header is 'time,delay'"),
        ("at_s,delay_s\n0,1,2\n", ":2: 3 values; accepted: 2"),
        ("at_s,delay_s\n0,fast\n", ":2: could not convert string to float: 'fast'"),
        ("at_s,loss\n0,1.5\n", ":2: loss is 1.5; accepted: a number from 0 to 1"),
        ("at_s,delay_s\n0,-1\n", ":2: delay_s is -1; accepted: a number from 0"),
        ("at_s,delay_s\n1,1\n1,2\n", ": row 3: at_s 1 does not follow 1"),
        ("at_s,delay_s\n", ": 0 rows"),
        ("", ":1: the header is ''"),
    ],
)
def test_a_malformed_file_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)

    with pytest.raises(RunError) as raised:
        model(replay={"path": str(path)})

    assert str(raised.value).startswith(f"{path}{message}")


def test_a_missing_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))

    with pytest.raises(
        RunError, match=r"no file to replay at nowhere\.csv and .*nowhere\.csv: it is to be a CSV file"
    ):
        model(replay={"path": "nowhere.csv"})


# --- relative changes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "delay_s"),
    [
        (["+200 ms"], 0.220),
        (["x3"], 0.060),
        (["-5 ms"], 0.015),
        (["-50 ms"], 0.0),
        (["x3", "+200 ms"], 0.260),
        (["+200 ms", "x3"], 0.660),
        (["1 s", "x0.5"], 0.5),
        (["x0.5", "1 s"], 1.0),
    ],
)
def test_a_relative_delay_is_one_of_the_delay_so_far(changes: list[str], delay_s: float) -> None:
    """In the order of the faults' numbers, whichever set in first."""
    link = model(delay="20 ms")

    for fault, change in reversed(list(enumerate(changes))):
        link.apply(fault, words(delay=change))

    assert link.draw(0, 0, 0.0) == pytest.approx(delay_s)


# --- all together -------------------------------------------------------------------------------------------

FAULTS: dict[int, Setting] = {
    0: words(delay="+100 ms", loss="20 %", loss_burst=3.0),
    1: words(duplicate="20 %", jitter={"pareto": "5 ms"}, correlation=0.5),
    2: words(rate="500 /s", queue=3),
    3: words(cut=True),
    4: words(reorder={"fraction": "20 %", "late": "10 ms"}),
    5: words(flap={"period": "20 ms", "down": "50 %"}),
    6: words(order="kept"),
}


@given(st.permutations(list(FAULTS)), st.permutations(list(FAULTS)))
def test_messages_are_accounted_for_while_faults_come_and_heal_under_load(
    applied: list[int], healed: list[int]
) -> None:
    """sent + duplicated = released + dropped by cause after every step, and nothing is left when all have healed."""
    link = model(delay="20 ms", watched=True)
    steps = [(link.apply, fault) for fault in applied] + [(link.heal, fault) for fault in healed]
    sent = released = 0

    for step, fault in steps:
        step(fault, FAULTS[fault]) if step == link.apply else step(fault)
        found = send(link, 20, first=sent)
        sent += 20
        released += sum(len(each.releases) for each in found)
        loss, cut, queue, _, duplicated, _ = link.counts.read()
        assert sent + duplicated == released + loss + cut + queue
        assert all(release_at_s >= each.at_s for each in found for release_at_s in each.releases)

    assert delays_s(send(link, 5, first=sent + 1000)) == pytest.approx([0.020] * 5)


def test_a_link_draws_the_same_whatever_another_carries() -> None:
    """Also where draws have a memory: it is the link's own."""
    keys = {
        "delay": "20 ms",
        "jitter": {"normal": "2 ms"},
        "correlation": 0.9,
        "loss": "10 %",
        "loss_burst": 4.0,
    }
    alone, beside, other = model(**keys), model(**keys), model(target="eu/leaf-1", **keys)

    expected = send(alone, 300)
    found = []
    for i in range(300):
        found += send(beside, 1, first=i)
        send(other, 1, first=i)
    assert found == expected
    assert send(model(target="eu/leaf-1", **keys), 300) != expected
    assert send(model(seed=12, **keys), 300) != expected


def test_independent_losses_are_those_of_a_simple_link() -> None:
    """An arm that only adds copies loses the very same messages at the same delays."""
    simple = model(delay="20 ms", jitter={"normal": "2 ms"}, loss="10 %")
    copying = model(delay="20 ms", jitter={"normal": "2 ms"}, loss="10 %", duplicate="10 %")

    assert [each.releases[:1] for each in send(simple, 500)] == [
        each.releases[:1] for each in send(copying, 500)
    ]


def test_a_simple_link_has_no_course_to_pay_for() -> None:
    link = model(delay="20 ms")
    assert isinstance(link, LinkModel)

    assert link.constant_s == 0.02  # nothing is drawn at all
    assert Effect(0.02).is_simple
    assert not Effect(0.02, delay_replay=Replay(path="x.csv")).is_simple
    assert not Effect(0.02, loss_replay=Replay(path="x.csv")).is_simple
