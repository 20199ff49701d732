"""Processes that do nothing but compute, to see what a run says beside them.

They are children of this one, and are ended by their own ids however the block is left; the kernel ends them should this
process be killed. In a session of their own, so that Ctrl-C is for whoever waits for the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.runtime.parenthood import die_with_parent, set_process_name


@contextmanager
def hogs(count: int) -> Iterator[list[int]]:
    """So many of them until the block is left; their process ids."""
    words = [sys.executable, "-m", "testbed.benchmark.hogs", str(os.getpid())]
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            started.append(
                subprocess.Popen(words, start_new_session=True, env={**os.environ, "PYTHONPATH": path})
            )
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()


def main() -> None:
    """Be one. Argument: pid of the parent."""
    die_with_parent(int(sys.argv[1]))
    set_process_name("hog")
    while True:
        pow(3, (1 << 24) - 59, (1 << 256) - 189)


if __name__ == "__main__":
    main()
