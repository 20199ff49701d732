"""Imports point one way, and what is kept out of the light parts stays out."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.__main__ import COMMANDS

PACKAGE = Path(__file__).parents[1] / "testbed"

# Each name may import those before it; modules of one line may import each other. `serving`, `roles` and `scenario`
# stand in two places: their data (profiles, messages, words) come first, what works with them later.
ORDER = [
    ["testbed", "testbed.compiled", "testbed.errors", "testbed.draw"],
    ["testbed.host"],
    ["testbed.serving.rate_curve", "testbed.serving.profile"],
    ["testbed.scenario"],
    ["testbed.roles.messages", "testbed.roles.environment"],
    ["testbed.serving"],
    ["testbed.traffic"],
    ["testbed.routing"],
    ["testbed.links"],
    ["testbed.roles"],
    ["testbed.record"],
    ["testbed.runtime"],
    ["testbed.theory"],
    ["testbed.analysis"],
    ["testbed.fitness"],
    ["testbed.figures"],
    ["testbed.console"],
    ["testbed.experiment"],
    ["testbed.campaign"],
    ["testbed.compilation"],
    ["testbed.verification"],
    ["testbed.benchmark"],
    ["testbed.commands"],
    ["testbed.__main__"],
]
TOUCH_NOTHING = ("roles", "routing", "links", "serving")
WORLD = {
    "zmq", "socket", "selectors", "select", "time", "datetime", "os", "pathlib", "shutil", "tempfile", "io",
    "threading", "multiprocessing", "subprocess", "asyncio", "signal", "pyarrow", "scipy", "matplotlib", "psutil", "rich",
}  # fmt: skip


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("testbed", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        yield name, ast.parse(path.read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            # `from package import module` imports the module, `from module import name` the module before it
            within = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from {name if name in MODULES else node.module for name in within}


MODULES = dict(modules())


def rank(module):
    """Position of the longest name in ORDER that the module is or lies in."""
    fits = [
        (len(name), i)
        for i, names in enumerate(ORDER)
        for name in names
        if module == name or (module.startswith(name + ".") and name != "testbed")
    ]
    assert fits, f"{module} has no place in the order of imports"
    return max(fits)[1]


def test_imports_point_one_way():
    upward = [
        f"{name} imports {other}"
        for name, tree in MODULES.items()
        for other in imported(tree)
        if other.split(".")[0] == "testbed" and rank(other) > rank(name)
    ]

    assert len(MODULES) > 100
    assert upward == []


def test_no_module_imports_itself_by_a_detour():
    """Within a rank the order is free, but it is one: modules without unresolved imports can always be taken away."""
    left = {name: set(imported(tree)) & set(MODULES) - {name} for name, tree in MODULES.items()}
    while ready := [name for name, others in left.items() if not others]:
        left = {name: others - set(ready) for name, others in left.items() if name not in ready}

    assert left == {}


def test_no_import_hides_in_a_function():
    hidden = [
        f"{name}: {node.name}"
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in ast.walk(node))
    ]

    assert hidden == []


def test_roles_policies_links_and_servers_touch_no_socket_clock_or_file():
    touching = [
        f"{name} imports {other}"
        for name, tree in MODULES.items()
        if name.split(".")[1:2] and name.split(".")[1] in TOUCH_NOTHING
        for other in imported(tree)
        if other.split(".")[0] in WORLD
    ]

    assert touching == []


def test_theory_and_analysis_print_nothing():
    """They give numbers and words; `console` and the tables of checks and findings make pages of them."""
    printing = [
        f"{name} imports {other}"
        for name, tree in MODULES.items()
        if name.split(".")[1:2]
        and name.split(".")[1] in ("scenario", "traffic", "record", "runtime", "theory", "analysis")
        for other in imported(tree)
        if other.split(".")[0] in ("rich", "typer")
    ]

    assert printing == []


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        # every process of a live run: no plotting, no Parquet, no terminal
        ("testbed.runtime.nursery", ("pyarrow", "scipy", "matplotlib", "rich", "pandas", "typer")),
        # orders are given while a run goes on
        ("testbed.commands.control", ("pyarrow", "scipy", "matplotlib", "pandas", "numpy")),
        ("testbed.commands.show", ("matplotlib", "scipy.stats")),
    ],
)
def test_what_has_to_begin_at_once_is_light(module, heavy):
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_every_command_is_the_function_of_its_name_in_the_module_of_its_name():
    modules = {
        name.removeprefix("testbed.commands.") for name in MODULES if name.startswith("testbed.commands.")
    }

    assert set(COMMANDS) == modules - {"options"}
    assert all(f"\ndef {name}(" in (PACKAGE / "commands" / f"{name}.py").read_text() for name in COMMANDS)
