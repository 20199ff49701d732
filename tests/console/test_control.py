"""The words of `testbed control`, as they reach a run that goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
import zmq

from testbed.console.control import order
from testbed.errors import UsageError
from testbed.record.run_folder import ArmFolder
from testbed.runtime.by_hand import NOT_BY_HAND
from testbed.runtime.hand import HandServer
from testbed.scenario.fault_words import LINK_KEYS, FaultLine, Setting
from tests.laws.test_node_faults import words

# Every key of a link that can be ordered, in the words of the command line, and the same in a scenario's.
LINK_ORDERS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("delay=2s",), {"delay": "2 s"}),
    (("jitter={normal: 2 ms}", "correlation=0"), {"jitter": {"normal": "2 ms"}, "correlation": 0.0}),
    (("loss=10 %", "loss_burst=5"), {"loss": "10 %", "loss_burst": 5.0}),
    (("reorder={fraction: 10 %, late: 30 ms}",), {"reorder": {"fraction": "10 %", "late": "30 ms"}}),
    (("rate=100 /s", "queue=5"), {"rate": "100 /s", "queue": 5}),
    (("bandwidth=1 Mbit/s", "queue=0"), {"bandwidth": "1 Mbit/s", "queue": 0}),
    (("flap={period: 1 s, down: 50 %}",), {"flap": {"period": "1 s", "down": "50 %"}}),
    (("order=kept",), {"order": "kept"}),
    (("cut=true",), {"cut": True}),
)


@contextmanager
def a_run(
    path: Path, given: dict[str, Any] | None = None
) -> Iterator[tuple[ArmFolder, list[dict[str, Any]]]]:
    """The folder of a run that does whatever it is asked, and the questions that it got."""
    folder = ArmFolder(path)
    folder.scenario.write_text(yaml.safe_dump(given or words()))
    asked: list[dict[str, Any]] = []
    is_over = threading.Event()
    with zmq.Context() as context:
        hand = HandServer(context, folder, path)

        def answer_all() -> None:
            while not is_over.is_set():
                hand.socket.poll(10)
                while (question := hand.receive()) is not None:
                    asked.append(question[1])
                    hand.answer(question[0], True, ["done"])

        thread = threading.Thread(target=answer_all)
        thread.start()
        try:
            yield folder, asked
        finally:
            is_over.set()
            thread.join()
            hand.close()


@pytest.mark.parametrize(("keys", "meant"), LINK_ORDERS)
def test_every_key_of_a_link_can_be_ordered_by_hand(
    tmp_path: Path, keys: tuple[str, ...], meant: dict[str, Any]
) -> None:
    """Whole numbers too: a queue is one, a correlation need not be."""
    target = {"from": "cell.a", "to": "root.*"}

    with a_run(tmp_path) as (folder, asked):
        done, _ = order(folder.path, "set", keys, dict(target), None)

    assert done
    line = FaultLine.model_validate({**asked[0]["line"], "at": "0 s"})
    assert line.setting == Setting.model_validate(meant)


def test_the_orders_of_links_above_leave_no_key_out() -> None:
    """A further key of links is to be tried by hand too."""
    assert {key for _, meant in LINK_ORDERS for key in meant} == LINK_KEYS - NOT_BY_HAND


@pytest.mark.parametrize(
    ("line", "keys", "said"),
    [
        ({}, ("dealy=2s",), "set.dealy: unknown key (delay?); accepted: "),
        (
            {"order": "kept"},
            ("reorder={fraction: 10 %}",),
            "set.reorder: has no effect beside links[1].order, which is kept; accepted: order: free",
        ),
        (
            {"reorder": {"fraction": "10 %"}},
            ("order=kept",),
            "links[1].reorder: has no effect beside set.order, which is kept; accepted: order: free",
        ),
    ],
)
def test_what_is_wrong_with_an_order_is_told_without_its_place_in_a_scenario(
    tmp_path: Path, line: dict[str, Any], keys: tuple[str, ...], said: str
) -> None:
    """Also where a line of the scenario is to blame with it."""
    given = words()
    given["links"].append({"from": "cell.a", "to": "root.*", **line})

    with a_run(tmp_path, given) as (folder, asked), pytest.raises(UsageError) as raised:
        order(folder.path, "set", keys, {"from": "cell.a", "to": "root.*"}, None)

    assert str(raised.value).startswith(f"control: {said}")
    assert asked == []


@pytest.mark.parametrize(
    ("action", "keys", "target", "meant"),
    [
        ("speed", ("2",), {"server": "a/server-1"}, {"speed": 2.0}),
        ("set", ("gauge_offset=-3",), {"cell": "a"}, {"gauge_offset": -3.0}),
        ("set", ("burst=500",), {"root": "west"}, {"burst": 500}),
    ],
)
def test_whole_numbers_reach_the_keys_of_nodes(
    tmp_path: Path, action: str, keys: tuple[str, ...], target: dict[str, str | None], meant: dict[str, Any]
) -> None:
    """A factor, an offset, and a number of requests."""
    with a_run(tmp_path) as (folder, asked):
        done, _ = order(folder.path, action, keys, target, None)

    assert done
    line = FaultLine.model_validate({**asked[0]["line"], "at": "0 s"})
    assert line.setting == Setting.model_validate(meant)
