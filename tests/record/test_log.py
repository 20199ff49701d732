"""A log keeps all whole records, wherever the process that wrote it died."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from testbed.errors import RunError
from testbed.record.log import MAGIC, LogWriter, log_header, read_log
from testbed.record.tables import LOGGED

HEADER = log_header(
    scenario="tiny",
    scenario_hash="abc",
    seed=3,
    version="1.2",
    engine="virtual",
    node="us/leaf-1",
    started="virtual",
)
VISITS = [(i, 0, "us/leaf-1", f"us/server-{i % 3 + 1}", i % 7, i * 0.5, i * 0.5 + 0.25) for i in range(11)]
DELIVERED = [(4, float(i), 9, 0, 0.001, 0.0005, [0, 5, 4][: i + 1]) for i in range(3)]
APPLIED = [(0, "us/leaf-1", False, 1.0, 1.5), (0, "us/leaf-1", True, 2.0, 2.0)]


def write(path: Path, rows_per_chunk: int = 4, header: dict[str, object] = HEADER) -> None:
    writer = LogWriter(path, header, rows_per_chunk)
    for row in VISITS:
        writer.append("visits", row)
    for row in DELIVERED:
        writer.append("delivered", row)
    for row in APPLIED:
        writer.append("applied", row)
    writer.close()


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    write(tmp_path / "a.log")

    log = read_log(tmp_path / "a.log")

    assert log.complete
    assert log.problem is None
    assert log.rows("visits") == VISITS
    assert log.rows("delivered") == DELIVERED
    assert log.rows("applied") == APPLIED
    assert log.rows("dispatches") == []
    assert log.tables["applied"] == {
        "fault": [0, 0],
        "node": ["us/leaf-1"] * 2,
        "healed": [False, True],
        "planned_at_s": [1.0, 2.0],
        "done_at_s": [1.5, 2.0],
    }


def test_a_log_explains_itself(tmp_path: Path) -> None:
    """It names its run, its node, and the columns of every table, also those that are empty."""
    write(tmp_path / "a.log")

    header = read_log(tmp_path / "a.log").header

    assert {key: header[key] for key in HEADER} == HEADER
    assert header["columns"].keys() == LOGGED.keys()
    assert ["left_leaf_s", "float"] in header["columns"]["visits"]


def test_not_a_number_is_a_value(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "a.log", HEADER)
    writer.append("late_replies", (1, 0, math.nan))
    writer.append("late_replies", (2, 0, math.inf))
    writer.close()

    _, _, instants_s = zip(*read_log(tmp_path / "a.log").rows("late_replies"), strict=True)

    assert math.isnan(instants_s[0])
    assert instants_s[1] == math.inf


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a.log")
    write(tmp_path / "b.log")

    assert (tmp_path / "a.log").read_bytes() == (tmp_path / "b.log").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("log") / "a.log"
    write(path)
    return path.read_bytes()


def test_a_log_cut_at_any_byte_keeps_its_whole_chunks_and_says_so(whole: bytes, tmp_path: Path) -> None:
    """kill -9 anywhere: rows are read in chunks of 4, never more than were written, never out of order."""
    path = tmp_path / "a.log"
    counts = []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])

        log = read_log(path)

        assert not log.complete, length
        assert log.problem is not None, length
        visits = log.rows("visits")
        assert visits == VISITS[: len(visits)]
        counts.append(len(visits))
    assert counts == sorted(counts)
    assert set(counts) == {0, 4, 8, 11}


def test_a_flipped_byte_is_found_and_the_chunks_before_it_are_kept(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    counts = []
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])

        log = read_log(path)

        assert not log.complete, at
        assert log.problem is not None, at
        visits = log.rows("visits")
        assert visits == VISITS[: len(visits)]
        counts.append(len(visits))
    assert counts == sorted(counts)
    assert set(counts) == {0, 4, 8, 11}


def test_problems_say_where(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"

    for data, problem in [
        (b"", "not a log: begins with b'' instead of b'TESTBED1'"),
        (MAGIC, "no end marker: the node did not close its log"),
        (
            whole[:-1],
            f"cut short: the frame at byte {len(whole) - end_length(whole)} of {len(whole) - 1} is not whole",
        ),
    ]:
        path.write_bytes(data)
        assert read_log(path).problem == problem


def end_length(data: bytes) -> int:
    """Bytes of the last frame: the shortest tail that is a whole frame of an array beginning with 'end'."""
    return len(data) - data.rindex(b"\xa3end") + 1 + 8


def test_a_missing_chunk_is_noticed_at_the_end_marker(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    first = whole.index(b"\xa5chunk\xa6visits") - 1 - 8
    second = whole.index(b"\xa5chunk\xa6visits", first + 20) - 1 - 8
    path.write_bytes(whole[:first] + whole[second:])

    log = read_log(path)

    assert not log.complete
    assert log.problem == (
        "rows are missing: {'visits': 7, 'delivered': 3, 'applied': 2} of {'visits': 11, 'delivered': 3, 'applied': 2}"
    )


def test_rows_reach_the_file_by_chunks_and_no_later(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "a.log", HEADER, rows_per_chunk=4)
    for row in VISITS[:7]:
        writer.append("visits", row)

    assert read_log(tmp_path / "a.log").rows("visits") == VISITS[:4]


def test_full_tables_wait_to_be_written_up_to_a_bound(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "a.log", HEADER, rows_per_chunk=2, most_chunks=2)

    def on_disk() -> int:
        return len(read_log(tmp_path / "a.log").rows("visits"))

    found = []
    for row in VISITS[:3]:
        writer.append("visits", row)
        found.append((writer.full == [writer], on_disk()))
    writer.full.remove(writer)
    writer.write_full()
    found.append((writer.full == [writer], on_disk()))
    for row in VISITS[3:7]:
        writer.append("visits", row)
    found.append((writer.full == [writer], on_disk()))
    writer.close()

    assert found == [(False, 0), (True, 0), (True, 0), (False, 3), (True, 7)]
    assert read_log(tmp_path / "a.log").rows("visits") == VISITS[:7]


def test_a_log_that_cannot_be_made_says_so() -> None:
    with pytest.raises(RunError) as caught:
        LogWriter(Path("/dev/full/a.log"), HEADER)
    assert str(caught.value) == "could not make the log /dev/full/a.log: Not a directory"


def test_a_chunk_that_does_not_fit_on_the_disk_says_what_was_attempted(tmp_path: Path) -> None:
    """The place of the log is taken by a device that is always full."""
    path = tmp_path / "a.log"
    writer = LogWriter(path, HEADER, rows_per_chunk=4)
    path.unlink()
    path.symlink_to("/dev/full")

    for row in VISITS[:3]:
        writer.append("visits", row)
    with pytest.raises(RunError) as caught:
        writer.append("visits", VISITS[3])

    assert str(caught.value) == f"could not write 4 rows of visits to {path}: No space left on device"


def test_a_log_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path / "a.log")

    with pytest.raises(RunError, match=r"could not make the log .*File exists"):
        write(tmp_path / "a.log")


def test_a_log_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"could not read the log .*No such file"):
        read_log(tmp_path / "a.log")


def test_a_value_of_the_wrong_type_names_its_column(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "a.log", HEADER, rows_per_chunk=1)

    with pytest.raises(TypeError, match=r"late_replies\.attempt takes values of type int"):
        writer.append("late_replies", (1, 0.5, 2.0))


def test_text_of_many_words_is_numbered_across_chunks(tmp_path: Path) -> None:
    """The words of a later chunk come in another order and bring new ones."""
    writer = LogWriter(tmp_path / "a.log", HEADER, rows_per_chunk=2)
    nodes = ["b", "a", "a", "c", "c", "b", "d", "a"]
    for node in nodes:
        writer.append("applied", (0, node, False, 0.0, 0.0))
    writer.close()

    assert read_log(tmp_path / "a.log").tables["applied"]["node"] == nodes
