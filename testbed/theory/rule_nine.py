"""The conservative design rule for steps where delays differ: max_j sum_i slope_ij lambda_i eta_i T_ij / a_j <= 1.

Exact in the limit of equal delays and slow cells (aT to 0), otherwise a conjecture: in 150 random instances the true
critical factor was 1.04 to more than 3.4 times that of the rule. Source: theory.md, section 2.7, equation (9).
"""

from __future__ import annotations

import math

from testbed.theory.stability import Floats


def rule_nine_factor(a_per_s: Floats, slopes: Floats, gains: Floats, loop_delay_s: Floats) -> float:
    """The factor on all steps at which the rule is just kept; infinite without delay.

    Args:
        a_per_s: marginal service rates, shape (cells,).
        slopes: d cost / d in flight as each line reckons, shape (lines, cells).
        gains: lambda_i eta_i of each line, shape (lines,).
        loop_delay_s: T_ij, shape (lines, cells); 0 for cells that a line does not use.
    """
    worst = float(((gains[:, None] * slopes * loop_delay_s).sum(axis=0) / a_per_s).max())
    return 1.0 / worst if worst > 0.0 else math.inf
