"""What `testbed compare` prints: every key in which runs differ, then their figures side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from testbed.analysis.compare import (
    Estimate,
    FigureDifference,
    compare_figures,
    compared_arms,
    differing_keys,
)
from testbed.errors import UsageError
from testbed.record.run_folder import RunFolder
from testbed.record.summary_file import load_summary

GROUPS = ("seed-*", "run-*")  # folders of several runs by one command
UNLIKE_BY_NATURE = ("started", "command")  # of any two manifests: no news


def print_comparison(console: Console, paths: Sequence[Path]) -> None:
    """Compare every run with the first one.

    Args:
        console: where to print.
        paths: folders of runs, or of several seeds of one (`--repeat`), whose means are compared then.

    Raises:
        UsageError: a folder holds no finished run.
    """
    first = runs_below(paths[0])
    for path in paths[1:]:
        other = runs_below(path)
        console.print(_keys_table(first[0], other[0], str(paths[0]), str(path)))
        summaries = [[load_summary(run.summary) for run in group] for group in (first, other)]
        if not compared_arms(*summaries):
            console.print(_no_arm_in_common(*summaries), highlight=False, soft_wrap=True)
            continue
        console.print(_figures_table(compare_figures(*summaries), str(paths[0]), str(path)))


def runs_below(path: Path) -> list[RunFolder]:
    """The finished runs of a folder: itself, or those below it, one for each seed or several of one plan.

    Raises:
        UsageError: there is none.
    """
    folders = [
        RunFolder(path),
        *(RunFolder(each) for pattern in GROUPS for each in sorted(path.glob(pattern))),
    ]
    found = [folder for folder in folders if folder.summary.is_file()]
    if not found:
        raise UsageError(f"{path} is not a finished run: it has no summary.json")
    return found


def _keys_table(left: RunFolder, right: RunFolder, left_name: str, right_name: str) -> Table:
    table = Table(title="keys that differ", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("key", left_name, right_name):
        table.add_column(name, overflow="fold")
    for difference in differing_keys(_words(left), _words(right)):
        table.add_row(difference.key, str(difference.left), str(difference.right))
    if not table.row_count:
        table.add_row("(none)", "", "")
    return table


def _words(run: RunFolder) -> dict[str, Any]:
    """All that a run was told: its manifest and the resolved scenario of each arm."""
    manifest = {key: value for key, value in _json(run.manifest).items() if key not in UNLIKE_BY_NATURE}
    arms = {arm.name: _yaml(arm.scenario) for arm in run.arms()}
    return {"manifest": manifest, "arms": arms}


def _figures_table(differences: Sequence[FigureDifference], left_name: str, right_name: str) -> Table:
    table = Table(
        title="figures (mean ± half of its 95 % interval, over seeds)",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("arm", "figure", left_name, right_name, "difference", "relative"):
        table.add_column(name, justify="left" if name in ("arm", "figure") else "right")
    last = None
    for each in differences:
        if each.left.runs or each.right.runs:
            relative = "-" if math.isnan(each.relative) else f"{each.relative:+.1%}"
            change = _estimate(Estimate(each.difference, each.half_width, 1))
            table.add_row(
                each.arm if each.arm != last else "",
                each.figure,
                _estimate(each.left),
                _estimate(each.right),
                change,
                relative,
            )
            last = each.arm
    return table


def _no_arm_in_common(*groups: Sequence[dict[str, Any]]) -> str:
    ours, theirs = (", ".join(dict.fromkeys(arm for run in runs for arm in run["arms"])) for runs in groups)
    return f"figures: no arm in common to compare ({ours} against {theirs})"


def _estimate(value: Estimate) -> str:
    if math.isnan(value.mean):
        return "-"
    return (
        f"{value.mean:.4g}" if math.isnan(value.half_width) else f"{value.mean:.4g} ± {value.half_width:.2g}"
    )


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path.parent} is damaged: reading {path.name} failed: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        words: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path.parent} is not a finished run: reading {path.name} failed: {error}"
        ) from error
    return words
