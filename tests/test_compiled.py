"""Compiled modules: taken where they fit the sources, and the same in all but speed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import testbed
from testbed import compiled
from testbed.compilation import compile_modules, missing_tools
from testbed.errors import UsageError
from testbed.experiment import Options, run_scenario
from testbed.record.run_folder import RunFolder
from testbed.scenario.load import load_scenario
from testbed.scenario.quantity import parse_duration_s
from tests.full_length import silent

CHECKOUT = Path(__file__).parents[1]
SCENARIOS = {
    "herding.yaml": "3 s",
    "boulders_and_sand.yaml": "6 s",
    "hedging.yaml": "3 s",
    "autoscaling.yaml": "20 s",
    "incidents/retry_storm.yaml": "20 s",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two sources in place of ours, one of which is compiled."""
    place = tmp_path / "package"
    place.mkdir()
    (place / "draw.py").write_text("SIDES = 6\n")
    (place / "errors.py").write_text("")
    monkeypatch.setattr(compiled, "PACKAGE", place)
    for name, files in (("COMPILED", ("draw.py",)), ("LEFT_OUT", ()), ("RESTS_ON", ("errors.py",))):
        monkeypatch.setattr(compiled, name, files)
    return place


@pytest.fixture
def folder(tmp_path, package):
    """What a compilation of that package leaves."""
    place = tmp_path / "made"
    place.mkdir()
    (place / compiled.STAMP).write_text(compiled.digest_of_sources())
    return place


def test_without_a_folder_the_sources_run(tmp_path, package):
    assert compiled.state(tmp_path / "none") == "interpreted"


def test_compiled_modules_that_fit_the_sources_are_taken(folder):
    assert compiled.state(folder) == "compiled"


@pytest.mark.parametrize("source", ["draw.py", "errors.py"])
def test_a_source_that_has_changed_since_makes_them_stale(folder, package, source):
    (package / source).write_text("SIDES = 7\n")

    assert compiled.state(folder) == "stale"


def test_the_variable_has_the_sources_run_or_names_a_folder(folder, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setenv(compiled.VARIABLE, str(folder))
    assert compiled.take_compiled() == "compiled"
    assert isinstance(sys.meta_path[0], compiled.CompiledModules)

    monkeypatch.setenv(compiled.VARIABLE, "no")
    assert compiled.take_compiled() == "interpreted"


def test_a_compiled_module_is_found_before_its_source_and_no_other_is(tmp_path):
    file = tmp_path / "draw.so"
    finder = compiled.CompiledModules({"testbed.draw": file})

    assert finder.find_spec("testbed.draw", None).origin == str(file)
    assert finder.find_spec("testbed.errors", None) is None


def test_all_that_is_compiled_is_there_and_rests_on_what_is_digested():
    """A type of a module that no digest covers could change beneath the compiled ones."""
    files = compiled.sources()
    digested = compiled.digested()
    imported = {
        line.split()[1].removeprefix("testbed.").replace(".", "/") + ".py"
        for file in files
        for line in file.read_text().splitlines()
        if line.startswith("from testbed.")
    }

    assert all(file.exists() for file in digested)
    assert len(files) > 80
    assert [
        name for name in imported if (file := compiled.PACKAGE / name).exists() and file not in digested
    ] == []


def test_a_missing_compiler_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert any("C compiler" in lack for lack in missing_tools())
    with pytest.raises(UsageError, match="apt install gcc"):
        compile_modules(tmp_path / "made")


def test_a_folder_that_holds_something_else_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.compilation.missing_tools", list)
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(UsageError, match="holds something else than compiled modules"):
        compile_modules(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_compilation_takes_the_place_of_an_older_one_whole(tmp_path, package, monkeypatch):
    """The compiler itself is put in a drawer: what it would have built is there already."""
    monkeypatch.setattr("testbed.compilation.missing_tools", list)
    monkeypatch.setattr(
        "testbed.compilation._build", lambda files, place: (place / "lib" / "testbed").mkdir(parents=True)
    )
    made = tmp_path / "made"
    made.mkdir()
    (made / compiled.STAMP).write_text("of another day")
    (made / "old.so").write_text("")

    assert compile_modules(made) == 1
    assert compiled.state(made) == "compiled"
    assert sorted(file.name for file in made.iterdir()) == [compiled.STAMP, "testbed"]
    assert list(tmp_path.glob("*.new")) == []


def run_virtual(scenario, duration, out, form):
    """The tables of a run in this process, whose modules are compiled, or in one that runs the sources."""
    path = CHECKOUT / "scenarios" / scenario
    if form == "compiled":
        folder = RunFolder(out)
        folder.path.mkdir()
        options = Options("virtual", duration_s=parse_duration_s(duration), figures=False)
        run_scenario(load_scenario(path), folder, options, silent)
    else:
        words = ["--engine", "virtual", "--duration", duration, "--no-figures", "--out", str(out)]
        subprocess.run(
            [sys.executable, "-m", "testbed", "run", str(path), *words],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), compiled.VARIABLE: "no"},
            capture_output=True,
            check=False,
        )
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*.parquet"))}


@pytest.mark.compiled
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_compiled_and_interpreted_modules_give_the_same_tables_to_the_byte(tmp_path, scenario):
    tables = [
        run_virtual(scenario, SCENARIOS[scenario], tmp_path / form, form) for form in ("compiled", "sources")
    ]

    assert len(tables[0]) > 10
    assert tables[0] == tables[1]


@pytest.mark.compiled
def test_ctrl_c_ends_a_compiled_run_and_keeps_its_data(tmp_path):
    out = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-m", "testbed", "run", str(CHECKOUT / "scenarios/herding.yaml"), "--engine", "virtual",
         "--duration", "300 s", "--arm", "flow", "--no-figures", "--out", str(out)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:  # fmt: skip
        while process.poll() is None and not any(file.stat().st_size > 10**5 for file in out.rglob("*.log")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=120)

    assert process.returncode == 130, told
    assert list(out.rglob("requests.parquet"))


@pytest.mark.compiled
def test_the_form_is_told(tmp_path):
    assert testbed.FORM == "compiled"
    done = subprocess.run(
        [sys.executable, "-c", "import testbed.roles.root as root; print(root.__file__)"],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().endswith(".so")
