"""What faults make of the news that a node gives of itself: frozen, silent, biased, or stamped by a wrong clock.

The node goes on measuring and stamping; this stands between what it knows and what it tells. Gauges are what balancers
read: requests queued and running, by class, and tokens outstanding. A frozen node repeats its last news under fresh
stamps. A clock that is off touches only what the node claims: all news carries its clock's error for the records.
"""

from __future__ import annotations

from testbed.roles.messages import ProbeReply, Report

_FROZEN, _SILENT = 1.0, 2.0  # of key `telemetry`; 0: as it should be


class Telemetry:
    """The news of one node, as its faults have it."""

    __slots__ = ("_drift_from_s", "_last", "_last_reply", "_set", "is_plain")

    def __init__(self) -> None:
        """Nothing is wrong."""
        self._set = {
            "telemetry": 0.0,
            "gauge_factor": 1.0,
            "gauge_offset": 0.0,
            "clock_skew": 0.0,
            "clock_drift": 0.0,
        }
        self._drift_from_s = 0.0
        self._last: Report | None = None
        self._last_reply: ProbeReply | None = None
        self.is_plain = True

    def take(self, key: str, value: float, now_s: float) -> bool:
        """A fault sets a key or heals it; False: the key is not one of these."""
        if key not in self._set:
            return False
        self._set[key] = value
        if key == "clock_drift":
            self._drift_from_s = now_s
        self.is_plain = (
            not any(self._set[each] for each in ("telemetry", "gauge_offset", "clock_skew", "clock_drift"))
            and self._set["gauge_factor"] == 1.0
        )
        return True

    def report(self, report: Report) -> Report | None:
        """What the node reports in place of this; None: nothing."""
        told = self._set["telemetry"]
        if told == _FROZEN and self._last is not None:
            last = self._last._replace(sequence=report.sequence, measured_at_s=report.measured_at_s)
        else:
            self._last = last = report
        if self.is_plain:
            return report
        return None if told == _SILENT else self._stamped(self._biased(last))

    def reply(self, reply: ProbeReply) -> ProbeReply | None:
        """What the node answers a probe in place of this; None: nothing."""
        told = self._set["telemetry"]
        if told == _FROZEN and self._last_reply is not None:
            last = self._last_reply._replace(probe_id=reply.probe_id, measured_at_s=reply.measured_at_s)
        else:
            self._last_reply = last = reply
        if self.is_plain:
            return reply
        if told == _SILENT:
            return None
        error_s = self._error_s(last.measured_at_s)
        return last._replace(
            in_flight=self._gauge(last.in_flight, self._set["gauge_offset"]),
            measured_at_s=last.measured_at_s + error_s,
            clock_error_s=error_s,
        )

    def _biased(self, report: Report) -> Report:
        if self._set["gauge_factor"] == 1.0 and not self._set["gauge_offset"]:
            return report
        return report._replace(
            queued=self._gauge(report.queued),
            running=self._gauge(report.running, self._set["gauge_offset"]),
            by_class=tuple(map(self._gauge, report.by_class)),
            prompt_tokens=self._gauge(report.prompt_tokens),
            output_tokens=self._gauge(report.output_tokens),
        )

    def _gauge(self, true: int, offset: float = 0.0) -> int:
        return max(0, round(self._set["gauge_factor"] * true + offset))

    def _stamped(self, report: Report) -> Report:
        error_s = self._error_s(report.measured_at_s)
        return report._replace(measured_at_s=report.measured_at_s + error_s, clock_error_s=error_s)

    def _error_s(self, at_s: float) -> float:
        """What the node's clock shows less the true time."""
        return self._set["clock_skew"] + self._set["clock_drift"] * (at_s - self._drift_from_s)
