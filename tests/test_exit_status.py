"""The exit status carries the verdict: the gravest of all arms and seeds, before any expectation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed import __main__
from testbed.experiment import Finished, exit_status
from testbed.record.run_folder import RunFolder


def finished(*verdicts: str, interrupted: bool = False) -> Finished:
    arms = {f"arm-{i}": {"verdict": verdict} for i, verdict in enumerate(verdicts)}
    return Finished(RunFolder(Path("run")), {"arms": arms}, interrupted)


@pytest.mark.parametrize(
    ("verdicts", "status", "strict"),
    [
        (("valid", "valid"), 0, 0),
        (("valid", "suspect"), 0, 4),
        (("suspect", "invalid"), 4, 4),
        (("invalid", "incomplete"), 5, 5),
    ],
)
def test_the_gravest_verdict_of_all_arms_decides(verdicts: tuple[str, ...], status: int, strict: int) -> None:
    assert exit_status([finished(*verdicts)], (), strict=False) == status
    assert exit_status([finished(*verdicts)], (), strict=True) == strict


def test_the_gravest_verdict_of_all_seeds_decides_and_ctrl_c_comes_before() -> None:
    seeds = [finished("valid"), finished("invalid")]

    assert exit_status(seeds, (), strict=False) == 4
    assert exit_status([*seeds, finished("valid", interrupted=True)], (), strict=False) == 130


def test_ctrl_c_while_a_command_is_loaded_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(words: Sequence[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, "command_line", pressed)

    with pytest.raises(SystemExit) as ended:
        __main__.main()

    assert ended.value.code == 130
