"""What a fault sets, in words for people: 'speed 0.4', 'delay 2 s, loss 1 %'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testbed.scenario.fault_words import Setting, Shift
from testbed.scenario.link_words import JITTERS, Flap, Jitter, Reorder, Replay
from testbed.scenario.quantity import format_s
from testbed.scenario.relative import Relative


def setting_text(words: Setting) -> str:
    """All that is set, key by key, in the order of the keys of a server, a link, the load."""
    return ", ".join(
        f"{key} {_text(key, getattr(words, key))}"
        for key in sorted(words.given, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))
    )


_FIRST = ("kill", "pause", "drain", "absent", "speed", "delay", "jitter", "loss", "order")


def _text(key: str, value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case Relative():
            return (
                f"x{value.times:g}"
                if value.times != 1.0
                else f"{'+' if value.plus_s >= 0 else ''}{format_s(value.plus_s)}"
            )
        case Jitter():
            return _jitter(value)
        case Reorder():
            how = "ahead" if value.late is None else "late"
            by_s = value.ahead if value.late is None else value.late
            return f"{_percent(value.fraction)} {how}{'' if by_s is None else f' by {format_s(by_s)}'}"
        case Flap():
            return f"{_percent(value.down)} of every {format_s(value.period)} down"
        case Replay():
            return value.path
        case Shift():
            return f"of {_percent(value.share)} to {value.to}"
        case float() if key in _NUMBERS:
            return _NUMBERS[key](value)
        case float():
            return f"{value:g}"
    return str(value)


def _percent(fraction: float) -> str:
    return f"{fraction * 100:g} %"


def _jitter(jitter: Jitter) -> str:
    if jitter.table is not None:
        return f"table of {len(jitter.table)} from {format_s(min(jitter.table))} to {format_s(max(jitter.table))}"
    name, spread_s = next((name, value) for name in JITTERS if (value := getattr(jitter, name)) is not None)
    return f"{name} {format_s(spread_s)}"


_NUMBERS: dict[str, Callable[[float], str]] = {
    "delay": format_s,
    "loss": _percent,
    "duplicate": _percent,
    "rate": lambda value: f"{value:g} /s",
    "bandwidth": lambda value: f"{value:g} B/s",
    "errors": _percent,
    "error_after": format_s,
    "prefill": lambda value: f"x{value:g}",
    "clock_skew": lambda value: f"{'+' if value >= 0 else ''}{format_s(value)}",
    "clock_drift": _percent,
    "leak": _percent,
    "demand": lambda value: f"x{value:g}",
    "prompt_tokens": lambda value: f"x{value:g}",
    "output_tokens": lambda value: f"x{value:g}",
}
