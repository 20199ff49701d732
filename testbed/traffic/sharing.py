"""What the prompts of requests share, as flat arrays: the session of each, and the chain of segments it begins with.

A chain is written (key, tokens, key, tokens, ...), see `serving.prefix_cache`. The chains of all requests lie one
behind the other in `pairs`; those of request i are `pairs[starts[i]:starts[i + 1]]`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.draw import key_base

Whole = NDArray[np.int64]
_LOW_BITS = 32  # of a key: the number within its space


class RootSharing(NamedTuple):
    """What the prompts of one root's requests share: plain arrays, fast to index, without numpy."""

    session: array[int]
    starts: array[int]
    pairs: array[int]

    def shared(self, position: int) -> tuple[int, ...] | None:
        """Session and chain of the request at this position of the root's plan, as `Request` has them."""
        session, chain = self.session[position], self.chain(position)
        return (session, *chain) if session or chain else None

    def chain(self, position: int) -> tuple[int, ...]:
        """The chain of the request at this position of the root's plan."""
        return tuple(self.pairs[self.starts[position] : self.starts[position + 1]])


@dataclass(frozen=True)
class Sharing:
    """What the prompts of some requests share.

    Attributes:
        session: shape (requests,); 0 where a request belongs to none.
        starts: shape (requests + 1,), rising from 0.
        pairs: keys and tokens in turn; shape (starts[-1],).
    """

    session: Whole
    starts: Whole
    pairs: Whole

    def __bool__(self) -> bool:
        """Whether anything is shared."""
        return len(self.pairs) > 0

    def taken(self, rows: NDArray[np.integer]) -> Sharing:
        """The requests at these positions, in this order."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.starts[:-1][rows] - starts[:-1], lengths)
        return Sharing(self.session[rows], starts, self.pairs[moved + np.arange(starts[-1])])

    def first_keys(self) -> Whole:
        """The key of each request's first segment; 0 where it has none."""
        padded = np.append(self.pairs, 0)
        return np.where(np.diff(self.starts) > 0, padded[self.starts[:-1]], 0)

    def of_root(self, rows: NDArray[np.integer]) -> RootSharing:
        """The requests at these positions, for the root that sends them."""
        mine = self.taken(rows)
        return RootSharing(*(array("q", each.tobytes()) for each in (mine.session, mine.starts, mine.pairs)))


def nothing_shared(count: int) -> Sharing:
    """So many requests that share nothing."""
    return Sharing(np.zeros(count, np.int64), np.zeros(count + 1, np.int64), np.empty(0, np.int64))


def joined_sharing(parts: Sequence[Sharing]) -> Sharing:
    """The requests of all parts, one part behind the other."""
    whole = nothing_shared(0)
    if not parts:
        return whole
    offsets = np.cumsum([0, *(part.starts[-1] for part in parts)])
    starts = [part.starts[1:] + offset for part, offset in zip(parts, offsets, strict=False)]
    return Sharing(
        np.concatenate([part.session for part in parts]),
        np.concatenate([[0], *starts]),
        np.concatenate([part.pairs for part in parts]),
    )


def key_space(seed: int, *names: str) -> int:
    """The first of 2^32 keys that belong to a name alone; a number below 2^32 is added to it.

    The upper half of a key stands for the name, as a hash of 30 bits, the lower half is the number, so that a key in
    the records can still be read. No key is 0.
    """
    return (1 << 62) | (key_base(seed, *names) >> 34 << _LOW_BITS)
