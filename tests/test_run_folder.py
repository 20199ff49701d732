"""Where a run puts what it leaves behind: a folder of its own, whatever the scenario is called, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import RunError, UsageError
from testbed.experiment import new_folder


@pytest.mark.parametrize("name", ["n" * 300, "\u00fc" * 300, "../../away", "...", "a/b c"])
def test_a_scenario_may_have_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file may have more than 255 bytes in its name; no name leads out of `runs`."""
    monkeypatch.chdir(tmp_path)

    first, second = new_folder(None, name), new_folder(None, name)

    assert first.path != second.path
    assert {each.path.resolve().parent for each in (first, second)} == {tmp_path / "runs"}


def test_a_place_where_no_folder_can_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").write_text("a file")

    with pytest.raises(
        RunError, match=r"^making a folder for the run: runs/sand-.*: Not a directory; accepted"
    ):
        new_folder(None, "sand")
    with pytest.raises(UsageError, match=r"^--out runs/x: cannot be made \(Not a directory\); accepted"):
        new_folder(Path("runs/x"), "sand")
    with pytest.raises(UsageError, match=r"cannot be made \(File name too long\); accepted"):
        new_folder(Path("n" * 300), "sand")
