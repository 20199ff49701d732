"""A machine made up: two cores, plenty of all else."""

from __future__ import annotations

import math
from pathlib import Path

from testbed.host.cores import Cores
from testbed.host.machine import Machine

MACHINE = Machine(
    cores=Cores(2, math.inf),
    clock_source="tsc",
    swap_used_bytes=0,
    memory_bytes=8_000_000_000,
    descriptors=20_000.0,
    processes=math.inf,
    disk_bytes=50_000_000_000,
    folder=Path("/data"),
    temporary=Path("/tmp"),
    tells_pressure=True,
)
