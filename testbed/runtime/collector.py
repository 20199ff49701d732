"""The collector of cyclic garbage, kept from the runs.

Roles make tuples and lists that reference counts free. A full collection would walk every open request: it would stall
the loop of a live process for many milliseconds, and take a tenth of the time of a virtual run. Memory is in the records
of live runs, second by second, so a policy that makes cycles shows there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def stop_collector() -> None:
    """No collections in this process any more; what it holds by now is left alone, and its pages stay shared."""
    gc.collect()
    gc.freeze()
    gc.disable()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No collections meanwhile; afterwards as before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
