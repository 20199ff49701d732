"""What processes ask of the kernel: death with the parent from before a program's first instruction, short turns."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time

from testbed.runtime.parenthood import SLICE_NS

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


TURNS = """
import ctypes, os
from testbed.runtime import parenthood

def told():
    attr = parenthood._SchedAttr()
    parenthood._libc.syscall(parenthood._SCHED_GETATTR[os.uname().machine], 0, ctypes.byref(attr), ctypes.sizeof(attr), 0)
    return attr.policy, attr.nice, attr.runtime_ns

os.nice(3)
before = told()
granted = parenthood.ask_for_short_turns()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, repr(told()).encode())
    os._exit(0)
print((granted, before, eval(os.read(reader, 100))))
"""


def test_short_turns_are_handed_on_and_change_neither_policy_nor_share() -> None:
    """Where the kernel does not grant them, everything stays as it was."""
    said = subprocess.run([sys.executable, "-c", TURNS], capture_output=True, text=True, check=True).stdout
    granted, before, after = ast.literal_eval(said)

    assert before[:2] == after[:2] == (os.SCHED_OTHER, before[1])
    assert before[1] >= 3
    assert after[2] == (SLICE_NS if granted else before[2])
