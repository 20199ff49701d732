"""`testbed compile`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from testbed.commands.options import console, errors
from testbed.compilation import compile_modules
from testbed.compiled import default_folder, state


def compile(
    out: Annotated[
        Path | None, typer.Option("--out", help="Into this folder; TESTBED_COMPILED then names it to a run.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Even where they fit the sources already.")] = False,
) -> None:
    """Compile what every message passes through: the same figures, in less time. Needs a C compiler; once a change."""
    folder = out or default_folder()
    if state(folder) == "compiled" and not again:
        console.print(f"the compiled modules fit the sources: {folder}")
        return
    begun_s = perf_counter()
    with errors.status("compiling (one to three minutes)"):
        count = compile_modules(folder)
    console.print(f"{count} modules compiled in {perf_counter() - begun_s:.0f} s: {folder}")
