"""What trials of the verdict and looks at memory lead to; on runs made up."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from testbed import __main__
from testbed.benchmark.hogs import hogs
from testbed.benchmark.soak import Look, Watch, growths
from testbed.benchmark.verdict_trials import Trial, trial_data, trial_figures, trials
from testbed.runtime.progress import Progress
from tests.benchmark.made_run import made_run

CHECKOUT = Path(__file__).parents[2]
QUIET = Trial(0, "valid", (), 0.0003, 0.2, 0.05, 0.0, 0, 1.2)
BESIDE = Trial(4, "invalid", ("release lateness", "pressure"), 0.004, 0.95, 1.2, 0.0, 0, 1.3)
ALARM = QUIET._replace(verdict="invalid", named=("generator slip",))


def reached(*found: Trial) -> list[bool | None]:
    return [figure.reached for figure in trial_figures(found)]


def test_twenty_of_each_as_they_are_to_be_reach_every_aim() -> None:
    assert reached(*[QUIET, BESIDE] * 20) == [True, True, True, None, None]


def test_a_valid_run_beside_hogs_misses_the_aim() -> None:
    assert reached(QUIET, BESIDE._replace(verdict="valid", named=()))[:2] == [False, False]


def test_a_run_beside_hogs_has_to_be_blamed_for_what_hogs_do() -> None:
    assert reached(QUIET, BESIDE._replace(named=("ledger",)))[:2] == [True, False]
    assert reached(QUIET, BESIDE._replace(verdict="suspect", named=("pressure",)))[:2] == [True, True]


def test_one_false_alarm_in_twenty_is_allowed_and_two_are_not() -> None:
    assert reached(*[QUIET] * 19, ALARM, BESIDE)[2] is True
    assert reached(*[QUIET] * 18, ALARM, ALARM, BESIDE)[2] is False


def test_fewer_than_twenty_undisturbed_runs_may_have_no_false_alarm_and_are_counted() -> None:
    slow = ALARM._replace(slow_spells=3)

    figure = trial_figures([*[QUIET] * 7, *[slow] * 13, BESIDE])[2]
    assert (figure.name, figure.value, figure.reached) == ("of 7 undisturbed runs alone: invalid", 0, True)
    assert figure.how == "of 20 runs alone: 13 with slow spells of the processors"
    assert reached(*[QUIET] * 6, ALARM, *[slow] * 13, BESIDE)[2] is False


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        ({"steal": 0.1}, "stolen time"),
        ({"pressure": 0.9, "others_cores": 0.5}, "pressure of others"),
        ({"slow_spells": 2}, "slow spells of the processors"),
        ({"steal": 0.1, "slow_spells": 2}, "stolen time"),
        ({"pressure": 0.9, "others_cores": 0.1}, ""),  # its own
        ({"pressure": 0.9, "others_cores": None}, ""),
        ({"pressure": None, "steal": None, "slowdown": None}, ""),  # not told: excuses nothing
    ],
)
def test_what_disturbed_a_run_has_a_name(shown: dict[str, float], kind: str) -> None:
    assert ALARM._replace(**shown).disturbed_by == kind


@pytest.mark.parametrize("shown", [{"steal": 0.1}, {"slow_spells": 2}])
def test_where_every_run_alone_was_disturbed_nothing_is_known_of_false_alarms(
    shown: dict[str, float],
) -> None:
    figure = trial_figures([*[ALARM._replace(**shown)] * 20, BESIDE])[2]

    assert figure.reached is None
    assert figure.value != figure.value


def test_invalid_runs_in_slow_spells_are_told_by_themselves() -> None:
    figures = trial_figures(
        [QUIET, *[ALARM._replace(slow_spells=1)] * 3, QUIET._replace(slow_spells=1), BESIDE]
    )

    assert (figures[3].name, figures[3].value) == ("of 4 runs alone with slow spells: invalid", 3)
    assert (figures[4].name, figures[4].value) == ("of 5 runs alone: invalid", 3)


def test_a_disturbed_run_alone_is_repeated_up_to_a_bound_and_every_try_is_kept() -> None:
    """The first is undisturbed at its second try; the second never."""
    slow = {"slowdown": 5.0}
    hosts = iter([slow, {}, {}, slow, slow, slow, {}])

    found = list(trials(2, beside=0, run_once=lambda _: made_run(host=next(hosts))))

    assert [each.slow_spells for each in found] == [1, 0, 0, 1, 1, 1, 0]
    assert next(hosts, None) is None


def test_a_trial_takes_from_a_run_what_it_says_of_the_machine() -> None:
    (alone, _) = trials(
        1,
        beside=0,
        run_once=lambda _: made_run(
            host={"steal": 0.004, "busy_cores": 0.22}, late_ms=0.7, verdict="suspect"
        ),
    )

    assert alone == Trial(
        0, "suspect", (), pytest.approx(7e-4), 0.2, pytest.approx(0.12), pytest.approx(0.004), 0, 1.1
    )
    assert trial_data([alone])[0]["disturbed_by"] == ""


def test_hogs_compute_until_the_block_is_left_however_it_is_left() -> None:
    seen: list[int] = []
    try:
        with hogs(2) as pids:
            seen += pids
            assert all(psutil.pid_exists(pid) for pid in pids)
            assert os.getsid(pids[0]) != os.getsid(0)  # a terminal's Ctrl-C is not for them
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass

    assert len(seen) == 2
    assert not any(psutil.pid_exists(pid) for pid in seen)


PARENT = """
import signal
from testbed.benchmark.hogs import hogs

with hogs(1) as pids:
    print(pids[0], flush=True)
    signal.pause()
"""


def test_hogs_die_with_a_parent_that_is_killed() -> None:
    words = [sys.executable, "-c", PARENT]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as parent:
        assert parent.stdout is not None
        hog = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
    try:
        ended, _, _ = select.select([hog], [], [], 30.0)  # readable once it has ended
        assert ended == [hog]
    finally:
        os.close(hog)


def looks(name: str, resident: list[float], unique: list[float], descriptors: list[int]) -> list[Look]:
    """A look every minute, sizes in MB."""
    return [
        Look(name, 7, 60.0 * i, int(1e6 * size), int(1e6 * own), files)
        for i, (size, own, files) in enumerate(zip(resident, unique, descriptors, strict=True))
    ]


def test_growth_is_that_after_the_first_third_and_the_fastest_comes_first() -> None:
    settling = looks("a", [40, 44, 48, 50, 50, 50, 50, 50, 50], [4, 5, 6, 6, 6, 6, 6, 6, 6], [9] * 9)
    leaking = looks("b", [50, 51, 52, 53, 54, 55, 56, 57, 58], [4] * 9, [9, 9, 9, 9, 9, 9, 10, 11, 12])

    found = growths([*settling, *leaking])

    assert [each.name for each in found] == ["b", "a"]
    assert [each.resident_mb_per_h for each in found] == pytest.approx([60.0, 0.0], abs=1e-6)
    assert [each.descriptors for each in found] == [3, 0]
    assert found[1].unique_mb == pytest.approx(6.0)


def test_a_process_that_was_seen_twice_has_no_slope() -> None:
    (found,) = growths(looks("a", [40, 41], [4, 4], [9, 9]))

    assert found.resident_mb_per_h != found.resident_mb_per_h


def test_processes_are_looked_at_once_a_period_from_the_start_of_the_run_on() -> None:
    now_s = iter([0.0, 1.0, 1.0, 2.0, 7.0, 7.0])
    watch = Watch(5.0, clock=lambda: next(now_s))
    watch.show(Progress(0.0, {}))  # not yet begun: not even the clock is asked
    for at_s in (1.0, 2.0, 7.0):
        watch.show(Progress(at_s, {}))

    mine = [look for look in watch.looks if look.name == "launcher"]
    assert [look.at_s for look in mine] == [1.0, 7.0]
    assert all(look.resident_bytes >= look.unique_bytes > 0 and look.descriptors > 0 for look in mine)


@pytest.mark.parametrize("words", [["--soak", "soon"], ["--soak", "0 s"], ["--verdict", "--soak", "1 min"]])
def test_a_wrong_length_or_two_measurements_at_once_are_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["testbed", "bench", *words, "--anyway"])

    with pytest.raises(SystemExit) as ended:
        __main__.main()

    assert ended.value.code == 2
    assert "--soak" in capsys.readouterr().err
