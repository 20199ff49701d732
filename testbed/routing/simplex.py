"""Projections onto the probabilities over the allowed targets: of points, and of directions.

Both may leave every allowed target a floor, a share that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum


def project(values: Sequence[float], allowed: Sequence[bool], floor: float = 0.0) -> list[float]:
    """The nearest point to `values` whose allowed entries are probabilities and whose others are exactly 0.

    Exact, by sorting: with u the allowed values in falling order and k the most of them for which
    u_k > theta_k = (u_1 + ... + u_k - 1) / k, entry j becomes max(v_j - theta_k, 0). The result sums to 1 within
    rounding.

    Args:
        values: one per target; finite.
        allowed: one per target, at least one of them true.
        floor: the least share of an allowed target; an even split where all together would take more than 1.

    Raises:
        ValueError: no target is allowed.

    Source: Held, Wolfe and Crowder, Validation of subgradient optimization (1974).
    """
    kept = [value for value, is_allowed in zip(values, allowed, strict=True) if is_allowed]
    if not kept:
        raise ValueError("no target is allowed, so there is no probability to give")
    if floor > 0.0:
        return _above_floor(values, allowed, min(floor, 1.0 / len(kept)), len(kept))
    # The projection does not change with a common shift; with the largest value at 0 nothing is lost to rounding,
    # since all that stays above 0 lies within 1 of it.
    largest = max(kept)
    threshold = _threshold(sorted([value - largest for value in kept], reverse=True))
    return [
        max(value - largest - threshold, 0.0) if is_allowed else 0.0
        for value, is_allowed in zip(values, allowed, strict=True)
    ]


def tangent(
    values: Sequence[float], shares: Sequence[float], allowed: Sequence[bool], floor: float = 0.0
) -> list[float]:
    """The nearest direction to `values` in which probabilities `shares` can move: the projection onto their tangent cone.

    The entries add up to 0, none of an allowed target at its floor is negative, those of the others are exactly 0.
    With A all allowed targets at first, w = v - mean_A(v); those at the floor with w < 0 leave A, and so on until none
    does. (Those that leave are below the mean, which their leaving raises, so none would want to come back.)

    Args:
        values: a direction, one entry per target.
        shares: probabilities over the allowed targets.
        allowed: one per target, at least one of them true.
        floor: the least share of an allowed target.

    Raises:
        ValueError: no target is allowed.

    Source: theory.md, section 2.3.
    """
    active = [index for index, is_allowed in enumerate(allowed) if is_allowed]
    if not active:
        raise ValueError("no target is allowed, so there is no probability to move")
    while True:
        mean = fsum(values[index] for index in active) / len(active)
        staying = [index for index in active if shares[index] > floor or values[index] >= mean]
        if len(staying) == len(active) or not staying:
            break
        active = staying
    moved = [0.0] * len(values)
    for index in active:
        moved[index] = values[index] - mean
    return moved


def follow(
    shares: Sequence[float], direction: Sequence[float], allowed: Sequence[bool], floor: float = 0.0
) -> list[float]:
    """Where probabilities come that follow a constant direction for one unit of time, always within the tangent cone.

    This solves dx/dt = tangent(direction at x) exactly: straight on until a share reaches its floor, then along that
    face. Arguments as for `tangent`.
    """
    current = list(shares)
    left = 1.0
    for _ in range(len(current) + 1):
        moving = tangent(direction, current, allowed, floor)
        falling = [index for index, slope in enumerate(moving) if slope < 0.0]
        reaching = {index: (floor - current[index]) / moving[index] for index in falling}
        first = min(reaching.values(), default=left)
        if first >= left:
            return _summing_to_1([share + left * slope for share, slope in zip(current, moving, strict=True)])
        current = [
            floor if reaching.get(index, left) <= first else share + first * slope
            for index, (share, slope) in enumerate(zip(current, moving, strict=True))
        ]
        left -= first
    return _summing_to_1(current)


def _summing_to_1(shares: list[float]) -> list[float]:
    """What rounding has left over goes to the largest."""
    largest = max(range(len(shares)), key=shares.__getitem__)
    shares[largest] += 1.0 - fsum(shares)
    return shares


def _above_floor(values: Sequence[float], allowed: Sequence[bool], floor: float, count: int) -> list[float]:
    """What is left above the floors is itself a simplex, smaller."""
    room = 1.0 - count * floor
    if room <= 0.0:
        return [1.0 / count if is_allowed else 0.0 for is_allowed in allowed]
    above = project([(value - floor) / room for value in values], allowed)
    return [
        floor + room * share if is_allowed else 0.0 for share, is_allowed in zip(above, allowed, strict=True)
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
