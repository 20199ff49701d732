"""Behind links that duplicate, a role takes a request, a reply or a probe once, and hears every report."""

from __future__ import annotations

from types import SimpleNamespace

from testbed.roles.messages import Message, Probe, Reply, Report, Request, Setting
from testbed.roles.once import Once, taken_once
from testbed.scenario.load import scenario_from_text
from tests.runtime.fake_sockets import TEXT


class Listener(SimpleNamespace):
    """A role that keeps what it was handed."""

    def __init__(self) -> None:
        nothing = lambda *_: None
        super().__init__(
            start=nothing, on_timer=nothing, stop=nothing, is_idle=nothing, gauges=nothing, heard=[]
        )

    def on_message(self, source: str, message: Message | Setting) -> None:
        self.heard.append((source, message))


REQUEST, REPLY, PROBE = Request(7, 0, 0, 1, 1), Reply(7, 0, 0, 0.1, 0, 1), Probe(7, 0)
REPORT = Report(7, 0, 0.5, 0, 0, (0,), 0, 0, 0, 0.0, 1.0, 0.0, 0.0, 0.0)


def test_a_copy_is_dropped_and_what_only_looks_like_one_is_not() -> None:
    role = Listener()
    once = Once(role)
    said = [
        ("root.a", REQUEST), ("root.a", REQUEST),
        ("root.b", REQUEST),  # another sender
        ("root.a", REQUEST._replace(attempt=1)),  # sent again
        ("root.a", REPLY), ("root.a", PROBE), ("root.a", PROBE),
    ]  # fmt: skip

    for source, message in said:
        once.on_message(source, message)

    assert role.heard == [said[0], said[2], said[3], said[4], said[5]]


def test_reports_and_settings_always_pass() -> None:
    role = Listener()
    once = Once(role)

    for message in (REPORT, REPORT, Setting("speed", 0.5), Setting("speed", 0.5)):
        once.on_message("us/leaf-1", message)

    assert len(role.heard) == 4


def test_a_role_stands_behind_it_only_where_some_link_may_duplicate() -> None:
    role = Listener()
    line = "faults: [{at: 0.1 s, link: {from: root.*, to: cell.*}, set: {duplicate: 1 %}}]\n"
    calm, fault = (scenario_from_text(text).arms["main"] for text in (TEXT, TEXT + line))

    assert taken_once(role, calm) is role
    assert isinstance(taken_once(role, fault), Once)
