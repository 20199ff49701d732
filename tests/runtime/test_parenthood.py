"""Death with the parent holds from before a program's first instruction."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

PARENT = """
import subprocess, sys
from testbed.runtime.parenthood import ask_for_death

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], preexec_fn=ask_for_death)
print(child.pid, flush=True)
child.wait()
"""


def test_a_program_that_never_asked_dies_with_its_parent():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        handle = os.pidfd_open(child)
        parent.kill()
        parent.wait()
    try:
        ended = False
        until_s = time.monotonic() + 30
        while not ended and time.monotonic() < until_s:
            try:
                signal.pidfd_send_signal(handle, 0)
                time.sleep(0.01)
            except ProcessLookupError:
                ended = True
        assert ended
    finally:
        os.close(handle)
