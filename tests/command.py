"""The command line as a test calls it: within its own process, which has loaded what it needs, or in one of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from testbed.__main__ import main
from testbed.commands.options import WIDTH, console

CHECKOUT = Path(__file__).parents[1]


class Said(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


def run(folder: Path, *words: object, status: int = 0) -> Said:
    """Call a command in a folder; an error that would end in a traceback reaches the test as it is.

    Raises:
        AssertionError: it ends with another exit status.
    """
    out, err = io.StringIO(), io.StringIO()
    argv = ["testbed", *map(str, words)]
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", argv),
        patch.object(console, "_width", WIDTH),  # as into a pipe, wherever the tests print
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert ended.value.code == status, (ended.value.code, out.getvalue(), err.getvalue())
    return Said(out.getvalue(), err.getvalue())


def run_apart(folder: Path, *words: object, status: int = 0, python_path: object = "") -> Said:
    """Call a command as a shell does, which takes seconds of loading.

    Raises:
        AssertionError: it ends with another exit status, or in a traceback.
    """
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{python_path}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return Said(done.stdout, done.stderr)
