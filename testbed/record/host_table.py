"""What the machine did while a run went on; without a row where nothing watched it."""

from __future__ import annotations

from testbed.record.gather import Rows, gather
from testbed.record.run_folder import ArmFolder


def host_table(folder: ArmFolder, time_scale: float) -> Rows:
    """The table `host` of an arm, in scenario time.

    A log that is cut short gives the rows that it has: what explains a run is not what decides whether it is whole.

    Raises:
        RunError: the log cannot be read.
    """
    paths = [folder.host_log] if folder.host_log.exists() else []
    return gather(paths, time_scale).tables["host"]
