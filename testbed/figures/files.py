"""Figures as files: whole, or small ones for a page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

SMALL_DPI, SMALL_COLOURS = 110, 256  # keep a figure of two panels below 80 kB


def save_figures(figures: Mapping[str, Figure], folder: Path, *, small: bool = False) -> list[Path]:
    """Write each figure as PNG under its stem; the paths of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.png" for stem in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        if small:
            figure.savefig(path, dpi=SMALL_DPI)
            _shrink(path)
        else:
            save(figure, path)
    return paths


def save(figure: Figure, path: Path) -> None:
    """Write a figure that is laid out. The figure's own way draws it once more, to lay it out anew."""
    # matplotlib leaves this method without types
    FigureCanvasAgg(figure).print_png(path)  # type: ignore[no-untyped-call]


def _shrink(path: Path) -> None:
    with Image.open(path) as drawn:
        few = drawn.convert("RGB").quantize(
            SMALL_COLOURS, method=Image.Quantize.FASTOCTREE
        )  # keeps rare colours
    few.save(path, optimize=True)
