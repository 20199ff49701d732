"""A file of data that a scenario names (a trace, a series), and where it is looked for."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.errors import RunError

FOLDER_VARIABLE = "TESTBED_DATA"


def find_data(name: str, missing: str, wanted: str) -> Path:
    """The file as it is named, or in the folder that the environment names, by its path there or by its name alone.

    There it is looked for at the path that the scenario has, then by its bare name: a folder that holds the file
    will do, whatever the folders of the scenario's path are called.

    Args:
        name: as the scenario has it.
        missing: how the message begins where there is none, such as 'no trace'.
        wanted: what the message says of the file that is to be there.

    Raises:
        RunError: there is no such file.
    """
    candidates = [Path(name)]
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        candidates += [Path(folder) / name, Path(folder) / Path(name).name]
    for path in candidates:
        if os.path.isfile(path):  # Path.is_file raises where the name is too long for any file
            return path
    tried = " and ".join(dict.fromkeys(str(path) for path in candidates))
    raise RunError(
        f"{missing} at {tried}: {wanted}; put it there,"
        f" or name the folder that holds it in the environment variable {FOLDER_VARIABLE}"
    )


def state_of(path: Path) -> tuple[int, int]:
    """Time of the last change and size: what is kept of a file is good while these stay.

    Raises:
        RunError: the file cannot be read.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from error
    return state.st_mtime_ns, state.st_size
