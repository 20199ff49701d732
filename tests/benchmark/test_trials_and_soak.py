"""What trials of the verdict and looks at memory lead to; on runs made up."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil
import pytest

from testbed import __main__
from testbed.benchmark.hogs import hogs
from testbed.benchmark.soak import Look, Watch, growths
from testbed.benchmark.verdict_trials import Trial, trial_data, trial_figures
from testbed.runtime.progress import Progress

QUIET = Trial(0, "valid", (), 0.0003, 0.2, 0.0, 0, 1.2)
BESIDE = Trial(4, "invalid", ("release lateness", "pressure"), 0.004, 0.95, 0.0, 0, 1.3)


def reached(*found: Trial) -> list[bool | None]:
    return [figure.reached for figure in trial_figures(found)]


def test_twenty_of_each_as_they_are_to_be_reach_every_aim() -> None:
    assert reached(*[QUIET, BESIDE] * 20) == [True, True, True, None]


def test_a_valid_run_beside_hogs_misses_the_aim() -> None:
    assert reached(QUIET, BESIDE._replace(verdict="valid", named=()))[:2] == [False, False]


def test_a_run_beside_hogs_has_to_be_blamed_for_what_hogs_do() -> None:
    assert reached(QUIET, BESIDE._replace(named=("ledger",)))[:2] == [True, False]
    assert reached(QUIET, BESIDE._replace(verdict="suspect", named=("pressure",)))[:2] == [True, True]


def test_one_false_alarm_in_twenty_is_allowed_and_two_are_not() -> None:
    alarm = QUIET._replace(verdict="invalid", named=("generator slip",))

    assert reached(*[QUIET] * 19, alarm, BESIDE)[2] is True
    assert reached(*[QUIET] * 18, alarm, alarm, BESIDE)[2] is False


@pytest.mark.parametrize("shown", [{"steal": 0.1}, {"pressure": 0.9}, {"slow_spells": 2}])
def test_an_alarm_is_no_false_one_where_the_machine_shows(shown: dict[str, float]) -> None:
    alarm = QUIET._replace(verdict="invalid", **shown)

    assert reached(*[alarm] * 20, BESIDE)[2] is True


def test_what_a_machine_does_not_tell_excuses_nothing() -> None:
    alarm = QUIET._replace(verdict="invalid", pressure=None, steal=None, slowdown=None)

    assert not alarm.is_disturbed
    assert trial_data([alarm])[0]["pressure"] is None


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


def test_hogs_die_with_a_parent_that_is_killed() -> None:
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            with hogs(1) as pids:
                os.write(write, f"{pids[0]}\n".encode())
                signal.pause()
        finally:
            os._exit(1)
    hog = int(os.read(read, 32))
    os.close(read)
    os.close(write)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    until_s = time.monotonic() + 30.0
    while psutil.pid_exists(hog) and time.monotonic() < until_s:
        time.sleep(0.01)

    assert not psutil.pid_exists(hog)


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
