"""The echo roles, with one process that is killed on its fork. To be imported by a nursery alone, which forks nothing but nodes."""

from __future__ import annotations

import os
import signal
from itertools import count

from tests.live.echo_roles import STILLBORN, echo

_forks = count()
_dies = False


def _look() -> None:
    global _dies
    _dies = next(_forks) == int(os.environ[STILLBORN])


def _die() -> None:
    if _dies:
        os.kill(os.getpid(), signal.SIGKILL)


os.register_at_fork(before=_look, after_in_child=_die)

__all__ = ["echo"]
