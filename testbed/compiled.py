"""Compiled modules: what every message passes through, as machine code in place of bytecode.

`testbed compile` makes them from the very sources that lie here, by way of C (mypyc). They are taken where they were made
from these sources and for this interpreter; otherwise, as after a change of a source, the sources are run as they are.
Both do the same, to the byte of a table under virtual time; they differ in speed alone.

The variable TESTBED_COMPILED names another folder to take them from; `no` has the sources run.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parent
VARIABLE = "TESTBED_COMPILED"
NEVER = "no"
STAMP = "sources.sha256"

# What is compiled: whole packages, or modules. Those that it rests on come in `RESTS_ON`: types that are compiled in.
COMPILED = (
    "draw.py",
    "links",
    "serving",
    "routing",
    "roles",
    "record/log.py",
    "runtime/accounts.py",
    "runtime/chores.py",
    "runtime/ground_truth.py",
    "runtime/live.py",
    "runtime/live_environment.py",
    "runtime/lookahead.py",
    "runtime/ordered.py",
    "runtime/receiving_end.py",
    "runtime/sending_end.py",
    "runtime/sockets.py",
    "runtime/stand_in.py",
    "runtime/virtual.py",
    "runtime/wire.py",
)
# What mypyc cannot take: tuples with names, and constructors that hand on whatever they are given.
LEFT_OUT = (
    "roles/messages.py",
    "roles/retry.py",
    "roles/root_hedging.py",
)
RESTS_ON = ("errors.py", "host", "scenario", "traffic", "record", "runtime")


class CompiledModules(MetaPathFinder):
    """Finds the compiled modules of one folder before their sources are looked for."""

    def __init__(self, files: dict[str, Path]) -> None:
        """Args:
        files: the shared object of each module.
        """
        self.files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where this module is compiled; None: it is not."""
        file = self.files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def default_folder() -> Path:
    """Where the compiled modules lie for this interpreter."""
    return PACKAGE / "__compiled__" / str(sysconfig.get_config_var("SOABI"))


def sources() -> list[Path]:
    """The files that are compiled, in the order of the list above."""
    left_out = {PACKAGE / name for name in LEFT_OUT}
    return [file for file in _files(COMPILED) if file not in left_out]


def digested() -> list[Path]:
    """All files that the compiled modules are made from, in the order of their names."""
    return sorted({*_files(COMPILED), *_files(RESTS_ON)})


def digest_of_sources() -> str:
    """SHA-256 of all that the compiled modules are made from, in hexadecimal."""
    digest = hashlib.sha256()
    for file in digested():
        digest.update(f"{file.relative_to(PACKAGE)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _files(names: Sequence[str]) -> list[Path]:
    """Of packages and modules; a package's own file holds nothing but its docstring."""
    places = [PACKAGE / name for name in names]
    files = [file for each in places for file in (sorted(each.glob("*.py")) if each.is_dir() else [each])]
    return [file for file in files if file.name != "__init__.py"]


def state(folder: Path) -> str:
    """'compiled', 'stale' where a source has changed since, or 'interpreted' where there is nothing."""
    try:
        stamp = (folder / STAMP).read_text()
    except OSError:
        return "interpreted"
    return "compiled" if stamp == digest_of_sources() else "stale"


def take_compiled() -> str:
    """Have the compiled modules of the usual folder, or of TESTBED_COMPILED, imported from now on; their state."""
    told = os.environ.get(VARIABLE, "")
    if told == NEVER:
        return "interpreted"
    folder = Path(told) if told else default_folder()
    found = state(folder)
    if found == "compiled":
        suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
        files = {
            ".".join(file.relative_to(folder).parts).removesuffix(suffix): file
            for file in folder.rglob(f"*{suffix}")
        }
        sys.meta_path.insert(0, CompiledModules(files))
    return found
