"""Every draw has a name: streams and single draws that hang on a seed and names alone.

A stream is the same in every process, engine and interpreter (`hash()` is not). A single draw is keyed by an
identity, so that it depends neither on timing nor on how many draws came before it.
"""

from __future__ import annotations

import random
from hashlib import blake2b

_MASK = (1 << 64) - 1
_TO_UNIT = 2.0**-53


def stream(seed: int, *names: str) -> random.Random:
    """The stream of this name."""
    return random.Random(key_base(seed, *names))


def key_base(seed: int, *names: str) -> int:
    """64 bits that stand for a seed and a name."""
    text = ":".join((str(seed), *names))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def uniform(base: int, identity: int, attempt: int = 0, salt: int = 0) -> float:
    """A uniform draw in (0, 1), never 0 nor 1, keyed by (base, identity, attempt, salt).

    Source: the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), applied to a combination of the
    keys by odd multipliers.
    """
    z = (
        base + identity * 0x9E3779B97F4A7C15 + attempt * 0xD1B54A32D192ED03 + salt * 0x8CB92BA72F3D8DD7
    ) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((z ^ (z >> 31)) >> 11) + 0.5) * _TO_UNIT
