"""The Euclidean projection onto the probabilities over the allowed targets."""

from __future__ import annotations

from collections.abc import Sequence


def project(values: Sequence[float], allowed: Sequence[bool]) -> list[float]:
    """The nearest point to `values` whose allowed entries are probabilities and whose others are exactly 0.

    Exact, by sorting: with u the allowed values in falling order and k the most of them for which
    u_k > theta_k = (u_1 + ... + u_k - 1) / k, entry j becomes max(v_j - theta_k, 0). The result sums to 1 within
    rounding.

    Args:
        values: one per target; finite.
        allowed: one per target, at least one of them true.

    Raises:
        ValueError: no target is allowed.

    Source: Held, Wolfe and Crowder, Validation of subgradient optimization (1974).
    """
    kept = [value for value, is_allowed in zip(values, allowed, strict=True) if is_allowed]
    if not kept:
        raise ValueError("no target is allowed, so there is no probability to give")
    # The projection does not change with a common shift; with the largest value at 0 nothing is lost to rounding,
    # since all that stays above 0 lies within 1 of it.
    largest = max(kept)
    threshold = _threshold(sorted([value - largest for value in kept], reverse=True))
    return [
        max(value - largest - threshold, 0.0) if is_allowed else 0.0
        for value, is_allowed in zip(values, allowed, strict=True)
    ]


def _threshold(falling: list[float]) -> float:
    """Theta for values in falling order of which the first is 0."""
    threshold = -1.0  # of the first alone: (0 - 1) / 1
    total = 0.0
    for count, value in enumerate(falling[1:], start=2):
        total += value
        candidate = (total - 1.0) / count
        if value <= candidate:
            break
        threshold = candidate
    return threshold
