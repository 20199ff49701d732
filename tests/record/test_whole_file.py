"""A small file is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.record.whole_file import write_whole


def test_a_file_is_put_in_the_place_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text("old")

    write_whole(path, "new")

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_who_is_stopped_while_writing_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "words.json"
    path.write_text("old")

    def stopped(self: Path, text: str) -> None:
        with self.open("w") as file:
            file.write(text[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", stopped)

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")

    assert path.read_text() == "old"
