"""How a message names what is accepted: the nearest spelling, and lists that stay readable."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from testbed.scenario.yaml_tree import shortened

_LISTED = 40  # names; a longer list hides what it should show


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """The known word that is spelt most like this one; None if none comes near."""
    close = get_close_matches(word[:80], list(known), n=1)
    return close[0] if close else None


def nearest(word: str, known: Iterable[str]) -> str:
    """' (delay?)' for 'dealy' if that is known; nothing if no known word comes near."""
    found = nearest_word(word, known)
    return "" if found is None else f" ({shortened(found)}?)"


def listed(names: Iterable[str]) -> str:
    """The names with commas between them; the end of a very long list is only counted."""
    shown = [shortened(name) for name in names]
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return ", ".join(shown[:_LISTED]) + more
