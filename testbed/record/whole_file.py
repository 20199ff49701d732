"""A small file that is there whole or not at all, whatever ends the process that writes it."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a text beside the file, then put it in the place of what the file held.

    Raises:
        OSError: the disk is full, or the folder cannot be written; the file holds what it held.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)
