"""Message <-> bytes, both halves in one file: data between nodes, and the words of the control path.

A data frame is what one process sends to one peer in one pass: a msgpack array of sections, each
`[link number, tag, [release instant, ...], [message, ...]]` with messages of one kind, packed as arrays.
The tag stands once per section, so that a message is rebuilt from its array without copying. A control frame
is `[tag, field, ...]`. Instants are run time, except that of `Start`.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import msgpack

from testbed.errors import RunError
from testbed.roles.messages import (
    Cancel,
    Check,
    CheckReply,
    FirstToken,
    Message,
    Poll,
    Probe,
    ProbeReply,
    Reply,
    Report,
    Request,
)


class Hello(NamedTuple):
    """A process greets a peer on a new path. In all these words `node` is the name of a process."""

    node: str


class Ready(NamedTuple):
    """A process to the launcher: it is set up and receives at this endpoint."""

    node: str
    endpoint: str
    pid: int


class Directory(NamedTuple):
    """The launcher to a process: where its peers receive. In the middle of a run: where one that was started anew does."""

    endpoints: dict[str, str]


class Greeted(NamedTuple):
    """A process to the launcher: every peer has greeted it and heard it."""

    node: str


class Start(NamedTuple):
    """The launcher to all: run time 0 is this instant of the host's monotonic clock. A later life begins after it.

    Attributes:
        at_monotonic_s: that instant.
        born_at_s: run time at which the process is to begin.
        died_at_s: run time at which its last life ended.
        ordered: the faults ordered by hand so far, each as `ordered.Ordered`.
        told_at_s: run time of this word.
        lives: then, of each process: the life to which messages sent to it go.
    """

    at_monotonic_s: float
    born_at_s: float = 0.0
    died_at_s: float = 0.0
    ordered: tuple[tuple[int, float, float, dict[str, Any], int], ...] = ()
    told_at_s: float = 0.0
    lives: dict[str, int] = {}  # noqa: RUF012, a tuple has no other way to a default


class Beat(NamedTuple):
    """A process to the launcher, now and then: how it fares."""

    node: str
    at_s: float
    gauges: dict[str, tuple[int, int, int]]  # of each of its nodes: requests received, finished, in flight
    idle: bool  # nothing planned is still to come and nothing is open
    sent: int  # messages
    lateness_p99_s: float  # of releases since the last beat, wall time
    lateness_max_s: float


class Change(NamedTuple):
    """The launcher to a process: a fault that was ordered by hand sets in or heals, or is about to change links.

    The fields after `kind` are those of `ordered.Ordered`.
    """

    kind: str  # 'brace', 'apply' or 'heal'
    number: int
    at_s: float
    until_s: float
    words: dict[str, Any]
    first_id: int


class Changed(NamedTuple):
    """A process to the launcher: it has done so."""

    node: str
    kind: str
    number: int


class Stop(NamedTuple):
    """The launcher to all: the run ends at this instant."""

    at_s: float


class Ledger(NamedTuple):
    """A process to the launcher: the counts of its links, by number, since it was started."""

    node: str
    sent: dict[int, tuple[int, ...]]  # sent, and what `LinkCounts` has of them
    carried: dict[int, dict[int, int]]  # of these, left for each life of the process at the other end
    received: dict[int, tuple[int, int]]  # delivered to the role, still held


class Dying(NamedTuple):
    """A process to the launcher: a fault kills it now; what it sent and what it received follow, and then nothing."""

    node: str
    at_s: float


class Settle(NamedTuple):
    """The launcher to a process: how many messages of each link, by number, are to have reached it."""

    expected: dict[int, int]


class Closed(NamedTuple):
    """A process to the launcher: its logs are closed."""

    node: str


Control: TypeAlias = (
    Hello
    | Ready
    | Directory
    | Greeted
    | Start
    | Beat
    | Change
    | Stop
    | Ledger
    | Settle
    | Closed
    | Dying
    | Changed
)

# Every kind that crosses a socket. A tag is never given to another kind.
TAGS: dict[type, int] = {
    Request: 1,
    Reply: 2,
    Report: 3,
    Probe: 4,
    ProbeReply: 5,
    Cancel: 6,
    Poll: 7,
    FirstToken: 8,
    Check: 9,
    CheckReply: 10,
    Hello: 32,
    Ready: 33,
    Directory: 34,
    Greeted: 35,
    Start: 36,
    Beat: 37,
    Change: 38,
    Stop: 39,
    Ledger: 40,
    Settle: 41,
    Closed: 42,
    Dying: 43,
    Changed: 44,
}

_FIRST_CONTROL_TAG = 32
GREETING = bytes(
    (0x92, TAGS[Hello])
)  # how the frame of a Hello begins, and no data frame, whose sections are arrays
_DATA: dict[int, type[Any]] = {tag: kind for kind, tag in TAGS.items() if tag < _FIRST_CONTROL_TAG}
_CONTROL: dict[int, type[Any]] = {tag: kind for kind, tag in TAGS.items() if tag >= _FIRST_CONTROL_TAG}

_MOST_BYTES = 1 << 26  # 64 MiB, far above what a pass brings
# Arrays, maps and texts may claim no more items than the frame has bytes: the default of msgpack.
_UNPACKING: dict[str, Any] = {
    "use_list": False,
    "strict_map_key": False,  # the links of a ledger are numbers
    "max_bin_len": 0,
    "max_ext_len": 0,
}

Section: TypeAlias = tuple[int, type, list[float], list[Message]]  # link number, kind, releases, messages
Received: TypeAlias = tuple[int, list[float], list[Message]]  # link number, releases, messages


def pack_frame(sections: list[Section]) -> bytes:
    """The bytes of what goes to one peer in one pass; the messages of a section are all of its kind."""
    packed: bytes = _PACKER.pack(
        [(number, TAGS[kind], releases, messages) for number, kind, releases, messages in sections]
    )
    return packed


def unpack_frame(data: bytes) -> list[Received]:
    """The sections of a data frame.

    Raises:
        RunError: the bytes are no such frame; the text tells their number and what is wrong.
    """
    try:
        return [_unpack_section(*section) for section in _unpacked(data)]
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise _malformed("data", data, error) from error


def pack_control(message: Control) -> bytes:
    """The bytes of one control message."""
    packed: bytes = _PACKER.pack((TAGS[type(message)], *message))
    return packed


def unpack_control(data: bytes) -> Control:
    """The message of a control frame.

    Raises:
        RunError: as `unpack_frame`.
    """
    try:
        tag, *fields = _unpacked(data)
        kind = _kind(_CONTROL, tag)
        _check_widths(kind, {len(fields)})
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise _malformed("control", data, error) from error
    message: Control = kind(*fields)
    return message


_PACKER = msgpack.Packer(autoreset=True)
_new = tuple.__new__


def _unpacked(data: bytes) -> Any:
    if len(data) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    return msgpack.unpackb(data, **_UNPACKING)


def _unpack_section(number: int, tag: int, releases: Any, messages: Any) -> Received:
    kind = _kind(_DATA, tag)
    if len(releases) != len(messages):
        raise ValueError(f"{len(releases)} releases for {len(messages)} messages of link {number}")
    if not set(map(type, messages)) <= {tuple}:
        raise ValueError(f"a message of link {number} is no array")
    if messages:
        _check_widths(kind, set(map(len, messages)))
    # NamedTuples straight from their arrays: more than twice as fast as calling the class.
    return number, list(releases), list(map(_new, repeat(kind), messages))


def _kind(kinds: dict[int, type[Any]], tag: Any) -> type[Any]:
    if tag not in kinds:
        raise ValueError(f"unknown tag {tag!r}")
    return kinds[tag]


def _check_widths(kind: type[Any], widths: set[int]) -> None:
    due = len(kind._fields)
    if widths != {due}:
        raise ValueError(f"{kind.__name__} with {max(widths - {due})} fields instead of {due}")


def _malformed(path: str, data: bytes, error: Exception) -> RunError:
    return RunError(f"malformed {path} frame of {len(data)} bytes: {str(error) or type(error).__name__}")
