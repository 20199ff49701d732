"""A prefix cache: the beginnings of prompts whose keys and values are still held, the least recently used going first.

The beginning of a prompt is a chain of segments, written flat as (key, tokens, key, tokens, ...): a system prompt and
then a conversation, or the blocks of a trace. Whoever has the same key at a segment has the same tokens up to there,
and of two segments with one key the shorter is a beginning of the longer. So a cache needs to know of each key only
how many of its tokens it holds, and a prompt finds its tokens up to the first segment that is not held whole.

Eviction is by the token, from the end of the segment least recently used. A chain is touched from its tail to its
head: a head is used at least as recently as every tail behind it, and so never goes before them.

Sources: Kwon et al., PagedAttention (SOSP 2023), section 4.4; automatic prefix caching of vLLM, which frees blocks
in this order; Zheng et al., SGLang (RadixAttention, 2023), whose tree evicts leaves first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

Chain: TypeAlias = tuple[int, ...]  # key, tokens, key, tokens, ...


class PrefixCache:
    """Segments by key, in order of use.

    Attributes:
        tokens: held in all; never more than the capacity.
    """

    __slots__ = ("_capacity_tokens", "_held", "tokens")

    def __init__(self, capacity_tokens: int) -> None:
        """An empty cache of so many tokens."""
        assert capacity_tokens > 0, f"a cache of {capacity_tokens} tokens"
        self._capacity_tokens = capacity_tokens
        self._held: OrderedDict[int, tuple[int, float]] = OrderedDict()  # key -> tokens, last use
        self.tokens = 0

    def match(self, chain: Chain) -> int:
        """How many tokens from the start of this chain are held; changes nothing."""
        held = self._held
        found = 0
        for i in range(0, len(chain), 2):
            due = chain[i + 1]
            there = held.get(chain[i])
            if there is None:
                break
            if there[0] < due:
                return found + there[0]
            found += due
        return found

    def use(self, chain: Chain, now_s: float) -> int:
        """The same as `match`, and what is found counts as used now."""
        found = self.match(chain)
        left = found
        keys = []
        for i in range(0, len(chain), 2):
            if left <= 0:
                break
            keys.append(chain[i])
            left -= chain[i + 1]
        for key in reversed(keys):
            self._held[key] = (self._held[key][0], now_s)
            self._held.move_to_end(key)
        return found

    def hold(self, chain: Chain, now_s: float, more: int = 0) -> None:
        """Hold the whole chain, and `more` tokens past its last segment, as used now; others make room."""
        held = self._held
        for i in range(len(chain) - 2, -1, -2):
            known = held.pop(chain[i], (0, 0.0))[0]
            tokens = max(known, chain[i + 1] + more)
            more = 0
            held[chain[i]] = (tokens, now_s)
            self.tokens += tokens - known
        while self.tokens > self._capacity_tokens:
            self._evict(self.tokens - self._capacity_tokens)

    def forget(self, before_s: float) -> None:
        """Let go of what was last used before this instant."""
        held = self._held
        while held and next(iter(held.values()))[1] < before_s:
            _, (tokens, _) = held.popitem(last=False)
            self.tokens -= tokens

    def _evict(self, excess: int) -> None:
        """Take up to so many tokens from the segment least recently used."""
        key, (tokens, used_at_s) = next(iter(self._held.items()))
        if tokens > excess:
            self._held[key] = (tokens - excess, used_at_s)
            self.tokens -= excess
        else:
            del self._held[key]
            self.tokens -= tokens
