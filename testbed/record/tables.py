"""Every table with its columns, types and units: the one place of the log format.

`LOGGED` are the rows that nodes append while they run, in run time. `MERGED` are the Parquet tables of a run,
in scenario time (run time / time scale), with truth joined to beliefs. Instants are seconds since the run
began, NaN where nothing happened; a column's name tells its unit (`_s` seconds, `_per_s` per second).
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column: its name, its type (`int`, `float`, `text`, `flag`, `ints`) and its power of time.

    `time_power` is 1 for instants and durations, -1 for rates, -2 for steps per s^2, 0 for all else; merging
    divides by the time scale to that power.
    """

    name: str
    type: str
    meaning: str
    time_power: int = 0


def _instant(name: str, meaning: str) -> Column:
    return Column(name, "float", meaning, 1)


def _late(statistic: str, what: str = "handled less release", done: str = "delivered") -> Column:
    return Column(f"lateness_s_{statistic}", "float", f"{what}, wall time; NaN: nothing {done}")


_REQUEST = Column("request_id", "int", "position of the request in the plan, from 0")
_ATTEMPT = Column(
    "attempt", "int", "0 for the first sending; of a leaf's further attempts, 128 more for each"
)
_DROPS = (
    Column("dropped_loss", "int", "of these, dropped by chance, as the link's loss has it"),
    Column("dropped_cut", "int", "dropped as a partition cut the link or it was down flapping"),
    Column("dropped_queue", "int", "dropped as the queue before the link's rate was full"),
    Column("dropped_dead", "int", "dropped as the process at its end was dead"),
    Column("duplicated", "int", "copies made"),
    Column("reordered", "int", "messages released before one that was sent earlier"),
)
_CELL = Column("cell", "text", "name of the cell")
_ROOT = Column("root", "text", "name of the root's node")

LOGGED: dict[str, tuple[Column, ...]] = {
    # a root writes a row when a request is over for it: replied, timed out, without a target or unfinished
    "dispatches": (
        _REQUEST,
        _ATTEMPT,
        _ROOT,
        _CELL,
        Column("leaf", "text", "node that it was sent to"),
        Column("outcome", "int", "see messages.Outcome"),
        _instant("planned_at_s", "planned arrival"),
        _instant("sent_at_s", "sent by the root"),
        _instant("replied_at_s", "reply received by the root; NaN: none in time"),
        _instant("residence_s", "time in the cell, as the reply tells"),
        _instant("staleness_s", "age of the chosen cell's observation when used; NaN: none yet"),
        Column("believed_cost", "float", "cost of the chosen cell as the root believed it"),
    ),
    # a root writes a row when a request had to wait for a usable cell, and when its decision takes time
    "holds": (
        _REQUEST,
        _ATTEMPT,
        _ROOT,
        _instant("held_at_s", "began to wait: its planned arrival, or the reading of the view"),
        _instant("released_at_s", "a cell was usable, or the decision took effect"),
    ),
    # a root, and a leaf, writes a row when it sends a request again or sends another copy of it
    "resendings": (
        _REQUEST,
        Column("attempt", "int", "of the new sending"),
        Column("node", "text", "the root or leaf"),
        Column("cause", "text", "retry: the last attempt ended badly; hedge: it is not answered yet"),
        _instant("at_s", "when a target was chosen"),
    ),
    # a balancer writes a row when it leaves a target out or takes it in again, other than by a fault of the timeline
    "rotations": (
        Column("node", "text", "the balancer"),
        Column("target", "text", "cell, leaf or server"),
        _instant("at_s", "when"),
        Column("inside", "flag", "false: left out from now on; true: used again"),
        Column("cause", "text", "breaker, health, scaling; slow_start: used again, with a share that grows"),
    ),
    # an autoscaler writes a row each time it looks
    "scalings": (
        _CELL,
        _instant("at_s", "when it looked"),
        _instant("measured_at_s", "of what it acts on; NaN: nothing yet"),
        Column("measured", "float", "per server then in use, in the measure of its target"),
        Column("wanted", "int", "servers, by the rule; what becomes of it hangs on cooldown and down_after"),
        Column("in_use", "int", "servers that take requests"),
        Column("starting", "int", "servers that start up"),
    ),
    # a late reply: the request had timed out at the root before
    "late_replies": (_REQUEST, _ATTEMPT, _instant("replied_at_s", "reply received by the root")),
    # a leaf writes a row when a request leaves it
    "visits": (
        _REQUEST,
        _ATTEMPT,
        Column("leaf", "text", "node"),
        Column("server", "text", "node that it was sent to"),
        Column("outcome", "int", "see messages.Outcome"),
        _instant("at_leaf_s", "received by the leaf"),
        _instant("left_leaf_s", "reply sent to the root; NaN: never"),
    ),
    # a balancer writes a row when it stops or is killed
    "counts": (
        Column("node", "text", "root or leaf"),
        _instant("at_s", "when"),
        Column("counted", "int", "own requests in flight at all its targets together, as it counts them"),
        Column("least", "int", "the smallest of these counts of one target"),
        Column("open", "int", "requests that it has sent and that are not over for it"),
        Column(
            "miscounted",
            "int",
            "of the counted, those that a fault made it forget to count down; below 0: that it forgot",
        ),
    ),
    # a server writes a row when a request is served, or is still open at the end
    "services": (
        _REQUEST,
        _ATTEMPT,
        Column("server", "text", "node"),
        _instant("at_server_s", "received by the server"),
        _instant("started_at_s", "admitted into the batch"),
        _instant("first_token_at_s", "first token made"),
        _instant("finished_at_s", "last token made"),
        _instant("answered_at_s", "reply sent to the leaf; NaN: never"),
        Column("preemptions", "int", "times it was put back for want of KV memory"),
        Column("cached_tokens", "int", "tokens of its prompt found in the prefix cache"),
    ),
    # a root writes a row for each report received
    "observations": (
        _ROOT,
        Column("leaf", "text", "node that reported"),
        _CELL,
        Column("sequence", "int", "of the report at its leaf, from 0"),
        _instant("measured_at_s", "measured by the leaf"),
        _instant("received_at_s", "received by the root"),
        Column("queued", "int", "requests waiting at servers"),
        Column("running", "int", "requests running at servers"),
        Column("by_class", "ints", "requests in flight of each class"),
        Column("prompt_tokens", "int", "prompt tokens still to prefill"),
        Column("output_tokens", "int", "output tokens still to make"),
        Column("arrivals", "int", "requests received by the leaf since the run began"),
        Column("error_fraction", "float", "of replies"),
        Column("speed", "float", "scaled model: factor on the profile's curve"),
        _instant("fitted_a_s", "fitted model: sojourn per output token = a + b n"),
        _instant("fitted_b_s", "fitted model"),
        Column("model_error", "float", "mean relative error of the prediction"),
        Column(
            "busy_s", "float", "busy time since the run began; NaN from a leaf, which does not know it", 1
        ),
        Column("arrivals_by_class", "ints", "requests received of each class since the run began"),
        Column("clock_error_s", "float", "the stamp less the true instant, where a fault skews the clock", 1),
    ),
    # a leaf writes a row for each report and each answer to a probe of a server, where the timeline has servers tell
    # something else than they know
    "news": (
        Column("leaf", "text", "node that heard it"),
        Column("server", "text", "node that told it"),
        Column("path", "text", "observation: a report; probe: an answer"),
        Column("sequence", "int", "of the report at its server, of the probe at its leaf"),
        _instant("measured_at_s", "measured by the server, as it claims"),
        _instant("received_at_s", "received by the leaf"),
        Column("in_flight", "int", "requests waiting or running there, as it claims"),
        Column("clock_error_s", "float", "the stamp less the true instant, where a fault skews the clock", 1),
    ),
    # a root writes a row per cell for each update of its probabilities
    "updates": (
        _ROOT,
        Column("class", "text", "class of traffic"),
        Column("update", "int", "number of the update at this root and class, from 0"),
        _CELL,
        _instant("used_at_s", "when the update was made and took effect"),
        Column("step", "float", "step, per s^2 or per s as the policy has it"),
        _instant("interval_s", "time the update stands for"),
        Column("product", "float", "step * interval, per s or a plain number as the policy has it"),
        Column("sequence", "int", "of the report used; -1: none yet"),
        _instant("measured_at_s", "of the report used"),
        _instant("received_at_s", "of the report used"),
        Column("believed_in_flight", "float", "as the view had it"),
        Column("believed_cost", "float", "as the cost had it"),
        Column("clipped", "flag", "the cost was cut at its ceiling"),
        Column("network_s", "float", "round trip that the root measured", 1),
        Column("probability_before", "float", "before the update"),
        Column("probability", "float", "after the update"),
        Column("allowed", "flag", "whether the root may use the cell"),
    ),
    # a root writes a row when a policy that tunes itself has settled on something new
    "tunings": (
        _ROOT,
        Column("class", "text", "class of traffic"),
        _instant("at_s", "when it took effect"),
        Column("mode", "text", "flow or discrete"),
        Column("rate_per_s", "float", "of all roots together, all classes, as observed", -1),
        Column("class_rate_per_s", "float", "the same of this class", -1),
        _instant("loop_delay_s", "as observed"),
        Column("a_per_s", "float", "rate at which a difference between cells fades", -1),
        Column(
            "decisions", "float", "of all roots for this class in one loop delay; NaN: it decides nothing"
        ),
        Column("decisions_most", "float", "up to which discrete routing is the better one; NaN likewise"),
        Column("step", "float", "per s^2 or per s as the policy has it; NaN: discrete"),
        Column("critical_step", "float", "that it is a safe share of; NaN likewise"),
    ),
    # a root writes a row per candidate for each sampled decision
    "decisions": (
        _REQUEST,
        _ROOT,
        _CELL,
        _instant("used_at_s", "when the choice was made"),
        Column("sequence", "int", "of the report used; -1: none yet"),
        _instant("measured_at_s", "of the report used"),
        _instant("received_at_s", "of the report used"),
        Column("believed_in_flight", "float", "as the view had it"),
        Column("believed_cost", "float", "as the cost had it"),
        Column("network_s", "float", "round trip that the root measured", 1),
        Column("chosen", "flag", "whether this candidate was chosen"),
    ),
    # a server samples its own truth
    "samples": (
        Column("server", "text", "node"),
        _instant("at_s", "instant of the sample"),
        Column("queued", "int", "requests waiting"),
        Column("running", "int", "requests running, or waiting to fail as a fault has it"),
        Column("by_class", "ints", "requests in flight of each class"),
        Column("prompt_tokens", "int", "prompt tokens still to prefill"),
        Column("output_tokens", "int", "output tokens still to make"),
        Column("kv_fraction", "float", "share of the KV memory in use"),
        Column(
            "busy_s",
            "float",
            "time with requests running since the run began; of shared cores, core seconds used per core of the allocation",
            1,
        ),
        Column("arrivals", "int", "requests received since the run began"),
    ),
    # the engine, for the sending end of each link, once a second and at the end
    "sent": (
        Column("link", "int", "number of the link in the topology"),
        _instant("at_s", "end of the second"),
        Column("sent", "int", "messages sent"),
        *_DROPS,
        _instant("drawn_s", "sum of the delays drawn for what was not dropped, waits for a rate included"),
    ),
    # the engine, for the receiving end of each link, once a second and at the end
    "delivered": (
        Column("link", "int", "number of the link in the topology"),
        _instant("at_s", "end of the second"),
        Column("delivered", "int", "messages handed to the role"),
        Column("inversions", "int", "of these, reached the process after their release"),
        Column("lateness_s", "float", "sum of handled less release, wall time"),
        Column("lateness_max_s", "float", "largest lateness, wall time"),
        Column("lateness_bins", "ints", "messages by lateness, see links.lateness.bin_of"),
    ),
    # the engine, when it applies or heals a fault at a node
    "applied": (
        Column("fault", "int", "position of the fault in the timeline"),
        Column("node", "text", "node that it touches: a server, leaf, root, or the sender of a link"),
        Column("healed", "flag", "false: applied, true: healed"),
        _instant("planned_at_s", "planned instant; of a fault for good, healed when the run ends, this end"),
        _instant("done_at_s", "when the node did it"),
    ),
    # the live engine, once a second
    "processes": (
        Column("node", "text", "node"),
        _instant("at_s", "end of the second"),
        Column("cpu_s", "float", "processor time used in this second, wall time"),
        Column("memory_bytes", "int", "resident set"),
        Column("loop_lag_s", "float", "largest time that a timer fired after it was due, wall time"),
        Column("stall_s", "float", "longest pass of the loop, wall time"),
        _instant("stall_at_s", "when that pass began; NaN: none took any time"),
        Column("log_pause_s", "float", "longest time that writing a chunk of a log took, wall time"),
        Column("collector_pause_s", "float", "longest collection of cyclic garbage, wall time"),
        Column("passes", "int", "passes of the loop"),
        Column("would_blocks", "int", "frames that had to wait for a full socket"),
    ),
    # the live engine, once a process, before the start
    "timers": (
        Column("node", "text", "process"),
        Column("waits", "int", "waits of its timer that it timed"),
        _late("p50", "waited less asked", "timed"),
        _late("p99", "waited less asked", "timed"),
        _late("max", "waited less asked", "timed"),
        Column("lateness_bins", "ints", "waits by lateness, see links.lateness.bin_of"),
    ),
    # a process that watches the machine, about five times a second; NaN: this machine does not tell
    "host": (
        _instant("at_s", "end of the stretch"),
        Column("span_s", "float", "length of the stretch, wall time"),
        Column(
            "pressure", "float", "share of it in which a task that could run waited for a core (some of PSI)"
        ),
        Column("busy_cores", "float", "cores in use by all processes of the machine"),
        Column("steal", "float", "share of all cores' time that the host of this virtual machine took"),
        Column("throttled_s", "float", "time without a core for want of quota, wall time"),
        Column("throttles", "float", "periods of the quota in which that happened"),
        Column("swapped_pages", "float", "pages swapped in and out"),
        Column("clock_step_s", "float", "by how much the wall clock gained on the monotonic one"),
        Column("slowdown", "float", "longest time of a fixed piece of computing over its usual time"),
        Column("slow_fraction", "float", "share of these pieces that took more than three times the usual"),
        Column("wake_late_s", "float", "longest time that the watching process was woken late, wall time"),
    ),
}


_LINK = (
    Column("source", "text", "node that sends"),
    Column("target", "text", "node that receives"),
    Column("path", "text", "request, reply, observation or probe"),
)
_LINK_COUNTS = (
    Column("sent", "int", "messages sent"),
    *_DROPS,
    Column("delivered", "int", "messages handed to the role"),
    Column("inversions", "int", "of these, reached the process after their release"),
    _instant("drawn_s_mean", "mean of the drawn delays; NaN: nothing sent that was not dropped"),
    _late("mean"),
)
_TRUTH = (
    Column("true_in_flight", "float", "requests that had reached the cell's leaves and not left them"),
    Column("true_cost", "float", "the policy's cost of these at the true speed, network as measured"),
)

MERGED: dict[str, tuple[Column, ...]] = {
    # a row per planned request, in the order of the plan
    "requests": (
        _REQUEST,
        Column("class", "text", "class of traffic"),
        _ROOT,
        Column("cell", "text", "cell that it was sent to; empty: none"),
        Column("leaf", "text", "node that it was sent to; empty: none"),
        Column("server", "text", "node that it was sent to; empty: none"),
        Column(
            "attempts",
            "int",
            "times that the root sent it; all else is of the one that was completed, or else of the last",
        ),
        Column("outcome", "text", "completed, failed, timed_out, shed, no_target, lost or unfinished"),
        Column("prompt_tokens", "int", "tokens of its prompt"),
        Column("output_tokens", "int", "tokens that it asks for"),
        Column("session", "int", "conversation that it continues; 0: none"),
        Column("prefix", "int", "first segment that its prompt shares with other sessions; 0: none"),
        _instant("planned_at_s", "planned arrival"),
        _instant(
            "held_s",
            "time that the root let it wait, for a usable cell or its decision; NaN: until its time was up",
        ),
        _instant("sent_at_s", "sent by the root"),
        _instant("at_leaf_s", "received by the leaf"),
        _instant("at_server_s", "received by the server"),
        _instant("started_at_s", "admitted into the batch"),
        _instant("first_token_at_s", "first token made"),
        _instant("finished_at_s", "last token made"),
        _instant("answered_at_s", "reply sent to the leaf; NaN: never"),
        _instant("left_leaf_s", "reply sent to the root"),
        _instant("replied_at_s", "reply received by the root, also where it came late"),
        _instant("residence_s", "time in the cell, as the reply tells; NaN: no reply in time"),
        _instant("staleness_s", "age of the chosen cell's observation when used; NaN: none yet"),
        Column("believed_cost", "float", "cost of the chosen cell as the root believed it"),
        Column("preemptions", "int", "times it was put back for want of KV memory"),
        Column("cached_tokens", "int", "tokens of its prompt found in the prefix cache, when first admitted"),
        Column("late", "flag", "the reply came after the timeout"),
    ),
    # a row per sending of the requests that were sent more than once, by their roots or by their leaves
    "attempts": (
        _REQUEST,
        Column("attempt", "int", "of the root, 0 for its first sending"),
        Column("leaf_attempt", "int", "of the leaf, 0 for the first server that it gave it to"),
        Column("cause", "text", "first, retry or hedge"),
        _ROOT,
        Column("leaf", "text", "node that it was sent to"),
        Column("server", "text", "node that it was given to; empty: none"),
        Column(
            "outcome", "text", "for the root; cancelled: another copy was completed first; empty: unknown"
        ),
        Column("leaf_outcome", "text", "for the leaf; empty: it never had it"),
        _instant("sent_at_s", "sent by the root"),
        _instant("at_leaf_s", "received by the leaf, or given to a further server by it"),
        _instant("at_server_s", "received by the server; NaN: never, or called back before it was served"),
        _instant("finished_at_s", "served; NaN: never"),
        _instant("left_leaf_s", "over for the leaf"),
        _instant("replied_at_s", "reply received by the root; NaN: none in time"),
    ),
    # a row each time a balancer left a target out or took it in again
    "rotations": LOGGED["rotations"],
    # a row per look of an autoscaler
    "scalings": LOGGED["scalings"],
    # a row per report received at a root
    "observations": LOGGED["observations"],
    # a row per report and answer to a probe received at a leaf
    "news": LOGGED["news"],
    # a row per life of a balancer
    "counts": LOGGED["counts"],
    # a row per update of probabilities and cell
    "updates": (*LOGGED["updates"], *_TRUTH),
    # a row each time a policy that tunes itself settled on something new
    "tunings": LOGGED["tunings"],
    # a row per sampled decision and candidate
    "decisions": (
        *LOGGED["decisions"],
        *_TRUTH,
        Column("true_in_flight_at_arrival", "float", "as the request found it at its leaf; NaN: never there"),
        Column("true_cost_at_arrival", "float", "as the request found it at its leaf; NaN: never there"),
        _instant(
            "true_sojourn_at_arrival_s", "to be expected of what it found: alpha + beta n and the round trip"
        ),
    ),
    # a row per sample of the truth at a server
    "cells": (_CELL, *LOGGED["samples"]),
    # a row per link and second of run time in which it carried something
    "links": (
        *_LINK,
        _instant("at_s", "end of the second"),
        *_LINK_COUNTS,
        _late("p50"),
        _late("p99"),
        _late("max"),
    ),
    # a row per link, over the whole run
    "lateness": (
        *_LINK,
        *_LINK_COUNTS,
        _late("p50"),
        _late("p90"),
        _late("p99"),
        _late("p999"),
        _late("max"),
        Column("lateness_bins", "ints", "messages by lateness, see links.lateness.bin_of"),
    ),
    # a row per fault of the timeline
    "faults": (
        Column("fault", "int", "position of the fault in the timeline"),
        Column("line", "int", "position of its line in the scenario"),
        Column("target", "text", "whom it touches"),
        Column("parameters", "text", "what it sets"),
        _instant("planned_at_s", "when it was to set in"),
        _instant("applied_at_s", "when the last of its nodes had done it; NaN: none did"),
        _instant("heal_planned_at_s", "when it was to heal; NaN: never"),
        _instant(
            "healed_at_s",
            "when the last of its nodes had healed it, as all do when the run ends; NaN: none did",
        ),
        Column(
            "nodes_expected", "int", "nodes that were to apply it: servers, the senders of links, or roots"
        ),
        Column("nodes_applied", "int", "nodes that did"),
        Column("nodes_healed", "int", "nodes that healed it"),
        Column("nodes_missed", "int", "nodes that could not: dead, or stopped until they died, all the time"),
    ),
    # a row per fault and node that applied it, one more when it healed it
    "applied": LOGGED["applied"],
    # a row per process and second
    "processes": LOGGED["processes"],
    # a row per process, of the time before the start
    "timers": LOGGED["timers"],
    # a row per fifth of a second, of the machine
    "host": LOGGED["host"],
}
