"""The launcher's hold on the process that watches the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import Any

from testbed.errors import RunError
from testbed.record.run_folder import ArmFolder
from testbed.runtime.parenthood import ask_for_death

NAME = "host-watcher"
END_WAIT_S = 2.0  # from closing its input until killing it; it looks every 0.2 s


class HostWatch:
    """Watches the machine from its making on, and logs from the start of the run until it is closed.

    A run does not fail for want of it: where the process has died, the log ends early.
    """

    def __init__(self, folder: ArmFolder) -> None:
        """Start the process, in a session of its own.

        Raises:
            RunError: it cannot be started.
        """
        self._folder = folder
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        try:
            with folder.stderr(NAME).open("ab") as stderr:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "testbed.runtime.host_watcher", str(os.getpid())],
                    stdin=subprocess.PIPE, stdout=stderr, stderr=stderr, start_new_session=True,
                    preexec_fn=ask_for_death,  # before its imports, which may take seconds
                    env={**os.environ, "PYTHONPATH": path},
                )  # fmt: skip
        except OSError as error:
            raise RunError(f"could not start the process that watches the host: {error}") from error

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def begin(self, origin_s: float, header: dict[str, Any]) -> None:
        """Log from this instant of `time.monotonic` on, which is the run's time 0."""
        words = {"log": str(self._folder.host_log), "origin_s": origin_s, "header": {**header, "node": NAME}}
        assert self._process.stdin is not None, "it was asked for"
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(words).encode() + b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """Have it close its log, and end."""
        assert self._process.stdin is not None, "it was asked for"
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
