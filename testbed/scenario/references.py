"""Checks across the objects of a scenario: what names something must find it, what goes together must fit.

Names are looked up in the tree of the file, so that a wrong one is told even where other keys are wrong too.
Everything else needs the checked scenario, or as much of it as is well formed. A finding names both of the keys that do not agree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from testbed.errors import Fault
from testbed.scenario.arms import find
from testbed.scenario.finding import Finding, Keys, located, time_text
from testbed.scenario.policy_words import (
    C3Policy,
    DgdPolicy,
    DlbPolicy,
    FlowPolicy,
    IdleQueuePolicy,
    ImitationPolicy,
    LinearPolicy,
    PrequalPolicy,
    SmoothWeightedPolicy,
    StaticOptimalPolicy,
    WeightedPolicy,
    WeightedUtilisationPolicy,
)
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario
from testbed.scenario.spelling import listed, nearest
from testbed.scenario.topology import counts_first_tokens
from testbed.scenario.view_words import ViewWords
from testbed.scenario.well_formed import broken_parts, has_effects, has_names, may_be_told, with_stand_ins
from testbed.scenario.wiring import MAX_LINKS, link_count, wiring_findings
from testbed.scenario.wording import shown
from testbed.scenario.words import Words
from testbed.scenario.yaml_tree import Entry, shortened
from testbed.serving.profile import PROFILES

# Where a scenario names something, and the section that has it.
_REFERENCES = (
    ("roots.*.traffic.*.class", "classes"),
    ("roots.*.traffic.*.policy", "policies"),
    ("roots.*.traffic.*.trace", "traces"),
    ("roots.*.traffic.*.allowed.*", "cells"),
    ("roots.*.allowed.*", "cells"),
    ("cells.*.leaf.policy", "policies"),
    ("faults.*.class", "classes"),
    ("faults.*.random.kinds.*.class", "classes"),
)
_NAMED = ("cells", "roots", "classes", "policies", "groups", "traces", "windows")


class Tier(NamedTuple):
    """The only tier, `roots` or `leaves`, at which a policy can work, and why."""

    tier: str
    why: str


ONE_TIER: dict[type[Words], Tier] = {
    PrequalPolicy: Tier("leaves", "prequal probes servers"),
    LinearPolicy: Tier("leaves", "linear probes servers"),
    C3Policy: Tier("leaves", "c3 probes servers"),
    WeightedUtilisationPolicy: Tier("leaves", "weighted_utilisation needs the busy time that servers report"),
    IdleQueuePolicy: Tier("leaves", "jiq hears from idle servers"),
    FlowPolicy: Tier("roots", "flow moves shares of cells"),
    DgdPolicy: Tier("roots", "dgd moves shares of cells"),
    DlbPolicy: Tier("roots", "dlb chooses among cells"),
    ImitationPolicy: Tier("roots", "imitation moves shares of cells"),
    StaticOptimalPolicy: Tier("roots", "static_optimal divides the traffic over cells"),
}
_NAME = re.compile(r"\w[\w-]*")
MOST_OF_NAME = 50  # letters: names become those of files, which have 255 bytes, up to four of them a letter


def name_faults(tree: Entry) -> list[Fault]:
    """Names that are not well formed, and references to what does not exist."""
    faults = [fault for section in _NAMED for fault in bad_names(tree, section)]
    for path, section in _REFERENCES:
        there = tree.child(section)
        if there is None or isinstance(there.content, dict):
            faults += _unknown_names(find(tree, path), list(_section(tree, section)), section)
    return faults + _unknown_names(find(tree, "cells.*.profile"), list(PROFILES), "the GPU profiles")


def bad_names(tree: Entry, section: str) -> list[Fault]:
    """Keys of a section that could not be part of a path of keys, of a node's name or of a file's."""
    return [
        entry.fault(f"{shortened(repr(key))} is not a name", "letters, digits, _ and -")
        for key, entry in _section(tree, section).items()
        if not _NAME.fullmatch(key)
    ] + [
        entry.fault(f"{shortened(repr(key))} is too long for a name", f"up to {MOST_OF_NAME} characters")
        for key, entry in _section(tree, section).items()
        if _NAME.fullmatch(key) and len(key) > MOST_OF_NAME
    ]


def cross_faults(scenario: Scenario, tree: Entry) -> list[Fault]:
    """What does not fit together in a scenario whose every object is well formed by itself."""
    return [located(finding, tree) for finding in findings(scenario)]


def cross_faults_of_parts(error: ValidationError, tree: Entry) -> list[Fault]:
    """What does not fit together among those objects of a scenario that are well formed, where others are not."""
    broken = broken_parts(error)
    scenario = with_stand_ins(tree.plain(), broken)
    if scenario is None:
        return []
    found = findings(scenario, broken)
    return [located(finding, tree) for finding in found if may_be_told(finding, broken)]


def findings(scenario: Scenario, broken: Collection[Keys] = frozenset()) -> Iterator[Finding]:
    """What does not fit together in a scenario; references that find nothing are passed over.

    Args:
        scenario: to be checked.
        broken: parts that something else stands in for (see `well_formed`).
    """
    yield from _times(scenario)
    yield from _traffic(scenario)
    yield from _two_lines(scenario)
    yield from _tiers(scenario)
    yield from _steps(scenario)
    if not any(keys[0] in ("cells", "roots") for keys in broken):
        yield from _shares(scenario)
    yield from _full_readings(scenario)
    yield from _first_tokens(scenario)
    if has_names(broken):
        yield from wiring_findings(scenario, knows_effects=has_effects(broken))


def _section(tree: Entry, section: str) -> dict[str, Entry]:
    there = tree.child(section)
    return {} if there is None else there.mapping()


def _unknown_names(entries: Sequence[Entry], known: list[str], section: str) -> list[Fault]:
    return [
        entry.fault(
            f"{shown(entry)} is not in {section}{nearest(entry.content, known)}",
            listed(known) if known else f"a key of {section}, which has none",
        )
        for entry in entries
        if isinstance(entry.content, str) and entry.content not in known
    ]


def _times(scenario: Scenario) -> Iterator[Finding]:
    end = f"{{other}}, {time_text(scenario.duration)}"
    if scenario.warmup >= scenario.duration:
        problem = f"{time_text(scenario.warmup)} is not below {end}"
        yield Finding(("warmup",), problem, "a time below the duration", ("duration",))
    for i, fault in enumerate(scenario.faults):
        keys: Keys = ("faults", i)
        onset_s, key = (fault.onset_s, "at" if fault.from_ is None else "from")
        if fault.random is not None:
            onset_s, key, keys = fault.random.from_, "from", (*keys, "random")
        if onset_s >= scenario.duration:
            problem = f"{time_text(onset_s)} is not below {end}"
            yield Finding((*keys, key), problem, "a time below the duration", ("duration",))
    yield from _windows(scenario)


def _windows(scenario: Scenario) -> Iterator[Finding]:
    """Windows outside the time that figures count, and those that end before they begin."""
    for name, part in scenario.windows.items():
        keys: Keys = ("windows", name)
        if part.from_ < scenario.warmup:
            problem = f"{time_text(part.from_)} is below {{other}}, {time_text(scenario.warmup)}"
            yield Finding((*keys, "from"), problem, "a time from the end of the warm-up on", ("warmup",))
        if part.to > scenario.duration:
            problem = f"{time_text(part.to)} is above {{other}}, {time_text(scenario.duration)}"
            yield Finding((*keys, "to"), problem, "a time up to the duration", ("duration",))
        if part.to <= part.from_:
            problem = f"{time_text(part.to)} is not above {{other}}, {time_text(part.from_)}"
            yield Finding((*keys, "to"), problem, "a time after the beginning", (*keys, "from"))


def _traffic(scenario: Scenario) -> Iterator[Finding]:
    for name, root in scenario.roots.items():
        yield from _twice(("roots", name, "allowed"), root.allowed)
        for i, traffic in enumerate(root.traffic):
            keys: Keys = ("roots", name, "traffic", i)
            yield from _twice((*keys, "allowed"), traffic.allowed)
            for k, cell in enumerate(traffic.allowed or ()):
                if root.allowed is not None and cell in scenario.cells and cell not in root.allowed:
                    problem, other = f"{cell!r} is not in {{other}}", ("roots", name, "allowed")
                    yield Finding((*keys, "allowed", k), problem, listed(root.allowed), other)
            if traffic.trace is None and traffic.weight != 1.0:
                problem = "goes with {other}, which is missing"
                yield Finding((*keys, "weight"), problem, "a trace, or no weight", (*keys, "trace"))
            if traffic.trace is not None and traffic.arrivals != "poisson":
                problem = "does not go with {other}, which brings its own arrivals"
                yield Finding((*keys, "arrivals"), problem, "arrivals or trace", (*keys, "trace"))
            if traffic.trace is not None and traffic.class_ in scenario.classes:
                words = scenario.classes[traffic.class_]
                for key in ("sessions", "prefixes"):
                    if getattr(words, key) is not None:
                        problem = "does not go with {other}, which brings its own prompts"
                        yield Finding(
                            ("classes", traffic.class_, key), problem, f"{key} or trace", (*keys, "trace")
                        )


def _twice(keys: Keys, names: Sequence[str] | None) -> Iterator[Finding]:
    for i, name in enumerate(names or ()):
        if name in (names or ())[:i]:
            yield Finding((*keys, i), f"{name!r} is named twice", "each name once")


def _two_lines(scenario: Scenario) -> Iterator[Finding]:
    """Two lines of one class at one root, where one moves shares: records tell shares apart by root and class."""
    for name, root in scenario.roots.items():
        first: dict[str, int] = {}
        for i, line in enumerate(root.traffic):
            k = first.setdefault(line.class_, i)
            moving = [
                each.policy
                for each in (root.traffic[k], line)
                if isinstance(scenario.policies.get(each.policy), FlowPolicy | ImitationPolicy)
            ]
            if k < i and moving:
                problem = (
                    f"{line.class_!r} has {{other}} already, and {moving[0]!r} keeps shares by root and class"
                )
                accepted = "a class of its own, of the same keys under another name"
                other: Keys = ("roots", name, "traffic", k)
                yield Finding(("roots", name, "traffic", i, "class"), problem, accepted, other)


def _tiers(scenario: Scenario) -> Iterator[Finding]:
    """Policies at a tier where they cannot work."""
    for user in _users(scenario):
        policy = scenario.policies[user.policy]
        other = ("policies", user.policy, "kind")
        only = ONE_TIER.get(type(policy))
        if only is not None and (only.tier == "roots") != user.is_root:
            problem = f"{user.policy!r} is a policy for {only.tier} ({{other}}: {only.why})"
            yield Finding(user.keys, problem, "a policy of another kind", other)


def _steps(scenario: Scenario) -> Iterator[Finding]:
    """Steps and their bounds whose unit does not fit the cost (measures.md section 1), and bounds that bound nothing."""
    for name, policy in scenario.policies.items():
        if isinstance(policy, FlowPolicy):
            for key in ("step", "step_floor", "step_ceiling"):
                yield from _unit(("policies", name), key, getattr(policy, key), policy)
            yield from _bounds(("policies", name), policy)


def _unit(keys: Keys, key: str, step: object, policy: FlowPolicy) -> Iterator[Finding]:
    if not isinstance(step, Step) or step.unit == policy.step_unit:
        return
    measure = "requests" if policy.cost == "in_flight" else "seconds"
    problem = f"'{step.value:.12g} {step.unit}' does not fit {{other}}: {policy.cost}, which is in {measure}"
    yield Finding((*keys, key), problem, f"a step such as '0.1 {policy.step_unit}'", (*keys, "cost"))


def _bounds(keys: Keys, policy: FlowPolicy) -> Iterator[Finding]:
    floor, ceiling = policy.step_floor, policy.step_ceiling
    if policy.step != "auto":
        for key in ("step_floor", "step_ceiling"):
            if getattr(policy, key) is not None:
                yield Finding((*keys, key), "bounds a step that {other} sets", "step: auto", (*keys, "step"))
    elif floor is not None and ceiling is not None and floor.value > ceiling.value:
        problem = f"'{floor.value:.12g} {floor.unit}' is above {{other}}, {ceiling.value:.12g} {ceiling.unit}"
        yield Finding((*keys, "step_floor"), problem, "a step up to the ceiling", (*keys, "step_ceiling"))


class _User(NamedTuple):
    """A place that names a policy: whether it is a root's, its targets and those it may use."""

    keys: Keys
    policy: str
    is_root: bool
    targets: tuple[str, ...]
    allowed: tuple[str, ...]


def _users(scenario: Scenario) -> Iterator[_User]:
    cells = tuple(scenario.cells)
    for name, root in scenario.roots.items():
        for i, traffic in enumerate(root.traffic):
            allowed = traffic.allowed or root.allowed or cells
            if traffic.policy in scenario.policies:
                yield _User(("roots", name, "traffic", i, "policy"), traffic.policy, True, cells, allowed)
    if link_count(scenario) > MAX_LINKS:
        return
    for name, cell in scenario.cells.items():
        servers = tuple(f"{name}/server-{i + 1}" for i in range(cell.servers))
        if cell.leaf.policy in scenario.policies:
            yield _User(("cells", name, "leaf", "policy"), cell.leaf.policy or "", False, servers, servers)


def _simple_cell(scenario: Scenario, user: _User) -> str | None:
    """A cell with a simple service model among those that a place sends to; None: there is none."""
    cells = user.allowed if user.is_root else (str(user.keys[1]),)
    return next(
        (cell for cell in cells if cell in scenario.cells and scenario.cells[cell].service is not None), None
    )


def _first_tokens(scenario: Scenario) -> Iterator[Finding]:
    """Counting from first tokens, where a simple service model makes none."""
    for user in _users(scenario):
        simple = _simple_cell(scenario, user)
        if simple is not None and counts_first_tokens(scenario.policies[user.policy]):
            problem = "first_token does not go with {other}, which makes no tokens"
            keys: Keys = ("policies", user.policy, "counts_from")
            yield Finding(keys, problem, "servers with a GPU profile", ("cells", simple, "service"))


def _full_readings(scenario: Scenario) -> Iterator[Finding]:
    """`full` counts as many requests as a target can serve, which a simple service model does not tell."""
    for name, policy in scenario.policies.items():
        if not isinstance(policy, ViewWords) or "full" not in (policy.stale, policy.unheard):
            continue
        key = "stale" if policy.stale == "full" else "unheard"
        for user in _users(scenario):
            simple = _simple_cell(scenario, user)
            if user.policy == name and simple is not None:
                problem = "full does not go with {other}, which has no most requests in flight"
                other = ("cells", simple, "service")
                yield Finding(("policies", name, key), problem, "servers with a GPU profile", other)
                break


def _shares(scenario: Scenario) -> Iterator[Finding]:
    """Given weights and starting shares that name no target, or leave a user without any."""
    users = list(_users(scenario))
    for name, policy in scenario.policies.items():
        own = [user for user in users if user.policy == name]
        if isinstance(policy, WeightedPolicy | SmoothWeightedPolicy) and isinstance(policy.weights, dict):
            yield from _given_shares(("policies", name, "weights"), policy.weights, own)
        if isinstance(policy, FlowPolicy | ImitationPolicy) and isinstance(policy.start, dict):
            yield from _given_shares(("policies", name, "start"), policy.start, own)
        if isinstance(policy, FlowPolicy):
            yield from _explored(("policies", name, "explore"), policy.explore, own)


def _explored(keys: Keys, explore: float, users: list[_User]) -> Iterator[Finding]:
    """A floor under every share that, all targets taken together, is more than there is."""
    for user in users:
        if explore * len(user.allowed) > 1.0:
            problem = f"{100 * explore:.12g} % for each of the {len(user.allowed)} targets allowed at {{other}} is more than all"
            most = f"a percentage up to {100 / len(user.allowed):.12g} %"
            yield Finding(keys, problem, most, user.keys[:-1])


def _given_shares(keys: Keys, shares: dict[str, float], users: list[_User]) -> Iterator[Finding]:
    targets = list(dict.fromkeys(target for user in users for target in user.targets))
    for target in shares:
        if users and target not in targets:
            problem = f"{target!r} is not a target of this policy{nearest(target, targets)}"
            yield Finding((*keys, target), problem, listed(targets))
    for user in users:
        if sum(shares.get(target, 0.0) for target in user.allowed) <= 0:
            problem = "gives nothing to the targets allowed at {other}"
            yield Finding(
                keys, problem, f"a number above 0 for one of {listed(user.allowed)}", user.keys[:-1]
            )
