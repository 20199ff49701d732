"""Bad input is tested as carefully as good: malformed scenarios and the whole message of each.

Every case changes the good scenario `GOOD` in one place; the message is compared to the last letter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import ScenarioError, UsageError
from testbed.scenario import expectation
from testbed.scenario.load import ScenarioFile, load_scenario, scenario_from_text
from testbed.scenario.policy_words import POLICY_KINDS
from testbed.scenario.spelling import listed
from testbed.scenario.yaml_tree import shortened
from testbed.serving.profile import PROFILES

GOOD = """\
name: two_cells
duration: 20 s
cells:
  us: {servers: 4, profile: small}
  eu: {servers: 3, profile: small, leaf: {policy: idlest}}
roots:
  west:
    traffic: [{class: sand, rate: 80 /s, policy: flow}]
    allowed: [us, eu]
classes:
  sand: {prompt_tokens: 48, output_tokens: {geometric: {mean: 8}}}
policies:
  flow: {kind: flow, step: 0.1 /s^2}
  idlest: {kind: least_cost, cost: in_flight, view: own_counts}
links:
  - {from: root.*, to: cell.*, path: request, delay: 20 ms}
  - {from: cell.*, to: root.*, delay: 500 ms}
"""


def edit(old: str, new: str) -> str:
    """The good scenario with the first `old` replaced."""
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def after(lines: str) -> str:
    """The good scenario with more lines before its links, from line 15 on."""
    return edit("links:\n", f"{lines}links:\n")


# What messages accept, where that is long.
LINK_KEYS = "from, to, path, delay, jitter, correlation, loss, loss_burst, duplicate, reorder, rate, bandwidth, queue, flap, replay, order"
KEYS = "name, duration, warmup, drain, seed, time_scale, dating, groups, cells, roots, reports, classes, policies, traces, links, faults, windows, records, live, processes, arms, expect"
KINDS = listed((*POLICY_KINDS, "my_module:MyPolicy"))
TOKENS = (
    "a whole number from 1 to 1000000000 or a mapping with the keys fixed, lognormal, geometric, quantiles"
)
NODES = "a node, a glob or a group, such as root.*, cell.us, us/server-1"
FORM = "metric op [k *] (arm.metric | quantity), such as 'sojourn_s.p99 > 1.5 * flow.sojourn_s.p99'"
METRICS = ", ".join(expectation.METRICS)
VIEW_KEYS = "stale, stale_after, unheard, when_none, hold_queue, decision_time, breaker, slow_start"
YAML_NUMBER = "a plain decimal number, or quotes around it"
BASE_60 = "is not read as it stands (octal, hexadecimal, binary or base 60)"


MALFORMED = {
    "no servers": (
        edit("servers: 4", "servers: 0"),
        "4: cells.us.servers: 0 is out of range; accepted: a whole number from 1",
    ),
    "half a server": (
        edit("servers: 4", "servers: 2.5"),
        "4: cells.us.servers: 2.5 is given, not a whole number; accepted: a whole number from 1",
    ),
    "a count in quotes": (
        edit("servers: 4", "servers: '4'"),
        "4: cells.us.servers: 4 is read as text, not a whole number; accepted: a whole number from 1, such as 4",
    ),
    "a number that YAML reads as text": (
        edit("servers: 4", "servers: 1e3"),
        "4: cells.us.servers: 1e3 is read as text, not a whole number; accepted: a whole number from 1, such as 1000",
    ),
    "a truth value for a count": (
        edit("servers: 4", "servers: yes"),
        "4: cells.us.servers: yes is read as true, not a whole number; accepted: a whole number from 1",
    ),
    "a list for a count": (
        edit("servers: 4", "servers: [4]"),
        "4: cells.us.servers: a list is given, not a whole number; accepted: a whole number from 1",
    ),
    "an octal number": (
        edit("servers: 4", "servers: 010"),
        f"4: cells.us.servers: 010 {BASE_60}; accepted: {YAML_NUMBER}",
    ),
    "nothing after the colon": (
        edit("servers: 4", "servers:"),
        "4: cells.us.servers: nothing is given; accepted: a whole number from 1",
    ),
    "more digits than any count has": (
        edit("servers: 4", "servers: 99999999999999999999"),
        f"4: cells.us.servers: 99999999999999999999 is out of range; accepted: {YAML_NUMBER}",
    ),
    "more links than a run can hold": (
        edit("servers: 4", "servers: 999999999"),
        "3: cells: 5000000016 links in all; accepted: up to 2000000 links",
    ),
    "a missing count": (
        edit("servers: 4, ", ""),
        "4: cells.us: servers is missing; accepted: a whole number from 1",
    ),
    "a misspelt key that is due": (
        edit("servers: 4", "severs: 4"),
        "4: cells.us.severs: unknown key (servers?); accepted: servers, profile, service, max_sequences, kv_tokens, step_tokens, prefix_cache_tokens, limit, autoscaler, leaf, reports, server_reports",
    ),
    "a prefix cache of a service model": (
        edit("profile: small", "service: {slots: 1, fixed: 20 ms}, prefix_cache_tokens: 9"),
        "4: cells.us: prefix_cache_tokens does not go with service, which has no such limit; accepted: a GPU profile",
    ),
    "sessions without a number": (
        edit("prompt_tokens: 48", "sessions: {turns: 3}"),
        "11: classes.sand.sessions: none is given, one is due; accepted: one of count, think_time",
    ),
    "sessions of less than a turn": (
        edit("prompt_tokens: 48", "sessions: {turns: 0.5, count: 2}"),
        "11: classes.sand.sessions.turns: 0.5 is out of range; accepted: a number from 1",
    ),
    "prefixes of an unknown length": (
        edit("prompt_tokens: 48", "prefixes: {count: 3}"),
        f"11: classes.sand.prefixes: tokens is missing; accepted: {TOKENS}",
    ),
    "sessions of a trace": (
        edit("rate: 80 /s", "trace: t")
        .replace("prompt_tokens: 48", "sessions: {turns: 3, count: 2}")
        .replace("links:", "traces: {t: {path: x, format: azure}}\nlinks:"),
        "11: classes.sand.sessions: does not go with roots.west.traffic[0].trace, which brings its own prompts; accepted: sessions or trace",
    ),
    "a bound below the mean": (
        edit("kind: flow, step: 0.1 /s^2", "kind: consistent_hash, bound: 0.9"),
        "13: policies.flow.bound: 0.9 is out of range; accepted: a number from 1",
    ),
    "a delay without unit": (
        edit("delay: 20 ms", "delay: 20"),
        "16: links[0].delay: 20 has no unit; accepted: a time such as '20 ms'",
    ),
    "a misspelt key of a link": (
        edit("delay: 20 ms", "dealy: 20 ms"),
        f"16: links[0].dealy: unknown key (delay?); accepted: {LINK_KEYS}",
    ),
    "a negative delay": (
        edit("delay: 20 ms", "delay: -5 ms"),
        "16: links[0].delay: '-5 ms' is out of range; accepted: a time such as '20 ms', from 0",
    ),
    "an unknown unit": (
        edit("delay: 20 ms", "delay: 20 sec"),
        "16: links[0].delay: '20 sec' has the unknown unit 'sec'; accepted: a time such as '20 ms' (us, ms, s, min, h)",
    ),
    "a rate for a time": (
        edit("delay: 20 ms", "delay: 20 /s"),
        "16: links[0].delay: '20 /s' has the unknown unit '/s'; accepted: a time such as '20 ms' (us, ms, s, min, h)",
    ),
    "a word for a time": (
        edit("delay: 20 ms", "delay: fast"),
        "16: links[0].delay: 'fast' is not a time; accepted: a time such as '20 ms'",
    ),
    "minutes and seconds, which YAML reads in base 60": (
        edit("delay: 20 ms", "delay: 1:30"),
        f"16: links[0].delay: 1:30 {BASE_60}; accepted: {YAML_NUMBER}",
    ),
    "a date": (
        edit("delay: 20 ms", "delay: 2020-01-01"),
        "16: links[0].delay: 2020-01-01 is read as a date; accepted: quotes around it: '2020-01-01'",
    ),
    "no for a time": (
        edit("delay: 20 ms", "delay: no"),
        "16: links[0].delay: no is read as false, not a time; accepted: a time such as '20 ms'",
    ),
    "an optional key without value": (
        edit("delay: 20 ms", "delay: ~"),
        "16: links[0].delay: nothing is given; accepted: a time such as '20 ms'",
    ),
    "an infinite time": (
        edit("delay: 20 ms", "delay: 1e999 ms"),
        "16: links[0].delay: '1e999 ms' is out of range; accepted: a time such as '20 ms', from 0",
    ),
    "more loss than everything": (
        edit("delay: 20 ms", "delay: 20 ms, loss: 120 %"),
        "16: links[0].loss: '120 %' is out of range; accepted: a percentage such as '1 %', from 0 to 100",
    ),
    "loss as a fraction": (
        edit("delay: 20 ms", "delay: 20 ms, loss: 0.1"),
        "16: links[0].loss: 0.1 has no unit; accepted: a percentage such as '1 %'",
    ),
    "a misspelt path": (
        edit("path: request", "path: requests"),
        "16: links[0].path: 'requests' is unknown (request?); accepted: request, reply, observation, probe",
    ),
    "on, which YAML reads as true": (
        edit("path: request", "path: on"),
        "16: links[0].path: on is read as true; accepted: request, reply, observation, probe",
    ),
    "a list for a path": (
        edit("path: request", "path: [request]"),
        "16: links[0].path: a list is given, not a word; accepted: request, reply, observation, probe",
    ),
    "a misspelt policy": (
        edit("policy: flow", "policy: flwo"),
        "8: roots.west.traffic[0].policy: 'flwo' is not in policies (flow?); accepted: flow, idlest",
    ),
    "a missing policy": (
        edit(", policy: flow", ""),
        "8: roots.west.traffic[0]: policy is missing; accepted: a name",
    ),
    "no, which YAML reads as false": (
        edit("policy: flow", "policy: no"),
        "8: roots.west.traffic[0].policy: no is read as false, not a name; accepted: a name",
    ),
    "a number for a name": (
        edit("policy: flow", "policy: 5"),
        "8: roots.west.traffic[0].policy: 5 is read as a number, not a name; accepted: a name",
    ),
    "a misspelt class": (
        edit("class: sand", "class: sandy"),
        "8: roots.west.traffic[0].class: 'sandy' is not in classes (sand?); accepted: sand",
    ),
    "a rate of zero": (
        edit("rate: 80 /s", "rate: 0 /s"),
        "8: roots.west.traffic[0].rate: '0 /s' is out of range; accepted: a rate such as '80 /s', above 0",
    ),
    "rate and load": (
        edit("rate: 80 /s", "rate: 80 /s, load: 0.5"),
        "8: roots.west.traffic[0]: rate and load are given, one is due; accepted: one of rate, load, stages, trace",
    ),
    "neither rate nor load": (
        edit("rate: 80 /s, ", ""),
        "8: roots.west.traffic[0]: none is given, one is due; accepted: one of rate, load, stages, trace",
    ),
    "a percentage for a share": (
        edit("rate: 80 /s", "load: 50 %"),
        "8: roots.west.traffic[0].load: '50 %' is given, not a number; accepted: a number above 0",
    ),
    "not a number": (
        edit("rate: 80 /s", "load: .nan"),
        f"8: roots.west.traffic[0].load: .nan is not a finite decimal number; accepted: {YAML_NUMBER}",
    ),
    "no stages": (
        edit("rate: 80 /s", "stages: []"),
        "8: roots.west.traffic[0].stages: the list is empty; accepted: a list of at least 1, each item a mapping with the keys at, rate, load",
    ),
    "stages at one instant": (
        edit("rate: 80 /s", "stages: [{at: 0 s, rate: 1 /s}, {at: 0 s, rate: 2 /s}]"),
        "8: roots.west.traffic[0]: the stage at 0 s does not lie after the one before it, at 0 s; accepted: stages that follow each other in time",
    ),
    "a stage without a rate": (
        edit("rate: 80 /s", "stages: [{at: 0 s}]"),
        "8: roots.west.traffic[0].stages[0]: none is given, one is due; accepted: one of rate, load",
    ),
    "misspelt arrivals": (
        edit("rate: 80 /s", "rate: 80 /s, arrivals: poison"),
        "8: roots.west.traffic[0].arrivals: 'poison' is unknown (poisson?); accepted: poisson, evenly_spaced or a mapping with the keys gamma",
    ),
    "arrivals without spread": (
        edit("rate: 80 /s", "rate: 80 /s, arrivals: {gamma: {cv: 0}}"),
        "8: roots.west.traffic[0].arrivals.gamma.cv: 0 is out of range; accepted: a number above 0",
    ),
    "a misspelt key where a word or a mapping is due": (
        edit("rate: 80 /s", "rate: 80 /s, arrivals: {gama: {cv: 1}}"),
        "8: roots.west.traffic[0].arrivals.gama: unknown key (gamma?); accepted: gamma",
    ),
    "a list where a word or a mapping is due": (
        edit("rate: 80 /s", "rate: 80 /s, arrivals: [1]"),
        "8: roots.west.traffic[0].arrivals: a list is given, not a word or a mapping; accepted: poisson, evenly_spaced or a mapping with the keys gamma",
    ),
    "a weight without a trace": (
        edit("rate: 80 /s", "rate: 80 /s, weight: 2"),
        "8: roots.west.traffic[0].weight: goes with roots.west.traffic[0].trace, which is missing; accepted: a trace, or no weight",
    ),
    "an unknown trace": (
        edit("rate: 80 /s", "trace: azure"),
        "8: roots.west.traffic[0].trace: 'azure' is not in traces; accepted: a key of traces, which has none",
    ),
    "an unknown cell": (
        edit("allowed: [us, eu]", "allowed: [us, asia]"),
        "9: roots.west.allowed[1]: 'asia' is not in cells; accepted: us, eu",
    ),
    "a word for a list": (
        edit("allowed: [us, eu]", "allowed: us"),
        "9: roots.west.allowed: 'us' is given, not a list; accepted: a list of at least 1, each item a name",
    ),
    "no cell allowed": (
        edit("allowed: [us, eu]", "allowed: []"),
        "9: roots.west.allowed: the list is empty; accepted: a list of at least 1, each item a name",
    ),
    "a cell allowed twice": (
        edit("allowed: [us, eu]", "allowed: [us, us]"),
        "9: roots.west.allowed[1]: 'us' is named twice; accepted: each name once",
    ),
    "a country that YAML reads as false": (
        edit("allowed: [us, eu]", "allowed: [us, no]"),
        "9: roots.west.allowed[1]: no is read as false, not a name; accepted: a name",
    ),
    "a class allowed more than its root": (
        edit(
            ", policy: flow}]\n    allowed: [us, eu]",
            ", policy: flow, allowed: [us, eu]}]\n    allowed: [us]",
        ),
        "8: roots.west.traffic[0].allowed[1]: 'eu' is not in roots.west.allowed; accepted: us",
    ),
    "a misspelt profile": (
        edit("profile: small", "profile: smal"),
        f"4: cells.us.profile: 'smal' is not in the GPU profiles (small?); accepted: {', '.join(PROFILES)}",
    ),
    "profile and service": (
        edit("profile: small", "profile: small, service: {slots: 1, fixed: 1 s}"),
        "4: cells.us: profile and service are given, one is due; accepted: one of profile, service",
    ),
    "a service of two kinds": (
        edit("profile: small", "service: {slots: 1, rate_curve: {capacity: 8 /s, half: 2}}"),
        "4: cells.us.service: slots and rate_curve are given, one is due; accepted: one of slots, sharing, rate_curve",
    ),
    "slots that take no time": (
        edit("profile: small", "service: {slots: 1}"),
        "4: cells.us.service: none is given, one is due; accepted: one of exponential, fixed, normal",
    ),
    "work for slots": (
        edit("profile: small", "service: {slots: 1, fixed: 1 s, work: fixed}"),
        "4: cells.us.service: work goes with rate_curve, which is missing; accepted: exponential, fixed or normal for slots and sharing",
    ),
    "a service time for a rate curve": (
        edit("profile: small", "service: {rate_curve: {capacity: 8 /s, half: 2}, fixed: 1 s}"),
        "4: cells.us.service: exponential, fixed and normal do not go with rate_curve; accepted: work: exponential or fixed",
    ),
    "fixed work without chance": (
        edit("profile: small", "service: {slots: 1, fixed: 1 s, sampling: low_discrepancy}"),
        "4: cells.us.service: sampling: low_discrepancy goes with exponential work; accepted: exponential work, or sampling: chance",
    ),
    "an antagonist that leaves something else now and then": (
        edit(
            "profile: small",
            "service: {sharing: {allocation: 6, antagonist: {cores: [12, 6], probabilities: [0.8, 0.1], every: 10 s}}, fixed: 1 s}",
        ),
        "4: cells.us.service.sharing.antagonist: the probabilities add up to 0.9; accepted: probabilities that add up to 1",
    ),
    "an antagonist without a probability": (
        edit(
            "profile: small",
            "service: {sharing: {allocation: 6, antagonist: {cores: [12, 6], probabilities: [1.0], every: 10 s}}, fixed: 1 s}",
        ),
        "4: cells.us.service.sharing.antagonist: 2 cores and 1 probabilities are given; accepted: a probability for each number of cores",
    ),
    "flow routing at a leaf": (
        edit("leaf: {policy: idlest}", "leaf: {policy: flow}"),
        "5: cells.eu.leaf.policy: 'flow' is a policy for roots (policies.flow.kind: flow moves shares of cells); accepted: a policy of another kind",
    ),
    "prequal at a root": (
        edit("{kind: flow, step: 0.1 /s^2}", "{kind: prequal}"),
        "8: roots.west.traffic[0].policy: 'flow' is a policy for leaves (policies.flow.kind: prequal probes servers); accepted: a policy of another kind",
    ),
    "queries over utilisation at a root": (
        edit("{kind: flow, step: 0.1 /s^2}", "{kind: weighted_utilisation}"),
        "8: roots.west.traffic[0].policy: 'flow' is a policy for leaves (policies.flow.kind: weighted_utilisation needs the busy time that servers report); accepted: a policy of another kind",
    ),
    "c3 at a root": (
        edit("{kind: flow, step: 0.1 /s^2}", "{kind: c3}"),
        "8: roots.west.traffic[0].policy: 'flow' is a policy for leaves (policies.flow.kind: c3 probes servers); accepted: a policy of another kind",
    ),
    "a share of a probe to wait for": (
        edit(
            "{kind: least_cost, cost: in_flight, view: own_counts}",
            "{kind: prequal, mode: sync, probes_per_request: 2.5}",
        ),
        "14: policies.idlest: 2.5 probes_per_request do not go with mode: sync; accepted: a whole number from 2",
    ),
    "idle probes without a pool": (
        edit(
            "{kind: least_cost, cost: in_flight, view: own_counts}",
            "{kind: prequal, mode: sync, idle_probe_after: 1 s}",
        ),
        "14: policies.idlest: idle_probe_after does not go with mode: sync, which has no pool to fill; accepted: mode: async",
    ),
    "a misspelt kind": (
        edit("kind: flow,", "kind: flwo,"),
        f"13: policies.flow.kind: 'flwo' is unknown (flow?); accepted: {KINDS}",
    ),
    "a missing kind": (
        edit("kind: flow,", ""),
        f"13: policies.flow: kind is missing; accepted: {KINDS}",
    ),
    "a bad import path": (
        edit("kind: flow, step: 0.1 /s^2", "kind: 'a:b:c'"),
        "13: policies.flow.kind: 'a:b:c' is not an import path; accepted: my_module:MyPolicy",
    ),
    "a user's policy with keys of its own": (
        edit("kind: flow,", "kind: a:b,"),
        f"13: policies.flow.step: unknown key (stale?); accepted: kind, params, {VIEW_KEYS}",
    ),
    "a word for a policy": (
        edit("{kind: flow, step: 0.1 /s^2}", "flow"),
        f"13: policies.flow: 'flow' is given, not a mapping; accepted: a mapping with kind: {KINDS}",
    ),
    "a step per second for a cost in seconds": (
        edit("0.1 /s^2", "0.1 /s"),
        "13: policies.flow.step: '0.1 /s' does not fit policies.flow.cost: marginal, which is in seconds; accepted: a step such as '0.1 /s^2'",
    ),
    "a step per second squared for a cost in requests": (
        edit("0.1 /s^2", "0.1 /s^2, cost: in_flight"),
        "13: policies.flow.step: '0.1 /s^2' does not fit policies.flow.cost: in_flight, which is in requests; accepted: a step such as '0.1 /s'",
    ),
    "a step per second for requests per capacity": (
        edit("0.1 /s^2", "0.1 /s, cost: in_flight_per_capacity"),
        "13: policies.flow.step: '0.1 /s' does not fit policies.flow.cost: in_flight_per_capacity, which is in seconds; accepted: a step such as '0.1 /s^2'",
    ),
    "a step that climbs": (
        edit("0.1 /s^2", "-0.1 /s^2"),
        "13: policies.flow.step: '-0.1 /s^2' is out of range; accepted: auto or a step such as '0.1 /s^2' or a mapping with the keys critical, load",
    ),
    "a step without unit": (
        edit("0.1 /s^2", "0.1"),
        "13: policies.flow.step: 0.1 has no unit; accepted: auto or a step such as '0.1 /s^2' or a mapping with the keys critical, load",
    ),
    "a misspelt step": (
        edit("0.1 /s^2", "atuo"),
        "13: policies.flow.step: 'atuo' is not a step; accepted: auto or a step such as '0.1 /s^2' or a mapping with the keys critical, load",
    ),
    "a critical step without its load": (
        edit("0.1 /s^2", "{critical: 0.1}"),
        "13: policies.flow.step: load is missing; accepted: a number above 0 and below 1",
    ),
    "a critical step at more than the capacity": (
        edit("0.1 /s^2", "{critical: 0.1, load: 1.2}"),
        "13: policies.flow.step.load: 1.2 is out of range; accepted: a number above 0 and below 1",
    ),
    "a list of steps": (
        edit("0.1 /s^2", "[0.1 /s^2]"),
        "13: policies.flow.step: a list is given, not a step, a word or a mapping; accepted: auto or a step such as '0.1 /s^2' or a mapping with the keys critical, load",
    ),
    "a bound of a step that is given": (
        edit("0.1 /s^2", "0.1 /s^2, step_floor: 0.01 /s^2"),
        "13: policies.flow.step_floor: bounds a step that policies.flow.step sets; accepted: step: auto",
    ),
    "a floor above the ceiling": (
        edit("0.1 /s^2", "auto, step_floor: 0.2 /s^2, step_ceiling: 0.1 /s^2"),
        "13: policies.flow.step_floor: '0.2 /s^2' is above policies.flow.step_ceiling, 0.1 /s^2; accepted: a step up to the ceiling",
    ),
    "a floor under more than there is": (
        edit("0.1 /s^2", "0.1 /s^2, explore: 60 %"),
        "13: policies.flow.explore: 60 % for each of the 2 targets allowed at roots.west.traffic[0] is more than all; accepted: a percentage up to 50 %",
    ),
    "a misspelt cost": (
        edit("0.1 /s^2", "0.1 /s^2, cost: inflight"),
        "13: policies.flow.cost: 'inflight' is unknown (in_flight?); accepted: in_flight, in_flight_per_capacity, latency, marginal",
    ),
    "a start at an unknown cell": (
        edit("0.1 /s^2", "0.1 /s^2, start: {us: 1, asia: 1}"),
        "13: policies.flow.start.asia: 'asia' is not a target of this policy; accepted: us, eu",
    ),
    "a start at nothing": (
        edit("0.1 /s^2", "0.1 /s^2, start: {us: 0}"),
        "13: policies.flow.start: gives nothing to the targets allowed at roots.west.traffic[0]; accepted: a number above 0 for one of us, eu",
    ),
    "a negative start": (
        edit("0.1 /s^2", "0.1 /s^2, start: {us: -1}"),
        "13: policies.flow.start.us: -1 is out of range; accepted: a number from 0",
    ),
    "a misspelt start": (
        edit("0.1 /s^2", "0.1 /s^2, start: evn"),
        "13: policies.flow.start: 'evn' is unknown (even?); accepted: even, capacity or a mapping from each name to a number from 0",
    ),
    "weights of a leaf that name cells": (
        edit("{kind: least_cost, cost: in_flight, view: own_counts}", "{kind: weighted, weights: {us: 1}}"),
        "14: policies.idlest.weights: gives nothing to the targets allowed at cells.eu.leaf; accepted: a number above 0 for one of eu/server-1, eu/server-2, eu/server-3",
        "14: policies.idlest.weights.us: 'us' is not a target of this policy; accepted: eu/server-1, eu/server-2, eu/server-3",
    ),
    "a threshold of reports that come anyway": (
        after("reports: {every: 1 s, threshold: 2}\n"),
        "15: reports: threshold does not go with send: periodic; accepted: send: on_change",
    ),
    "a lease shorter than the looks": (
        after("reports: {every: 1 s, send: on_change, lease: 500 ms}\n"),
        "15: reports: lease, 500 ms, is below every, 1 s; accepted: a lease from every on: reporters do not look more often",
    ),
    "polls of reports that come unasked": (
        after("reports: {every: 1 s, polls: serial}\n"),
        "15: reports: polls does not go with send: periodic; accepted: send: when_polled",
    ),
    "a limit on the age of reports without a meaning": (
        edit("cost: in_flight, view: own_counts", "stale_after: 2 s"),
        "14: policies.idlest: stale_after does not go with stale: last; accepted: stale: ignored, full or empty",
    ),
    "a meaning of old reports without a limit": (
        edit("cost: in_flight, view: own_counts", "stale: ignored"),
        "14: policies.idlest: stale: ignored needs stale_after, which is missing; accepted: a time such as '2 s'",
    ),
    "a limit without a unit": (
        edit("cost: in_flight, view: own_counts", "stale: ignored, stale_after: 2"),
        "14: policies.idlest.stale_after: 2 has no unit; accepted: a time such as '20 ms'",
    ),
    "holding without a bound": (
        edit("cost: in_flight, view: own_counts", "when_none: hold"),
        "14: policies.idlest: when_none: hold needs hold_queue, which is missing; accepted: a whole number from 1",
    ),
    "a bound without holding": (
        edit("cost: in_flight, view: own_counts", "hold_queue: 10"),
        "14: policies.idlest: hold_queue does not go with when_none: any; accepted: when_none: hold",
    ),
    "peers that nothing is scaled by": (
        edit("cost: in_flight, view: own_counts", "own_counts: add, peers: 4"),
        "14: policies.idlest: peers does not go with own_counts: add; accepted: own_counts: scaled",
    ),
    "a beginning of counts that are not made": (
        edit("cost: in_flight, view: own_counts", "counts_from: first_token"),
        "14: policies.idlest: counts_from: first_token needs own requests that are counted; accepted: own_counts: overwrite, add, max or scaled; or view: own_counts",
    ),
    "first tokens of servers that make none": (
        edit("eu: {servers: 3, profile: small,", "eu: {servers: 3, service: {slots: 2, fixed: 1 s},").replace(
            "view: own_counts", "view: own_counts, counts_from: first_token"
        ),
        "14: policies.idlest.counts_from: first_token does not go with cells.eu.service, which makes no tokens; accepted: servers with a GPU profile",
    ),
    "old reports where none are read": (
        edit("view: own_counts", "view: own_counts, stale: empty, stale_after: 1 s"),
        "14: policies.idlest: own_counts, stale and unheard go with reports, not with own_counts; accepted: view: reports",
    ),
    "own counts on top of own counts": (
        edit("view: own_counts", "view: own_counts, own_counts: max"),
        "14: policies.idlest: own_counts, stale and unheard go with reports, not with own_counts; accepted: view: reports",
    ),
    "full without a most": (
        edit("eu: {servers: 3, profile: small,", "eu: {servers: 3, service: {slots: 2, fixed: 1 s},").replace(
            "view: own_counts", "unheard: full"
        ),
        "14: policies.idlest.unheard: full does not go with cells.eu.service, which has no most requests in flight; accepted: servers with a GPU profile",
    ),
    "no tokens": (
        edit("prompt_tokens: 48", "prompt_tokens: 0"),
        f"11: classes.sand.prompt_tokens: 0 is out of range; accepted: {TOKENS}",
    ),
    "more tokens than any context has": (
        edit("prompt_tokens: 48", "prompt_tokens: 1000000001"),
        f"11: classes.sand.prompt_tokens: 1000000001 is out of range; accepted: {TOKENS}",
    ),
    "a lognormal mean beyond 64 bits": (
        edit("prompt_tokens: 48", "prompt_tokens: {lognormal: {mean: 1.0e+19, cv: 1}}"),
        "11: classes.sand.prompt_tokens.lognormal.mean: 1.0e+19 is out of range; accepted: a number above 0 to 1000000000",
    ),
    "a lognormal that is all tail": (
        edit("prompt_tokens: 48", "prompt_tokens: {lognormal: {mean: 48, cv: 101}}"),
        "11: classes.sand.prompt_tokens.lognormal.cv: 101 is out of range; accepted: a number from 0 to 100",
    ),
    "a geometric mean beyond 64 bits": (
        edit("geometric: {mean: 8}", "geometric: {mean: 1.0e+19}"),
        "11: classes.sand.output_tokens.geometric.mean: 1.0e+19 is out of range; accepted: a number from 1 to 1000000000",
    ),
    "a quantile beyond 64 bits": (
        edit("prompt_tokens: 48", "prompt_tokens: {quantiles: [[0, 1], [1, 1.0e+19]]}"),
        "11: classes.sand.prompt_tokens.quantiles[1][1]: 1.0e+19 is out of range; accepted: a number from 0 to 1000000000",
    ),
    "a fault that makes tokens beyond 64 bits": (
        after("faults: [{at: 1 s, class: sand, set: {prompt_tokens: x1e300}}]\n"),
        "15: faults[0].set.prompt_tokens: 'x1e300' is out of range; accepted: a factor such as 'x3', above 0 to 1000000000",
    ),
    "half a token": (
        edit("prompt_tokens: 48", "prompt_tokens: 48.5"),
        f"11: classes.sand.prompt_tokens: 48.5 is given, not a whole number or a mapping; accepted: {TOKENS}",
    ),
    "a lognormal without spread": (
        edit("prompt_tokens: 48", "prompt_tokens: {lognormal: {mean: 48}}"),
        "11: classes.sand.prompt_tokens.lognormal: cv is missing; accepted: a number from 0 to 100",
    ),
    "tokens of two kinds": (
        edit("prompt_tokens: 48", "prompt_tokens: {fixed: 3, geometric: {mean: 2}}"),
        "11: classes.sand.prompt_tokens: fixed and geometric are given, one is due; accepted: one of fixed, lognormal, geometric, quantiles",
    ),
    "a geometric mean below one": (
        edit("prompt_tokens: 48", "prompt_tokens: {geometric: {mean: 0.5}}"),
        "11: classes.sand.prompt_tokens.geometric.mean: 0.5 is out of range; accepted: a number from 1 to 1000000000",
    ),
    "quantiles that end early": (
        edit("prompt_tokens: 48", "prompt_tokens: {quantiles: [[0, 1], [0.5, 3]]}"),
        "11: classes.sand.prompt_tokens: the quantiles lead from probability 0 to 0.5; accepted: quantiles from 0 to 1",
    ),
    "quantiles that are no pairs": (
        edit("prompt_tokens: 48", "prompt_tokens: {quantiles: [[0, 1, 2], [1]]}"),
        "11: classes.sand.prompt_tokens.quantiles[0]: 3 given, 2 due; accepted: a list of 2: a number from 0 to 1, a number from 0 to 1000000000",
        "11: classes.sand.prompt_tokens.quantiles[1]: 1 given, 2 due; accepted: a list of 2: a number from 0 to 1, a number from 0 to 1000000000",
    ),
    "a single quantile": (
        edit("prompt_tokens: 48", "prompt_tokens: {quantiles: [[0, 1]]}"),
        "11: classes.sand.prompt_tokens.quantiles: 1 given, at least 2 due; accepted: a list of at least 2, each item a list of 2: a number from 0 to 1, a number from 0 to 1000000000",
    ),
    "quantiles that fall": (
        edit("prompt_tokens: 48", "prompt_tokens: {quantiles: [[0, 5], [1, 2]]}"),
        "11: classes.sand.prompt_tokens: the quantile [1, 2] does not lie above the one before it, [0, 5]; accepted: quantiles that rise, such as [[0, 1], [0.5, 120], [1, 900]]",
    ),
    "an unknown distribution": (
        edit("prompt_tokens: 48", "prompt_tokens: {poisson: 3}"),
        "11: classes.sand.prompt_tokens.poisson: unknown key; accepted: fixed, lognormal, geometric, quantiles",
    ),
    "a warm-up as long as the run": (
        after("warmup: 20 s\n"),
        "15: warmup: 20 s is not below duration, 20 s; accepted: a time below the duration",
    ),
    "windows in the warm-up, beyond the end, and the wrong way round": (
        after(
            "warmup: 2 s\nwindows: {a: {from: 1 s, to: 3 s}, b: {from: 3 s, to: 21 s}, c: {from: 4 s, to: 4 s}}\n"
        ),
        "16: windows.a.from: 1 s is below warmup, 2 s; accepted: a time from the end of the warm-up on",
        "16: windows.b.to: 21 s is above duration, 20 s; accepted: a time up to the duration",
        "16: windows.c.to: 4 s is not above windows.c.from, 4 s; accepted: a time after the beginning",
    ),
    "a window whose name could not stand in a metric": (
        after("windows: {a.b: {from: 1 s, to: 3 s}}\n"),
        "15: windows.a.b: 'a.b' is not a name; accepted: letters, digits, _ and -",
    ),
    "a negative seed": (
        after("seed: -1\n"),
        "15: seed: -1 is out of range; accepted: a whole number from 0",
    ),
    "a misspelt key of the file": (
        after("sede: 1\n"),
        f"15: sede: unknown key (seed?); accepted: {KEYS}",
    ),
    "a misspelt key of the file that no scenario has": (
        after("arm: {}\n"),
        f"15: arm: unknown key (arms?); accepted: {KEYS}",
    ),
    "a key twice": (
        after("seed: 1\nseed: 2\n"),
        "16: seed: duplicate key; the first is in line 15; accepted: each key once",
    ),
    "a time scale that underflows": (
        after("time_scale: 1.0e-170\n"),
        "15: time_scale: 1.0e-170 is out of range; accepted: a number from 0.001 to 1000",
    ),
    "a time scale beyond all use": (
        after("time_scale: 1001\n"),
        "15: time_scale: 1001 is out of range; accepted: a number from 0.001 to 1000",
    ),
    "a time scale of zero": (
        after("time_scale: 0\n"),
        "15: time_scale: 0 is out of range; accepted: a number from 0.001 to 1000",
    ),
    "a time scale with unit": (
        after("time_scale: 1 s\n"),
        "15: time_scale: '1 s' is given, not a number; accepted: a number from 0.001 to 1000",
    ),
    "an unknown transport": (
        after("live: {transport: udp}\n"),
        "15: live.transport: 'udp' is unknown; accepted: ipc, tcp",
    ),
    "more than all decisions": (
        after("records: {decisions: 101 %}\n"),
        "15: records.decisions: '101 %' is out of range; accepted: a percentage such as '1 %', from 0 to 100",
    ),
    "reports without pause": (
        after("reports: {every: 0 s}\n"),
        "15: reports.every: '0 s' is out of range; accepted: a time such as '20 ms', above 0",
    ),
    "a process whose word finds no node": (
        after("processes: {named: {a: [root.wset]}}\n"),
        f"15: processes.named.a[0]: 'root.wset' matches no node (root.west?); accepted: {NODES}",
    ),
    "a node in two processes": (
        after("processes: {named: {a: [root.west], b: [root.*]}}\n"),
        "15: processes.named.b[0]: root.west is in 'a' already; accepted: each node in one process",
    ),
    "cells dealt over no process": (
        after("processes: {cells: 0}\n"),
        "15: processes.cells: 0 is out of range; accepted: a whole number from 1",
    ),
    "groups that hold each other": (
        after("groups: {a: [b], b: [a]}\n"),
        "15: groups.a[0]: 'b' leads back to 'a'; accepted: nodes, globs, other groups",
        "15: groups.b[0]: 'a' leads back to 'b'; accepted: nodes, globs, other groups",
    ),
    "a group of nobody": (
        after("groups: {a: [root.wset]}\n"),
        f"15: groups.a[0]: 'root.wset' matches no node (root.west?); accepted: {NODES}",
    ),
    "a name that no file can have": (
        after(f"groups: {{{'a' * 51}: [root.west]}}\n"),
        f"15: groups.{'a' * 51}: {shortened(repr('a' * 51))} is too long for a name; accepted: up to 50 characters",
    ),
    "an arm whose name no file can have": (
        after(f"arms: {{{'a' * 250}: {{}}}}\n"),
        f"15: arms.{'a' * 80}...: {shortened(repr('a' * 250))} is too long for a name; accepted: up to 50 characters",
    ),
    "a name with a space": (
        after("groups: {a b: [root.west]}\n"),
        "15: groups.a b: 'a b' is not a name; accepted: letters, digits, _ and -",
    ),
    "an unknown trace format": (
        after("traces: {t: {path: x.csv, format: azur}}\n"),
        "15: traces.t.format: 'azur' is unknown (azure?); accepted: azure, mooncake",
    ),
    "a link from nowhere": (
        edit("from: root.*", "from: rot.*"),
        f"16: links[0].from: 'rot.*' matches no node; accepted: {NODES}",
    ),
    "a root without its prefix": (
        edit("from: root.*", "from: west"),
        f"16: links[0].from: 'west' matches no node (root.west?); accepted: {NODES}",
    ),
    "a link between roots": (
        edit("to: cell.*", "to: root.*"),
        "16: links[0]: no link goes from 'root.*' to 'root.*'; accepted: root and cell, cell and root, or a leaf and servers of its cell",
    ),
    "a server that does not exist": (
        edit("to: cell.*", "to: us/server-9"),
        f"16: links[0].to: 'us/server-9' matches no node (us/server-4?); accepted: {NODES}",
    ),
    "a path that no such link carries": (
        edit("path: request", "path: observation"),
        "16: links[0].path: no link from 'root.*' to 'cell.*' carries 'observation'; accepted: probe, request",
    ),
    "uniform jitter wider than its delay": (
        edit("delay: 20 ms", "delay: 20 ms, jitter: {uniform: 30 ms}"),
        "16: links[0].jitter.uniform: 30 ms is wider than links[0].delay, 20 ms; accepted: a time up to the delay",
    ),
    "uniform jitter wider than the delay of a later line": (
        edit(
            "  - {from: cell.*, to: root.*, delay: 500 ms}",
            "  - {from: root.*, to: cell.*, jitter: {uniform: 20 ms}}\n  - {from: root.*, to: cell.us, delay: 10 ms}",
        ),
        "17: links[1].jitter.uniform: 20 ms is wider than links[2].delay, 10 ms; accepted: a time up to the delay",
    ),
    "lognormal jitter of no delay": (
        edit("delay: 20 ms", "jitter: {lognormal: 30 ms}"),
        "16: links[0].jitter.lognormal: 30 ms is spread around links[0].delay, which is 0; accepted: a delay above 0",
    ),
    "jitter of two kinds": (
        edit("delay: 20 ms", "jitter: {normal: 2 ms, uniform: 3 ms}"),
        "16: links[0].jitter: normal and uniform are given, one is due; accepted: one of normal, uniform, lognormal, pareto, exponential, table",
    ),
    "a time for jitter": (
        edit("delay: 20 ms", "jitter: 2 ms"),
        "16: links[0].jitter: '2 ms' is given, not a mapping; accepted: a mapping with the keys normal, uniform, lognormal, pareto, exponential, table",
    ),
    "a misspelt order": (
        edit("delay: 20 ms", "order: keep"),
        "16: links[0].order: 'keep' is unknown (kept?); accepted: kept, free",
    ),
    "a table of one delay": (
        edit("delay: 20 ms", "jitter: {table: [1 ms]}"),
        "16: links[0].jitter.table: 1 given, at least 2 due; accepted: a list of at least 2, each item a time such as '20 ms'",
    ),
    "a server that stands still": (
        after("faults:\n  - {at: 12 s, cell: eu, set: {speed: 0}}\n"),
        "16: faults[0].set.speed: 0 is out of range; accepted: a number above 0",
    ),
    "a fault of an unknown cell": (
        after("faults:\n  - {at: 12 s, cell: asia, set: {speed: 0.4}}\n"),
        "16: faults[0].cell: 'asia' is not in cells; accepted: us, eu",
    ),
    "a fault after the end": (
        after("faults:\n  - {at: 20 s, cell: eu, set: {speed: 0.4}}\n"),
        "16: faults[0].at: 20 s is not below duration, 20 s; accepted: a time below the duration",
    ),
    "a fault of an unknown server": (
        after("faults:\n  - {at: 1 s, server: eu/server-9, set: {speed: 1}}\n"),
        "16: faults[0].server: 'eu/server-9' matches no server (eu/server-3?); accepted: us/server-1, us/server-2, us/server-3, us/server-4, eu/server-1, eu/server-2, eu/server-3",
    ),
    "a fault of nothing": (
        after("faults:\n  - {at: 1 s, set: {speed: 1}}\n"),
        "16: faults[0]: none is given, one is due; accepted: one of cell, server, leaf, link, partition, root, class",
    ),
    "a fault that changes nothing": (
        after("faults:\n  - {at: 1 s, cell: eu, set: {}}\n"),
        "16: faults[0]: set is empty: nothing would change; accepted: a mapping with one or more of the keys clock_drift, clock_skew, drain, error_after, errors, gauge_factor, gauge_offset, kill, leak, pause, prefill, reset_counts, speed, telemetry",
    ),
    "a fault on a leaf that is not there": (
        after("faults:\n  - {at: 1 s, leaf: us/leaf-2, set: {pause: true}}\n"),
        "16: faults[0].leaf: 'us/leaf-2' matches no leaf (us/leaf-1?); accepted: us/leaf-1, eu/leaf-1",
    ),
    "errors of a leaf": (
        after("faults:\n  - {at: 1 s, leaf: us/leaf-1, set: {errors: 5 %}}\n"),
        "16: faults[0]: errors is set on a cell or a server, not on a leaf; accepted: a mapping with one or more of the keys clock_drift, clock_skew, drain, gauge_factor, gauge_offset, kill, leak, pause, reset_counts, telemetry",
    ),
    "dead and stopped": (
        after("faults:\n  - {at: 1 s, server: us/server-1, set: {kill: true, pause: true}}\n"),
        "16: faults[0].set: kill does not go with pause: a process is dead or stopped; accepted: kill or pause",
    ),
    "how soon what fails": (
        after("faults:\n  - {at: 1 s, server: us/server-1, set: {error_after: 5 ms}}\n"),
        "16: faults[0].set: error_after goes with errors, which is missing; accepted: errors, or no error_after",
    ),
    "the death of one of two in a process": (
        after(
            "processes: {roots: 1, cells: 1}\nfaults:\n  - {at: 1 s, server: us/server-1, set: {kill: true}}\n"
        ),
        "17: faults[0].set.kill: touches us/server-1, which shares the process 'cells-1' with 8 others by processes; "
        "accepted: nodes with a process of their own",
    ),
    "a delay of a cell": (
        after("faults:\n  - {at: 1 s, cell: eu, set: {delay: 1 s}}\n"),
        "16: faults[0]: delay is set on a link, not on a cell; accepted: a mapping with one or more of the keys clock_drift, clock_skew, drain, error_after, errors, gauge_factor, gauge_offset, kill, leak, pause, prefill, reset_counts, speed, telemetry",
    ),
    "a speed of a link": (
        after("faults:\n  - {at: 1 s, link: {from: cell.us, to: root.*}, set: {speed: 2}}\n"),
        "16: faults[0]: speed is set on a cell or a server, not on a link; accepted: a mapping with one or more of the keys bandwidth, correlation, cut, delay, duplicate, flap, jitter, loss, loss_burst, order, queue, rate, reorder, replay",
    ),
    "a fault of a link to nowhere": (
        after("faults:\n  - {at: 1 s, link: {from: cell.us, to: root.est}, set: {delay: 2 s}}\n"),
        f"16: faults[0].link.to: 'root.est' matches no node (root.west?); accepted: {NODES}",
    ),
    "a fault that widens jitter beyond the delay": (
        after("faults:\n  - {at: 1 s, link: {from: root.*, to: cell.*}, set: {jitter: {uniform: 25 ms}}}\n"),
        "16: faults[0].set.jitter.uniform: 25 ms is wider than links[0].delay, 20 ms; accepted: a time up to the delay",
    ),
    "a rate without a queue": (
        edit("delay: 20 ms", "rate: 10 /s"),
        "16: links[0]: queue is missing: how many messages may wait for the rate; accepted: a whole number from 0",
    ),
    "a queue without a rate": (
        edit("delay: 20 ms", "queue: 10"),
        "16: links[0]: queue goes with rate or bandwidth, which are missing; accepted: one of these, or no queue",
    ),
    "a bandwidth without its unit": (
        edit("delay: 20 ms", "bandwidth: 100 kb/s, queue: 1"),
        "16: links[0].bandwidth: '100 kb/s' has the unknown unit 'kb/s'; accepted: a bandwidth such as '10 Mbit/s' (B/s, kB/s, MB/s, GB/s, bit/s, kbit/s, Mbit/s, Gbit/s)",
    ),
    "reordering where order is kept": (
        edit("delay: 20 ms", "reorder: {fraction: 5 %}, order: kept"),
        "16: links[0]: reorder does not go with order: kept; accepted: order: free",
    ),
    "reordering where an earlier line keeps order": (
        edit(
            "  - {from: root.*, to: cell.*, path: request, delay: 20 ms}",
            "  - {from: root.*, to: cell.*, order: kept}\n  - {from: root.*, to: cell.us, reorder: {fraction: 5 %}}",
        ),
        "17: links[1].reorder: has no effect beside links[0].order, which is kept; accepted: order: free",
    ),
    "a fault that reorders where order is kept": (
        edit("delay: 20 ms}", "order: kept}").replace(
            "links:\n",
            "faults:\n  - {at: 1 s, link: {from: root.*, to: cell.us}, set: {reorder: {fraction: 5 %}}}\nlinks:\n",
        ),
        "16: faults[0].set.reorder: has no effect beside links[0].order, which is kept; accepted: order: free",
    ),
    "a fault that keeps the order of what is reordered": (
        edit("delay: 20 ms}", "reorder: {fraction: 5 %}}").replace(
            "links:\n",
            "faults:\n  - {at: 1 s, link: {from: root.*, to: cell.us}, set: {order: kept}}\nlinks:\n",
        ),
        "18: links[0].reorder: has no effect beside faults[0].set.order, which is kept; accepted: order: free",
    ),
    "a message both ahead and late": (
        edit("delay: 20 ms", "reorder: {fraction: 5 %, ahead: 1 ms, late: 1 ms}"),
        "16: links[0].reorder: both ahead and late are given; accepted: one of ahead, late, or neither",
    ),
    "a perfect correlation": (
        edit("delay: 20 ms", "correlation: 1"),
        "16: links[0].correlation: 1 is out of range; accepted: a number from 0 and below 1",
    ),
    "more loss than bursts can bring": (
        edit("delay: 20 ms", "loss: 80 %, loss_burst: 3"),
        "16: links[0].loss: 80 % is more than bursts of 3 can lose (links[0].loss_burst); accepted: up to 75 %",
    ),
    "an exponential part wider than the delay": (
        edit("delay: 20 ms", "delay: 20 ms, jitter: {exponential: 30 ms}"),
        "16: links[0].jitter.exponential: 30 ms is more than links[0].delay, 20 ms, of which it is a part; accepted: a time up to the delay",
    ),
    "a change that is no time": (
        after("faults:\n  - {at: 1 s, link: {from: root.*, to: cell.*}, set: {delay: +200}}\n"),
        "16: faults[0].set.delay: 200 has no unit; accepted: a time or a change of it such as '2 s', '+200 ms' or 'x3'",
    ),
    "a demand without its x": (
        after("faults:\n  - {at: 1 s, root: west, set: {demand: 3}}\n"),
        "16: faults[0].set.demand: 3 is not a factor; accepted: a factor such as 'x3'",
    ),
    "a speed for a root": (
        after("faults:\n  - {at: 1 s, root: west, set: {speed: 3}}\n"),
        "16: faults[0]: speed is set on a cell or a server, not on a root; accepted: a mapping with one or more of the keys burst, demand, kill, leak, output_tokens, pause, prompt_tokens, reset_counts, shift",
    ),
    "a fault that sets nothing": (
        after("faults:\n  - {at: 1 s, root: west}\n"),
        "16: faults[0]: set is missing: what the fault changes; accepted: a mapping with one or more of the keys burst, demand, kill, leak, output_tokens, pause, prompt_tokens, reset_counts, shift",
    ),
    "a partition that sets something": (
        after("faults:\n  - {at: 1 s, partition: [root.west, cell.us], set: {delay: 1 s}}\n"),
        "16: faults[0]: a partition takes neither set nor pick: it cuts the links between its groups; accepted: a partition without set and pick",
    ),
    "a partition that leaves nobody on one side": (
        after("faults:\n  - {at: 1 s, partition: [root.west, cell.su]}\n"),
        "16: faults[0].partition[1]: 'cell.su' matches no node (cell.us?); accepted: a node, a glob or a group, such as root.*, cell.us",
    ),
    "a node on both sides of a partition": (
        after("faults:\n  - {at: 1 s, partition: [cell.*, cell.us]}\n"),
        "16: faults[0].partition[1]: 'us/leaf-1' is on this side and in faults[0].partition[0]; accepted: each node on one side",
    ),
    "a fault of an unknown root": (
        after("faults:\n  - {at: 1 s, root: wset, set: {demand: x3}}\n"),
        "16: faults[0].root: 'wset' matches no root; accepted: root.west",
    ),
    "a shift to nowhere": (
        after("faults:\n  - {at: 1 s, root: west, set: {shift: {to: east, share: 50 %}}}\n"),
        "16: faults[0].set.shift.to: 'east' is not in roots (west?); accepted: west",
    ),
    "a fault that begins but does not end": (
        after("faults:\n  - {from: 1 s, cell: eu, set: {speed: 1}}\n"),
        "16: faults[0]: from and to go together; accepted: both, or at",
    ),
    "a fault that comes again before it ends": (
        after("faults:\n  - {at: 1 s, for: 3 s, every: 2 s, cell: eu, set: {speed: 1}}\n"),
        "16: faults[0]: every needs a fault that lasts no longer than it; accepted: a length up to every, by for or by from and to",
    ),
    "a random fault at an instant": (
        after("faults:\n  - {at: 1 s, random: {rate: 6 /min, kinds: [{cell: eu, set: {speed: 1}}]}}\n"),
        "16: faults[0]: random stands alone in its line, which gives at too; accepted: random alone, with targets in its kinds",
    ),
    "a random fault of nobody": (
        after("faults:\n  - {random: {rate: 6 /min, kinds: [{cell: ue, set: {speed: 1}}]}}\n"),
        "16: faults[0].random.kinds[0].cell: 'ue' is not in cells; accepted: us, eu",
    ),
    "more random faults than anyone can read": (
        after("faults:\n  - {random: {rate: 1000 /s, kinds: [{cell: eu, set: {speed: 1}}]}}\n"),
        "16: faults[0].random.rate: would be 20000 faults; accepted: a rate that gives up to 5000",
    ),
    "a fault at no instant": (
        after("faults:\n  - {cell: eu, set: {speed: 1}}\n"),
        "16: faults[0]: none is given, one is due; accepted: one of at, from",
    ),
    "a misspelt key of a fault": (
        after("faults:\n  - {at: 1 s, fro: 3 s, cell: eu, set: {speed: 1}}\n"),
        "16: faults[0].fro: unknown key (from?); accepted: at, for, from, to, every, times, random, cell, server, leaf, link, partition, root, class, pick, set",
    ),
    "a list of arms": (
        after("arms: [a]\n"),
        "15: arms: a list is given, not a mapping; accepted: a mapping from each arm to its overrides",
    ),
    "a number for an arm": (
        after("arms: {a: 3}\n"),
        "15: arms.a: 3 is given, not a mapping; accepted: a mapping from paths of keys to values",
    ),
    "an arm that leads to no root": (
        after("arms: {a: {roots.wset.allowed: [us]}}\n"),
        "15: arms.a.roots.wset.allowed: leads nowhere: no 'wset' in roots (west?); accepted: west",
    ),
    "an arm that leads to no item of a list": (
        after("arms: {a: {roots.*.traffic.1.policy: flow}}\n"),
        "15: arms.a.roots.*.traffic.1.policy: leads nowhere: no '1' in roots.west.traffic; accepted: 0",
    ),
    "a wrong value in an arm, told once for all that it changes": (
        after("arms: {a: {cells.*.leaf.policy: flwo}, b: {}}\n"),
        "15: arms.a.cells.*.leaf.policy: 'flwo' is not in policies (flow?); accepted: flow, idlest",
    ),
    "a misspelt key in an arm": (
        after("arms: {a: {policies: {flow: {stp: 3}}}}\n"),
        f"15: arms.a.policies.flow.stp: unknown key (step?); accepted: kind, cost, model, step, step_floor, step_ceiling, interval, update, form, max_move, explore, sampling, start, own_counts, counts_from, peers, {VIEW_KEYS}",
    ),
    "an arm whose cost no longer fits the step": (
        after("arms: {a: {policies.flow.cost: in_flight}, b: {}}\n"),
        "13: policies.flow.step: '0.1 /s^2' does not fit arms.a.policies.flow.cost: in_flight, which is in requests (in arm a); accepted: a step such as '0.1 /s'",
    ),
    "an arm that adds a second rate": (
        after("arms: {a: {roots.*.traffic.*.load: 0.5}, b: {}}\n"),
        "15: arms.a.roots.*.traffic.*.load: rate and load are given, one is due; accepted: one of rate, load, stages, trace",
    ),
    "an arm that sets a key twice": (
        after("arms: {a: {seed: 1, seed: 2}}\n"),
        "15: arms.a.seed: duplicate key; the first is in line 15; accepted: each key once",
    ),
    "an arm whose name is a path": (
        after("arms: {a.b: {}}\n"),
        "15: arms.a.b: 'a.b' is not a name; accepted: letters, digits, _ and -",
    ),
    "a fault of an arm after the end": (
        after("arms: {a: {faults: [{at: 50 s, cell: eu, set: {speed: 1}}]}, b: {}}\n"),
        "15: arms.a.faults[0].at: 50 s is not below duration, 20 s; accepted: a time below the duration",
    ),
    "an expectation of no arm": (
        after("expect: [greedy: sojourn_s.p99 > 1]\n"),
        "15: expect[0].greedy: 'greedy' is not an arm; accepted: main",
    ),
    "a number for expectations": (
        after("expect: 3\n"),
        f"15: expect: 3 is given, not a list; accepted: a list, each item arm: {FORM}",
    ),
    "a number for an expectation": (
        after("expect: [3]\n"),
        f"15: expect[0]: 3 is given, not a mapping; accepted: arm: {FORM}",
    ),
    "an expectation of two arms": (
        after("expect: [{main: x, b: y}]\n"),
        f"15: expect[0]: 2 keys given, 1 due; accepted: arm: {FORM}",
    ),
    "a misspelt metric": (
        after("expect: [main: sojurn_s.p99 > 1]\n"),
        f"15: expect[0].main: unknown metric 'sojurn_s' (sojourn_s?); accepted: {METRICS}",
    ),
    "an unknown operator": (
        after("expect: [main: sojourn_s.p99 = 3]\n"),
        f"15: expect[0].main: 'sojourn_s.p99 = 3' is not an expectation; accepted: {FORM}",
    ),
    "a share for a time": (
        after("expect: [main: sojourn_s.p99 > 5 %]\n"),
        "15: expect[0].main: '5 %' has the unknown unit '%'; accepted: a time such as '20 ms', or a number",
    ),
    "a time for a share": (
        after("expect: [main: cells.us.share > 3 ms]\n"),
        "15: expect[0].main: '3 ms' has the unknown unit 'ms'; accepted: a percentage such as '1 %', or a number",
    ),
    "an expectation against no arm": (
        after("expect: [main: sojourn_s.p99 > 1.5 * flow.sojourn_s.p99]\n"),
        "15: expect[0].main: 'flow' is not an arm; accepted: main",
    ),
    "an expectation of an unknown cell": (
        after("expect: [main: cells.usa.share > 5 %]\n"),
        "15: expect[0].main: 'usa' is not in cells (us?); accepted: us, eu",
    ),
    "an empty expectation": (
        after("expect: [main: ]\n"),
        f"15: expect[0].main: nothing is given, not an expectation; accepted: {FORM}",
    ),
    "an indentation that fits nothing": (
        after("reports:\n  every: 1 s\n every: 2 s\n"),
        "17: not YAML: expected <block end>, but found '<block mapping start>'",
    ),
    "a tab": (
        after("reports:\n\tevery: 1 s\n"),
        "16: a tab where YAML allows none; accepted: spaces",
    ),
    "a list without end": (
        after("x: [1\n"),
        "16: not YAML: expected ',' or ']', but got ':'",
    ),
    "an alias of nothing": (
        after("x: *a\n"),
        "15: not YAML: found undefined alias 'a'",
    ),
    "a tag that would run a program": (
        after("live: !!python/object/apply:os.system [ls]\n"),
        "15: live: the tag !!python/object/apply:os.system is not read; accepted: plain YAML",
    ),
    "a second document": (
        after("---\nx: 1\n"),
        "15: a second document begins; accepted: one document a file",
    ),
    "a number for a key": (
        after("1: x\n"),
        "15: the key 1 is read as a number; accepted: quotes around it: '1'",
        f"15: 1: unknown key; accepted: {KEYS}",
    ),
    "a list for a key": (
        after("? [a]\n: x\n"),
        "15: a list or a mapping stands where a key is due; accepted: a name",
    ),
    "a merge key": (
        after("<<: {seed: 1}\n"),
        "15: merge keys (<<) are not read; accepted: the keys themselves, or arms",
    ),
    "an alias that holds itself": (
        after("groups: {a: &a [*a]}\n"),
        "15: groups.a[0]: a list is given, not a name; accepted: a name",
        "15: groups.a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]...: nested deeper than 40 levels",
    ),
    "a control character": (
        after("seed: \u0001\n"),
        "15: the character '\\x01' does not belong in a text file",
    ),
    "half of a character": (
        after('groups: {a: ["\\ud800"]}\n'),
        "15: groups.a[0]: \\ud800 is not text; accepted: plain letters",
    ),
    "an escape beyond Unicode": (
        after('groups:\n  a: ["\\UFFFFFFFF"]\n'),
        "16: not YAML: an escape beyond Unicode, or a number beyond reason",
    ),
    "faults of parts and between others": (
        edit("servers: 4", "servers: 0")
        .replace("duration: 20 s", "duration: 20 s\nwarmup: 30 s")
        .replace("step: 0.1 /s^2", "step: 0.1 /s")
        .replace("to: root.*", "to: root.east")
        + "faults: [{at: 50 s, cell: us, set: {speed: 0.4}}]\n",
        "3: warmup: 30 s is not below duration, 20 s; accepted: a time below the duration",
        "5: cells.us.servers: 0 is out of range; accepted: a whole number from 1",
        "14: policies.flow.step: '0.1 /s' does not fit policies.flow.cost: marginal, which is in seconds; accepted: a step such as '0.1 /s^2'",
        f"18: links[1].to: 'root.east' matches no node (root.west?); accepted: {NODES}",
        "19: faults[0].at: 50 s is not below duration, 20 s; accepted: a time below the duration",
    ),
    "a broken line of links beside one that touches nothing": (
        edit("path: request, delay: 20 ms", "path: request, delay: 20").replace(
            "from: cell.*", "from: cell.su"
        ),
        "16: links[0].delay: 20 has no unit; accepted: a time such as '20 ms'",
        f"17: links[1].from: 'cell.su' matches no node (cell.us?); accepted: {NODES}",
    ),
    "a broken root that others do not depend on": (
        edit("rate: 80 /s, policy: flow", "rate: 80").replace(
            "leaf: {policy: idlest}", "leaf: {policy: flow}"
        ),
        "5: cells.eu.leaf.policy: 'flow' is a policy for roots (policies.flow.kind: flow moves shares of cells); accepted: a policy of another kind",
        "8: roots.west.traffic[0]: policy is missing; accepted: a name",
        "8: roots.west.traffic[0].rate: 80 has no unit; accepted: a rate such as '80 /s'",
    ),
    "a server of a cell that is broken": (
        edit("servers: 4", "servers: four") + "faults: [{at: 1 s, server: us/server-4, set: {speed: 0.4}}]\n",
        "4: cells.us.servers: 'four' is given, not a whole number; accepted: a whole number from 1",
    ),
    "groups that cannot be read": (
        after("groups: 5\n").replace("from: cell.*", "from: far"),
        "15: groups: 5 is given, not a mapping; accepted: a mapping from each name to a list, each item a name",
    ),
    "no duration, and a warm-up that may be too long": (
        edit("duration: 20 s", "warmup: 30 s").replace("step: 0.1 /s^2", "step: 0.1 /s"),
        "1: duration is missing; accepted: a time such as '20 ms'",
        "13: policies.flow.step: '0.1 /s' does not fit policies.flow.cost: marginal, which is in seconds; accepted: a step such as '0.1 /s^2'",
    ),
    "a fault that ends before it begins": (
        after(
            "faults: [{at: 1 s, link: {from: root.*, to: cell.*}, set: {delay: x2}}, {from: 3 s, to: 2 s, cell: us, set: {speed: 0.4}}]\n"
        ),
        "15: faults[1]: to, 2 s, does not lie after 3 s; accepted: an instant after that of the onset",
    ),
    "two lines of one class whose shares would be one": (
        edit("policy: flow}]", "policy: idlest}, {class: sand, rate: 9 /s, policy: flow}]"),
        "8: roots.west.traffic[1].class: 'sand' has roots.west.traffic[0] already, and 'flow' keeps shares by root and class; accepted: a class of its own, of the same keys under another name",
    ),
    "jitter beside a file that has its own": (
        edit("path: request, delay: 20 ms", "replay: {path: a.csv}, jitter: {normal: 1 ms}"),
        "16: links[0]: jitter does not go with replay, which brings its own variation; accepted: jitter or replay",
    ),
    "one of a class, which is one": (
        after("faults:\n  - {at: 1 s, class: sand, pick: one, set: {output_tokens: x2}}\n"),
        "16: faults[0]: pick does not go with class, which is one; accepted: class without pick",
    ),
    "a length beside an end": (
        after("faults:\n  - {from: 1 s, to: 2 s, for: 1 s, cell: us, set: {speed: 0.4}}\n"),
        "16: faults[0]: for does not go with from and to, which say how long; accepted: from and to, or at and for",
    ),
    "how often what does not come again": (
        after("faults:\n  - {at: 1 s, for: 1 s, times: 3, cell: us, set: {speed: 0.4}}\n"),
        "16: faults[0]: times goes with every, which is missing; accepted: every, or no times",
    ),
    "a lease of reports that are sent anyway": (
        after("reports: {lease: 2 s}\n"),
        "15: reports: lease does not go with send: periodic; accepted: send: on_change",
    ),
    "own requests beside a queue": (
        edit(
            "{kind: least_cost, cost: in_flight, view: own_counts}",
            "{kind: jsq, count: queued, own_counts: add}",
        ),
        "14: policies.idlest: own_counts does not go with count: queued: whether own requests wait is not known; accepted: count: in_flight",
    ),
    "a limit of nothing": (
        edit("servers: 4", "limit: {}, servers: 4"),
        "4: cells.us.limit: no limit is given; accepted: one or more of in_flight, queued, tokens",
    ),
    "a breaker that never opens": (
        edit("view: own_counts}", "view: own_counts, breaker: {}}"),
        "14: policies.idlest.breaker: nothing is given at which the breaker opens; accepted: one or more of in_a_row, fraction, above_others",
    ),
    "arrivals beside those of a trace": (
        edit("rate: 80 /s", "trace: t, arrivals: evenly_spaced").replace(
            "links:", "traces: {t: {path: x, format: azure}}\nlinks:"
        ),
        "8: roots.west.traffic[0].arrivals: does not go with roots.west.traffic[0].trace, which brings its own arrivals; accepted: arrivals or trace",
    ),
    "health checks that overlap": (
        edit("allowed: [us, eu]", "health_checks: {every: 1 s, timeout: 2 s}"),
        "9: roots.west.health_checks: timeout, 2 s, is above every, 1 s; accepted: a timeout up to every: a check ends before the next one begins",
    ),
}


@pytest.mark.parametrize(
    ("text", "faults"), [(case[0], case[1:]) for case in MALFORMED.values()], ids=list(MALFORMED)
)
def test_a_malformed_scenario_gets_its_whole_message(text: str, faults: tuple[str, ...]) -> None:
    with pytest.raises(ScenarioError) as raised:
        scenario_from_text(text, "two_cells.yaml")

    assert str(raised.value).split("\n") == [f"two_cells.yaml:{fault}" for fault in faults]
    assert raised.value.exit_status == 2


def test_the_good_scenario_has_no_fault() -> None:
    assert list(scenario_from_text(GOOD).arms) == ["main"]


def test_every_message_about_what_a_file_says_tells_what_is_accepted() -> None:
    """Others tell of text that is no YAML, or none that anybody could read."""
    bare = [fault for case in MALFORMED.values() for fault in case[1:] if "; accepted: " not in fault]

    unreadable = ("not YAML", "nested deeper", "does not belong in a text file")
    assert [fault for fault in bare if not any(words in fault for words in unreadable)] == []


def test_there_are_at_least_fifty_malformed_scenarios() -> None:
    assert len(MALFORMED) >= 50


def test_all_faults_of_a_file_come_at_once_in_the_order_of_its_lines() -> None:
    text = (
        edit("servers: 4", "servers: 0")
        .replace("delay: 20 ms", "delay: 20")
        .replace("policy: flow", "policy: flwo")
    )

    with pytest.raises(ScenarioError) as raised:
        scenario_from_text(text.replace("delay: 500 ms", "dealy: 500 ms"), "scenarios/two_cells.yaml")

    assert str(raised.value).split("\n") == [
        "scenarios/two_cells.yaml:4: cells.us.servers: 0 is out of range; accepted: a whole number from 1",
        "scenarios/two_cells.yaml:8: roots.west.traffic[0].policy: 'flwo' is not in policies (flow?); "
        "accepted: flow, idlest",
        "scenarios/two_cells.yaml:16: links[0].delay: 20 has no unit; accepted: a time such as '20 ms'",
        f"scenarios/two_cells.yaml:17: links[1].dealy: unknown key (delay?); accepted: {LINK_KEYS}",
    ]


def test_a_fault_that_several_arms_share_is_told_once() -> None:
    text = edit("servers: 4", "servers: 0") + "arms: {a: {}, b: {}, c: {seed: 3}}\n"

    with pytest.raises(ScenarioError) as raised:
        scenario_from_text(text, "f.yaml")

    assert (
        str(raised.value) == "f.yaml:4: cells.us.servers: 0 is out of range; accepted: a whole number from 1"
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("duration", "5", "f.yaml: duration: 5 has no unit; accepted: a time such as '20 ms'"),
        ("duration", "", "f.yaml:1: duration is missing; accepted: a time such as '20 ms'"),
        ("duration", "[1", "f.yaml: duration: not YAML: expected ',' or ']', but got '<stream end>'"),
        ("roots.wset.allowed", "[us]", "f.yaml: roots.wset.allowed: leads nowhere: no 'wset' in roots (west?); accepted: west"),
        ("warmup", "50 s", "f.yaml: warmup: 50 s is not below duration, 20 s; accepted: a time below the duration"),
        ("links.*.delay", "1", "f.yaml: links.*.delay: 1 has no unit; accepted: a time such as '20 ms'"),
        ("cells.us", "{servers: 1}", "f.yaml: cells.us: none is given, one is due; accepted: one of profile, service"),
    ],
)  # fmt: skip
def test_a_fault_of_the_command_line_shows_its_key_and_no_line(path: str, value: str, message: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        scenario_from_text(GOOD, "f.yaml", [(path, value)])

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", f"f.yaml:1: the file is empty; accepted: a mapping with the keys {KEYS}"),
        (b"# only a comment\n", f"f.yaml:1: the file is empty; accepted: a mapping with the keys {KEYS}"),
        (b"- a\n", f"f.yaml:1: a list is given, not a mapping; accepted: a mapping with the keys {KEYS}"),
        (b"abc", f"f.yaml:1: 'abc' is given, not a mapping; accepted: a mapping with the keys {KEYS}"),
        (b"name: a\nx: \xff\n", "f.yaml:2: byte 0xff is not UTF-8; accepted: UTF-8 text"),
        (b"[" * 5000, "f.yaml:1: not YAML: nested deeper than 40 levels"),
        (b"#" * 4_000_001, "f.yaml: too large; accepted: up to 4000000 bytes"),
    ],
)
def test_a_file_that_is_no_scenario_at_all_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_bytes(data)

    with pytest.raises(ScenarioError) as raised:
        load_scenario("f.yaml")

    assert str(raised.value) == message


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"absent\.yaml: cannot be read: No such file or directory"):
        load_scenario(tmp_path / "absent.yaml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        load_scenario(tmp_path)
    with pytest.raises(ScenarioError, match="cannot be read: embedded null byte"):
        load_scenario("a\0b")


def test_aliases_of_aliases_do_not_expand_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]

    with pytest.raises(ScenarioError, match="the file expands to more than 200000 values"):
        scenario_from_text("\n".join(lines))


def test_an_arm_that_the_file_does_not_have_is_a_mistake_of_the_command_line() -> None:
    with pytest.raises(UsageError) as raised:
        scenario_from_text(GOOD + "arms: {greedy: {}, even: {}}\n", arms=["even", "gredy"])

    assert str(raised.value) == "'gredy' is not an arm (greedy?); accepted: greedy, even"


def is_read(text: str, *overrides: tuple[str, str]) -> bool:
    """Text that may be anything: it is a scenario, or it has faults of one line each."""
    try:
        return isinstance(scenario_from_text(text, "f.yaml", overrides), ScenarioFile)
    except ScenarioError as error:
        faults = error.faults
    return bool(faults) and all(fault.text("f.yaml").isprintable() for fault in faults)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.dates(),
    st.binary(max_size=4),
    st.text(max_size=8),
    st.sampled_from(
        ["20 ms", "80 /s", "1 %", "0.1 /s^2", "us", "flow", "sand", "root.*", "no", "1e3", "a:b", "auto"]
    ),
)
WORDS = st.sampled_from(
    [
        "kind",
        "step",
        "from",
        "to",
        "delay",
        "jitter",
        "us",
        "flow",
        "sand",
        "west",
        "traffic",
        "servers",
        "0",
        "*",
        ".",
    ]
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(WORDS, st.text(max_size=4)), inner, max_size=3)
    ),
    max_leaves=8,
)
SECTIONS = st.sampled_from([*KEYS.split(", "), "arms", "expect", "", "x"])


@given(
    st.text(
        alphabet=st.characters(codec="utf-8") | st.sampled_from("{}[]:,-&*!|>'\"%@`#?~ \n\t"), max_size=60
    )
)
@settings(max_examples=150, deadline=None)
def test_arbitrary_text_gives_a_scenario_or_its_faults(text: str) -> None:
    assert is_read(text)


@given(at=st.integers(0, len(GOOD)), cut=st.integers(0, 30), text=st.text(max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_damaged_scenario_gives_a_scenario_or_its_faults(at: int, cut: int, text: str) -> None:
    assert is_read(GOOD[:at] + text + GOOD[at + cut :])


@given(changes=st.dictionaries(SECTIONS, TREES, max_size=3))
@settings(max_examples=150, deadline=None)
def test_an_arbitrary_tree_in_a_scenario_gives_a_scenario_or_its_faults(changes: dict[str, Any]) -> None:
    assert is_read(yaml.safe_dump({**yaml.safe_load(GOOD), **changes}))


@given(path=st.lists(WORDS | SECTIONS, max_size=4).map(".".join), value=TREES)
@settings(max_examples=100, deadline=None)
def test_an_arbitrary_override_gives_a_scenario_or_its_faults(path: str, value: Any) -> None:
    text = yaml.safe_dump(value)

    assert is_read(GOOD, (path, text))
    assert is_read(GOOD + yaml.safe_dump({"arms": {"a": {path: value}}}))


@given(st.binary(max_size=40))
@settings(max_examples=50, deadline=None)
def test_arbitrary_bytes_give_a_scenario_or_its_faults(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = tmp_path_factory.mktemp("bytes") / "f.yaml"
    file.write_bytes(data)

    with pytest.raises(ScenarioError):
        load_scenario(file)
