"""Compilation: turns the sources of the hot modules into machine code, by mypyc and the C compiler of this machine.

The folder of a compilation takes its name last: one that was interrupted leaves nothing that would be taken.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.compiled import NEVER, PACKAGE, STAMP, VARIABLE, digest_of_sources, sources
from testbed.errors import RunError, UsageError

# What is compiled as one, within which calls are cheapest; the compiler works on two of them at once.
APART = ("routing", "serving")
REST = "nodes"

# No fused multiplication: a table is to be the same to the byte on every machine, compiled or not.
BUILD = """
import json, sys
from mypyc.build import mypycify
from setuptools import setup

groups, words = json.loads(sys.argv[1]), sys.argv[2:]
modules = [module for group in groups.values() for module in group]
extensions = mypycify(["--no-incremental", *modules], opt_level="2", debug_level="0", target_dir=words[-1],
                      separate=[(group, f"testbed_{name}") for name, group in groups.items()])
for each in extensions:
    each.extra_compile_args.append("-ffp-contract=off")
setup(name="testbed", packages=[], ext_modules=extensions, script_args=words[:-1])
"""


def missing_tools() -> list[str]:
    """What a compilation needs and this machine lacks, each with how to get it."""
    lacks = []
    if find_spec("mypyc") is None or find_spec("setuptools") is None:
        lacks.append("mypy and setuptools (scripts/compile installs them, or: pip install mypy setuptools)")
    if shutil.which(str(sysconfig.get_config_var("CC")).split()[0]) is None and shutil.which("cc") is None:
        lacks.append("a C compiler (on Debian: apt install gcc)")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        lacks.append("Python.h (on Debian: apt install python3-dev)")
    return lacks


def compile_modules(folder: Path) -> int:
    """Compile the hot modules into this folder, in place of what it held; how many they were.

    Raises:
        UsageError: the machine lacks a tool, or the folder holds something else.
        RunError: the compiler failed; its last words are in the message.
    """
    lacks = missing_tools()
    if lacks:
        raise UsageError(f"nothing is compiled, for want of {'; '.join(lacks)}")
    if folder.exists() and any(folder.iterdir()) and not (folder / STAMP).exists():
        raise UsageError(
            f"{folder} holds something else than compiled modules; accepted: a new or an empty folder"
        )
    digest, files = digest_of_sources(), sources()
    with TemporaryDirectory(prefix="testbed-") as place:
        _build(files, Path(place))
        if digest_of_sources() != digest:
            raise RunError("a source changed while it was compiled; nothing is kept: compile again")
        _put(Path(place) / "lib", digest, folder)
    return len(files)


def _put(built: Path, digest: str, folder: Path) -> None:
    """In place of what the folder held."""
    (built / STAMP).write_text(digest)
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(built, new)
    if folder.exists():
        shutil.rmtree(folder)
    new.rename(folder)


def _build(files: list[Path], place: Path) -> None:
    words = [
        "build_ext",
        "--parallel",
        "2",
        "--build-lib",
        place / "lib",
        "--build-temp",
        place / "temp",
        place / "c",
    ]
    done = subprocess.run(
        [sys.executable, "-c", BUILD, json.dumps(_groups(files)), *map(str, words)],
        cwd=PACKAGE.parent,
        env={**os.environ, VARIABLE: NEVER, "MYPY_CACHE_DIR": str(place / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise RunError(f"the compilation failed:\n{last}")


def _groups(files: list[Path]) -> dict[str, list[str]]:
    """The files of each group, as paths from where the package lies."""
    groups: dict[str, list[str]] = {}
    for file in files:
        package = file.relative_to(PACKAGE).parts[0]
        name = package if package in APART else REST
        groups.setdefault(name, []).append(str(file.relative_to(PACKAGE.parent)))
    return groups
