"""Whether a scenario fits: what its live run needs, held against the machine and, where that was measured, its speed."""

from __future__ import annotations

from typing import NamedTuple

from testbed.analysis.limits import STALL_FLOOR, SUSPECT_FRACTION
from testbed.fitness.check import Check, held_against
from testbed.fitness.footprint import Footprint
from testbed.fitness.request_cost import RequestCost
from testbed.host.machine import Machine
from testbed.runtime.sockets import PATH_BYTES
from testbed.scenario.quantity import format_s

SPARE_DESCRIPTORS = 64  # of a process, besides those of its peers
DESCRIPTORS_PER_PEER = 3
SPARE_SOCKETS = 8
SOCKET_CAP = 65_535  # of a ZeroMQ context, whose default of 1,023 is raised to what a run needs
# what follows the folder for temporary files, but for the node: a folder as mkdtemp names it, the number of a life, the ending
PATH_REST = len("/testbed-12345678/.99.ipc")
REPORT_CPU_S = 60e-6  # of both ends, while wake-ups are not shared
IDLE_CPU = 0.005  # of a core, of a process that waits
COMFORTABLE = (
    0.7  # of the cores, and of the rate that they carry: beyond it queues of runnable processes build up
)


class Speed(NamedTuple):
    """What was measured of the machine.

    Attributes:
        cost: processor time of a request through root, leaf, server and back.
        lateness_p99_s: the largest of what was tried: a link of 20 ms, a hop without delay, a timer.
        longest_s: the largest lateness seen of these.
    """

    cost: RequestCost
    lateness_p99_s: float
    longest_s: float


def cores_of_reports(needs: Footprint) -> float:
    """Cores that the reports of a scenario keep busy."""
    return needs.reports_per_s * REPORT_CPU_S


def cheap_checks(needs: Footprint, machine: Machine) -> list[Check]:
    """What can be said without measuring."""
    path = len(str(machine.temporary).encode()) + PATH_REST + needs.longest_name
    sockets = [
        held_against(
            "ipc path",
            PATH_BYTES,
            path,
            "bytes",
            "set TMPDIR to a shorter folder, or live: {transport: tcp}",
        )
    ]
    return [
        held_against(
            "busy processes",
            machine.cores.usable,
            len(needs.busy),
            "at a time",
            "they will wait for each other: raise time_scale, lower the rates, or group nodes with processes:",
        )._replace(word="fits" if len(needs.busy) <= machine.cores.usable else "warning"),
        held_against(
            "memory",
            machine.memory_bytes / 1e6,
            needs.memory_bytes / 1e6,
            "MB",
            "group nodes with processes:, or a shorter duration",
            comfortable=COMFORTABLE,
        ),
        held_against(
            "processes",
            machine.processes,
            needs.processes,
            "",
            "group nodes with processes:, or raise ulimit -u",
        ),
        held_against(
            "open files of a process",
            machine.descriptors,
            DESCRIPTORS_PER_PEER * needs.most_peers + SPARE_DESCRIPTORS,
            "",
            "raise ulimit -Hn, or group nodes with processes:",
        ),
        held_against(
            "sockets of a process",
            SOCKET_CAP,
            needs.most_peers + SPARE_SOCKETS,
            "",
            "group nodes with processes:",
        ),
        *(sockets if needs.transport == "ipc" else []),
        held_against(
            "disk",
            machine.disk_bytes / 1e6,
            needs.disk_bytes / 1e6,
            "MB",
            "free some, or --out on another disk",
            comfortable=COMFORTABLE,
        ),
    ]


def speed_checks(needs: Footprint, machine: Machine, speed: Speed) -> list[Check]:
    """What the measured speed has to say."""
    return [
        *_capacity(needs, machine.cores.usable, speed.cost),
        _stall(needs, speed),
        _lateness(needs, speed),
    ]


def warnings(checks: list[Check]) -> list[str]:
    """Those that do not fit, or only just, in words."""
    return [
        f"{each.name}: {each.has}{f', {each.needs} needed' if each.needs else ''}: {each.advice}"
        for each in checks
        if each.word in ("warning", "does not fit")
    ]


def _capacity(needs: Footprint, usable: float, cost: RequestCost) -> list[Check]:
    """Cores and requests: a rate above those that were measured does not fit only where it cannot by any account."""
    rate = needs.requests_per_s
    besides = cores_of_reports(needs) + needs.processes * IDLE_CPU
    cores, carried = cost.cores(rate) + besides, cost.rate_per_s(usable)
    least = cost.least_cores(rate)
    advice = "raise time_scale, or lower the rates"
    checks = (
        (
            held_against("cores in use", usable, cores, "cores", advice, comfortable=COMFORTABLE),
            least + besides,
        ),
        (held_against("requests", carried, rate, "/s", advice, comfortable=COMFORTABLE), least),
    )
    return [
        check._replace(word="warning") if check.word == "does not fit" and needed <= usable else check
        for check, needed in checks
    ]


def _stall(needs: Footprint, speed: Speed) -> Check:
    """The longest that anything had to wait, against the least limit of a stall: that of long loop delays is larger."""
    comfortable_s = SUSPECT_FRACTION * STALL_FLOOR.at(needs.time_scale)
    is_long = speed.longest_s > comfortable_s
    return Check(
        "longest wait",
        format_s(speed.longest_s),
        f"below {format_s(comfortable_s)}",
        "warning" if is_long else "fits",
        "a run may be suspect for a stall: raise time_scale, or an idle host" if is_long else "",
    )


def _lateness(needs: Footprint, speed: Speed) -> Check:
    """The p99 of what was tried against what the verdict allows, and against the smallest delay of a link."""
    late_s = speed.lateness_p99_s
    is_beyond, is_close = (
        late_s > needs.limit_s,
        late_s > min(SUSPECT_FRACTION * needs.limit_s, needs.smallest_delay_s),
    )
    return Check(
        "lateness p99 of a link",
        format_s(late_s),
        f"below {format_s(needs.limit_s)}",
        "does not fit" if is_beyond else "warning" if is_close else "fits",
        f"a run would be {'invalid' if is_beyond else 'suspect'}: longer delays by time_scale, or an idle host"
        if is_close or is_beyond
        else "",
    )
