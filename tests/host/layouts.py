"""File systems made up in a folder: what /proc and /sys say on this or that machine."""

from __future__ import annotations

from pathlib import Path


def write(root: Path, **texts: str) -> Path:
    """Files by their path below the root, a double underscore for each slash."""
    for name, text in texts.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def proc(
    pressure_us: int = 0, busy_ticks: int = 0, stolen_ticks: int = 0, swapped: int = 0
) -> dict[str, str]:
    """What a Linux of today has below /proc."""
    return {
        "proc__pressure__cpu": f"some avg10=1.00 avg60=0.00 avg300=0.00 total={pressure_us}\nfull avg10=0.00 total=7\n",
        "proc__stat": f"cpu  {busy_ticks} 0 0 99 1 0 0 {stolen_ticks} 0 0\ncpu0 1 2 3\n",
        "proc__vmstat": f"nr_free_pages 5\npswpin {swapped}\npswpout 0\n",
    }


def put(root: Path, path: str, text: str) -> None:
    """A file whose path has underscores of its own."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
