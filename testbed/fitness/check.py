"""A line of what was checked: what there is, what is needed, the word for it, and what to try."""

from __future__ import annotations

from typing import NamedTuple

WORDS = ("fits", "unknown", "warning", "does not fit")  # the graver the later


class Check(NamedTuple):
    """One thing.

    Attributes:
        name: of it.
        has: what the machine has, with its unit.
        needs: what is needed; empty where nothing in particular is.
        word: one of `WORDS`.
        advice: what it means and what to try; empty where it fits.
    """

    name: str
    has: str
    needs: str = ""
    word: str = "fits"
    advice: str = ""


def held_against(
    name: str, has: float, needs: float, unit: str, advice: str, *, comfortable: float = 1.0
) -> Check:
    """Whether there is as much as is needed.

    Args:
        name: of it.
        has: the amount that there is; infinite: any.
        needs: the amount that is needed.
        unit: of both.
        advice: where it does not fit.
        comfortable: the share of what there is beyond which it is close.
    """
    word = "does not fit" if needs > has else "warning" if needs > comfortable * has else "fits"
    said = "" if word == "fits" else advice
    return Check(name, _amount(has, unit), _amount(needs, unit), word, said)


def _amount(value: float, unit: str) -> str:
    if value == float("inf"):
        return "no limit"
    return (
        f"{value:,.0f} {unit}".rstrip()
        if value >= 100 or value == int(value)
        else f"{value:.3g} {unit}".rstrip()
    )
