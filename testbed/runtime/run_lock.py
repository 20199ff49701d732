"""What an arm's run has for itself alone: the lock on its folder, and a folder for its sockets."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import RunError
from testbed.record.run_folder import ArmFolder, file_name
from testbed.runtime.sockets import PATH_BYTES

LOCK_FILE = "lock"
CONTROL = (
    "control"  # name of the launcher's socket; no node has it, since all their names have a point or a slash
)


@contextmanager
def lock(folder: ArmFolder) -> Iterator[None]:
    """Hold the folder: ZeroMQ would let a second run bind the same paths, and steal the traffic of the first.

    Raises:
        RunError: another run holds it.
    """
    path = folder.path / LOCK_FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"{folder.path}: another run is using this folder") from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def sockets_folder(folder: ArmFolder, nodes: list[str]) -> Iterator[Path]:
    """A folder for the sockets of these nodes, for this user alone, gone in the end.

    Inside the arm's folder, unless that makes a path too long for a socket: then among the temporary files.
    """
    inside = folder.path.resolve() / "sockets"
    longest = max(len(file_name(node).encode()) for node in [*nodes, CONTROL])
    fits = len(str(inside).encode()) + len("/.99.ipc") + longest <= PATH_BYTES
    if fits:
        shutil.rmtree(inside, ignore_errors=True)  # of a run that was killed; we hold the lock
        inside.mkdir(mode=0o700)
    place = inside if fits else Path(tempfile.mkdtemp(prefix="testbed-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
