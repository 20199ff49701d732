"""Figures of V12 to V14."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from testbed.verification.finding import Illustration
from testbed.verification.prequal_runs import (
    PROBE_RATES,
    PUBLISHED_P99_MS,
    QUANTILES,
    hot_run,
    probed_run,
    ramp_runs,
    rule_names,
    rule_runs,
)

TICKS_MS = (300, 1000, 3000)


def illustrate_rules(quick: bool) -> Iterator[Illustration]:
    """The p99 of the nine rules at both loads, beside the published ones."""
    run = rule_runs(quick)
    names = rule_names(quick)
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, load, column in zip(axes, (0.7, 0.9), (0, 1), strict=True):
        ax.barh(names, [run(rule, load).ms(99) for rule in names], color="tab:blue", label="measured")
        ax.plot(
            [PUBLISHED_P99_MS[rule][column] for rule in names], names, "k|", markersize=12, label="published"
        )
        ax.set(xscale="log", xlabel="p99 of the sojourn (ms)", title=f"load {load:g}")
        ax.set_xticks(TICKS_MS, [str(each) for each in TICKS_MS])
        ax.xaxis.set_minor_formatter(NullFormatter())  # its labels would run into each other
    axes[1].legend()
    yield Illustration(
        "prequal_rules", "The nine rules: p99 of the sojourn, a failed request counted as 5 s.", figure
    )


def illustrate_ramp(quick: bool) -> Iterator[Illustration]:
    """Percentiles over the load ramp for WRR and Prequal."""
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, rule in zip(axes, ("WRR", "Prequal"), strict=True):
        runs = ramp_runs(rule, quick)
        for percent in (50.0, 90.0, 99.0, 99.9):
            ax.plot(list(runs), [run.ms(percent) for run in runs.values()], marker="o", label=f"p{percent:g}")
        ax.set(yscale="log", xlabel="load (of the allocation)", title=rule)
    axes[0].set_ylabel("sojourn (ms)")
    axes[1].legend()
    yield Illustration(
        "prequal_ramp", "WRR and Prequal over the load ramp, a failed request counted as 5 s.", figure
    )


def illustrate_sensitivities(quick: bool) -> Iterator[Illustration]:
    """Percentiles over the probe rate and over the hot quantile."""
    rates = (4.0, 0.5) if quick else PROBE_RATES
    quantiles = (0.0, 0.99) if quick else QUANTILES
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for percent in (50.0, 90.0, 99.0):
        probed = [probed_run(each, quick).ms(percent) for each in rates]
        hot = [hot_run(each, quick).ms(percent) for each in quantiles]
        left.plot(rates, probed, marker="o", label=f"p{percent:g}")
        right.plot(quantiles, hot, marker="o", label=f"p{percent:g}")
    left.set(
        xscale="log", xlabel="probes a request", ylabel="sojourn (ms)", title="load 1.5", ylim=(0.0, None)
    )
    left.set_xticks([0.5, 1.0, 2.0, 4.0], ["1/2", "1", "2", "4"])
    left.xaxis.set_minor_formatter(NullFormatter())
    right.set(xlabel="hot quantile", title="half of the servers slow, load 0.75", ylim=(0.0, None))
    right.legend()
    yield Illustration(
        "prequal_knobs", "Prequal with fewer probes, and with another quantile that counts as hot.", figure
    )
