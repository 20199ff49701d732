"""What is packed comes out as it went in, and nothing else comes out at all."""

from __future__ import annotations

import math
from typing import Any, get_args

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import RunError
from testbed.roles.messages import PATH_OF, Message, Outcome, Probe, ProbeReply, Reply, Report, Request
from testbed.runtime import wire
from testbed.runtime.wire import TAGS, pack_control, pack_frame, unpack_control, unpack_frame

REPORT = Report(7, 0, 1.25, 3, 4, (5, 2), 600, 70, 1000, 0.125, 0.75, 0.001, 0.0002, 0.05, 3.5)
CONTROL: list[wire.Control] = [
    wire.Hello("us/leaf-1"),
    wire.Ready("us/leaf-1", "ipc://a", 4242),
    wire.Directory({"us/leaf-1": "ipc://a", "root.west": "ipc://b"}),
    wire.Greeted("root.west"),
    wire.Start(12345.678901234567),
    wire.Beat("root.west", 3.5, {"root.west": (100, 90, 10)}, False, 400, 0.0001, 0.002),
    wire.Change("apply", 2, 1.5, math.inf, {"at": "0.0 s", "root": "west", "set": {"pause": True}}, 0),
    wire.Changed("root.west", "apply", 2),
    wire.Stop(20.0),
    wire.Ledger("us/leaf-1", {0: (100, 1), 5: (20, 0)}, {0: {0: 60, 1: 39}}, {3: (99, 2)}),
    wire.Dying("us/leaf-1", 2.5),
    wire.Settle({3: 101}),
    wire.Closed("us/server-2"),
]


def test_a_frame_of_several_links_and_kinds_comes_back() -> None:
    requests: list[Message] = [
        Request(0, 0, 1, 48, 8),
        Request(1, 0, 1, 48, 8),
        Request(2, 0, 1, 48, 8, shared=(1 << 62, 1 << 62, 40, (1 << 63) - 1, 8)),
    ]
    sections: list[wire.Section] = [
        (4, Request, [0.1, 0.2, 0.3], requests),
        (9, Report, [0.5], [REPORT]),
        (4, Probe, [0.4], [Probe(1, 0)]),
        (11, ProbeReply, [0.6], [ProbeReply(1, 0, 5, 0.25, 0.3)]),
        (0, Reply, [], []),
    ]

    received = unpack_frame(pack_frame(sections))

    assert received == [(number, releases, messages) for number, _, releases, messages in sections]
    assert [[type(message) for message in messages] for _, _, messages in received] == [
        [kind] * len(messages) for _, kind, _, messages in sections
    ]


def test_releases_come_back_as_a_list_that_a_delay_line_may_keep() -> None:
    """A tuple would never equal its sorted list, and every section would be sorted again."""
    (section,) = unpack_frame(pack_frame([(1, Probe, [0.25], [Probe(1, 0)])]))

    assert type(section[1]) is list
    assert type(section[2]) is list


def test_an_outcome_and_not_a_number_survive() -> None:
    reply = Reply(1, 0, Outcome.SHED, math.nan, 0, 0)

    ((_, _, messages),) = unpack_frame(pack_frame([(1, Reply, [0.0], [reply])]))

    assert messages[0][2] == Outcome.SHED
    assert math.isnan(messages[0][3])


ids = st.integers(min_value=0, max_value=2**62)
messages = st.builds(
    Request,
    ids,
    st.integers(0, 9),
    st.integers(0, 5),
    ids,
    ids,
    st.none() | st.lists(ids, max_size=6).map(tuple),
)


@given(st.lists(st.tuples(st.floats(allow_nan=False), messages), max_size=20))
def test_instants_and_numbers_come_back_to_the_bit(pairs: list[tuple[float, Request]]) -> None:
    releases = [release_at_s for release_at_s, _ in pairs]
    sent: list[Message] = [message for _, message in pairs]

    assert unpack_frame(pack_frame([(2, Request, releases, sent)])) == [(2, releases, sent)]


@pytest.mark.parametrize("message", CONTROL, ids=lambda message: type(message).__name__)
def test_control_messages_come_back(message: wire.Control) -> None:
    received = unpack_control(pack_control(message))

    assert received == message
    assert type(received) is type(message)


def test_every_kind_that_crosses_a_socket_has_a_tag_of_its_own() -> None:
    control = set(get_args(wire.Control))

    assert set(TAGS) == set(PATH_OF) | control
    assert len(set(TAGS.values())) == len(TAGS)
    assert {type(message) for message in CONTROL} == control


def array(*fields: Any) -> bytes:
    packed: bytes = msgpack.packb(fields)
    return packed


PROBE = [1, 0]
MALFORMED_DATA = [
    (b"", "Unpack failed: incomplete input"),
    (b"\xc1", "FormatError"),
    (array([1, 99, [0.0], [PROBE]]), "unknown tag 99"),
    (
        array([1, 4, [0.0, 1.0], [PROBE]]),
        "2 releases for 1 messages of link 1",
    ),
    (array([1, 4, [0.0], [[1]]]), "Probe with 1 fields instead of 2"),
    (array([1, 4, [0.0], [[1, 0, 0]]]), "Probe with 3 fields instead of 2"),
    (array([1, 4, [0.0], ["ab"]]), "a message of link 1 is no array"),
    (array([1, TAGS[wire.Stop], [0.0], [[1.0]]]), "unknown tag 39"),
    (
        array([1, 4, [0.0], [PROBE]]) + b"\x00",
        "unpack(b) received extra data.",
    ),
]


@pytest.mark.parametrize(("data", "fault"), MALFORMED_DATA, ids=range(len(MALFORMED_DATA)))
def test_a_malformed_data_frame_is_told_with_its_size_and_fault(data: bytes, fault: str) -> None:
    with pytest.raises(RunError) as caught:
        unpack_frame(data)

    assert str(caught.value) == f"malformed data frame of {len(data)} bytes: {fault}"


MALFORMED_CONTROL = [
    (array(TAGS[Request], 1, 0, 0, 1, 1), "unknown tag 1"),
    (array(TAGS[wire.Stop]), "Stop with 0 fields instead of 1"),
    (array([]), "unknown tag ()"),
]


@pytest.mark.parametrize(("data", "fault"), MALFORMED_CONTROL, ids=range(len(MALFORMED_CONTROL)))
def test_a_malformed_control_frame_is_told_with_its_size_and_fault(data: bytes, fault: str) -> None:
    with pytest.raises(RunError) as caught:
        unpack_control(data)

    assert str(caught.value) == f"malformed control frame of {len(data)} bytes: {fault}"


def test_a_frame_cut_short_anywhere_is_refused() -> None:
    data = pack_frame([(4, Request, [0.5], [Request(1, 0, 0, 48, 8)]), (9, Report, [0.5], [REPORT])])

    for length in range(len(data)):
        with pytest.raises(RunError, match=f"malformed data frame of {length} bytes"):
            unpack_frame(data[:length])


@given(st.binary(max_size=60))
def test_noise_is_refused_and_never_crashes(data: bytes) -> None:
    refusals = []
    for unpack in (unpack_frame, unpack_control):
        try:
            unpack(data)
        except RunError as error:
            refusals.append(str(error))

    assert all(f"of {len(data)} bytes" in refusal for refusal in refusals)


def test_a_frame_may_not_claim_more_than_it_holds() -> None:
    """A claim of four thousand million items must not reserve their memory."""
    with pytest.raises(RunError, match="exceeds max_array_len"):
        unpack_frame(b"\xdd\xff\xff\xff\xff")


def test_a_frame_beyond_the_bound_is_refused() -> None:
    with pytest.raises(RunError, match="frame of 67108865 bytes: more than 67108864 bytes"):
        unpack_frame(bytes(2**26 + 1))
