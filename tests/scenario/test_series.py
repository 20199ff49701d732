"""A file that links replay: found before anything starts, its mean over its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import RunError, ScenarioError
from testbed.scenario.load import scenario_from_text
from testbed.scenario.schema import Scenario
from testbed.scenario.series import Series, check_series, read_series
from testbed.scenario.topology import build_topology
from tests.runtime.fake_sockets import TEXT


def scenario(path: str) -> Scenario:
    line = f"faults: [{{at: 0.1 s, link: {{from: root.*, to: cell.*}}, set: {{replay: {{path: {path}}}}}}}]\n"
    return scenario_from_text(TEXT + line).arms["main"]


def test_a_missing_file_is_told_before_anything_starts() -> None:
    with pytest.raises(RunError, match=r"no file to replay at nowhere\.csv"):
        check_series(scenario("nowhere.csv"))


def test_a_file_may_lie_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wan.csv").write_text("at_s,loss\n0,0.5\n")
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))

    check_series(scenario("wan.csv"))

    assert read_series("wan.csv").loss == (0.5,)


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "wan.csv"
    path.write_text("at_s,delay_s\n0,1\n")
    first = read_series(str(path))
    path.write_text("at_s,delay_s\n0,1\n1,25\n")

    assert first.delay_s == (1.0,)
    assert read_series(str(path)).delay_s == (1.0, 25.0)


@pytest.fixture(name="replay")
def a_replay(tmp_path: Path) -> str:
    (tmp_path / "wan.csv").write_text("at_s,delay_s\n0,0.5\n")
    return f"replay: {{path: {tmp_path / 'wan.csv'}}}"


def lines(*keys: str) -> str:
    """A scenario with these keys of its links to cells, line by line, from links[1] on."""
    return TEXT + "".join(f"  - {{from: root.*, to: cell.*, {each}}}\n" for each in keys)


JITTER = "jitter: {normal: 2 ms}"


def test_jitter_on_top_of_delays_from_a_file_is_refused(replay: str) -> None:
    """As within one line."""
    with pytest.raises(ScenarioError) as raised:
        scenario_from_text(lines(replay, JITTER))

    assert [(fault.key, fault.problem) for fault in raised.value.faults] == [
        ("links[2].jitter", "has no effect beside links[1].replay, which brings its own variation")
    ]


def test_jitter_holds_where_no_file_has_the_delays(tmp_path: Path, replay: str) -> None:
    """Before a file takes its place, beside a delay that ends the replay, and beside a file of losses alone."""

    def has_jitter(*keys: str) -> bool:
        links = build_topology(scenario_from_text(lines(*keys)).arms["main"]).links
        return any(link.effect.jitter is not None for link in links)

    assert has_jitter(JITTER, replay)
    assert has_jitter(replay, JITTER, "delay: 20 ms")
    (tmp_path / "wan.csv").write_text("at_s,loss\n0,0.5\n")
    assert has_jitter(replay, JITTER)


def test_the_mean_counts_each_row_for_as_long_as_it_holds() -> None:
    series = Series((0.0, 1.0, 4.0), (2.0, 6.0, 100.0), None)

    assert series.mean((2.0, 6.0, 100.0)) == (1 * 2 + 3 * 6) / 4
    assert Series((0.0,), (2.0,), None).mean((2.0,)) == 2.0
