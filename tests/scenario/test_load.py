"""A scenario file to its arms: what is read, overridden, selected, and written back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from testbed.errors import ScenarioError
from testbed.scenario import arms, policy_words, schema
from testbed.scenario.link_words import Jitter
from testbed.scenario.load import dump_scenario, load_scenario, scenario_from_text
from testbed.scenario.policy_words import FlowPolicy, UserPolicy
from testbed.scenario.quantity import Step
from testbed.scenario.schema import Scenario, Tokens
from testbed.scenario.words import Words

# The example of the design, as it stands there.
HERDING = """\
# Do roots that chase the idlest cell herd when reports are half a second old, and do gradual shares calm them?
# Unequal cells on purpose: an even split is wrong here, so shares that never move are seen to fail.
name: herding
duration: 20 s
warmup: 5 s
seed: 1
cells:
  us:   {servers: 4, profile: llama3-8b_a100_tp1_composed, leaf: {policy: idlest}}
  eu:   {servers: 3, profile: llama3-8b_a100_tp1_composed, leaf: {policy: idlest}}
  asia: {servers: 2, profile: llama3-8b_a100_tp1_composed, leaf: {policy: idlest}}
roots:
  west:  {traffic: [{class: sand, rate: 350 /s, policy: flow}], allowed: [us, eu, asia]}
  north: {traffic: [{class: sand, rate: 350 /s, policy: flow}]}
  south: {traffic: [{class: sand, load: 0.149, policy: flow}]}         # share of the capacity of its allowed cells
reports: {every: 100 ms, phase: staggered}
classes:
  sand: {prompt_tokens: {lognormal: {mean: 48, cv: 1}}, output_tokens: {geometric: {mean: 8}}, timeout: 10 s}
policies:
  flow:   {kind: flow, cost: marginal, model: scaled, step: 0.12 /s^2, interval: 100 ms}    # 0.09 of the critical step
  greedy: {kind: least_cost, cost: in_flight_per_capacity}
  even:   {kind: random}
  idlest: {kind: least_cost, cost: in_flight, view: own_counts}
links:                                   # later lines override earlier ones; from/to take names, globs and groups
  - {from: root.*, to: cell.*, path: request,     delay: 20 ms, jitter: {normal: 2 ms}}
  - {from: cell.*, to: root.*, path: reply,       delay: 20 ms}
  - {from: cell.*, to: root.*, path: observation, delay: 500 ms, loss: 1 %}
arms:                                    # each overrides parts of the file; same seed, the very same requests
  greedy: {roots.*.traffic.*.policy: greedy}
  even:   {roots.*.traffic.*.policy: even}
  flow:   {}
expect:                                  # metric op [k *] (arm.metric | quantity); with repeats: the mean and 80 % of the seeds
  - greedy: oscillation.amplitude > 3 * flow.oscillation.amplitude
  - greedy: sojourn_s.p99 > 1.5 * flow.sojourn_s.p99
  - even: sojourn_s.p99 > 1.2 * flow.sojourn_s.p99
  - flow: cells.us.share > 0.40          # the optimum is 0.444, an even split 0.333
"""

# Every section and every kind of value that a file may hold.
EVERYTHING = """\
name: everything
duration: 20 s
warmup: 5 s
drain: 1 min
seed: 7
time_scale: 0.5
dating: due
groups: {g: [root.a, g2], g2: [cell.*]}
cells:
  us:
    servers: 2
    service: {rate_curve: {capacity: 8 /s, half: 2}, work: fixed}
    leaf: {policy: pq, count: 2}
    reports: {every: 1 s, phase: in_phase}
  eu: {servers: 2, service: {slots: 3, exponential: 1 s}, leaf: {policy: w}}
  africa:
    servers: 1
    service:
      sharing: {allocation: 6, antagonist: {cores: [12, 5], probabilities: [0.75, 0.25], every: 10 s}}
      normal: {mean: 80 ms, sd: 80 ms}
  asia: {servers: 1, profile: small, max_sequences: 8, kv_tokens: 9000, step_tokens: 512, prefix_cache_tokens: 700}
roots:
  a:
    traffic:
      - {class: c, trace: t, policy: f, weight: 2}
      - class: d
        stages: [{at: 0 s, rate: 1 /s}, {at: 3 s, load: 0.4}]
        policy: u
        arrivals: {gamma: {cv: 2}}
        allowed: [us]
    allowed: [us, eu]
classes:
  c:
    prompt_tokens: {quantiles: [[0, 1], [0.5, 12.5], [1, 30]]}
    output_tokens: {lognormal: {mean: 20, cv: 0.5}}
    slo: {first_token: 1 s, token_gap: 50 ms}
  d: {prompt_tokens: 12, sessions: {turns: 2.5, think_time: 3 s}, prefixes: {count: 4, tokens: 9, zipf: 0.8}}
policies:
  f: {kind: flow, step: 1e-3 /s^2, start: {us: 0.2, eu: 0.8}, update: on_report}
  u: {kind: "my_module:MyPolicy", params: {a: [1, null, {b: x, c: "no"}], d: 1.5}}
  pq: {kind: prequal, pool: 2}
  w: {kind: weighted, weights: {eu/server-1: 1, eu/server-2: 0.5}, draw: request}
  ch: {kind: consistent_hash, key: prefix, bound: 1.5}
  pa: {kind: prefix_aware, max_age: 90 s, cache_weight: 2}
traces: {t: {path: x.csv, format: azure, from: 10 s, for: 20 s, rate_factor: 3}}
links:
  - {from: g, to: cell.*, delay: 10 ms, jitter: {uniform: 5 ms}}
  - {from: cell.*, to: g, delay: 10 ms, jitter: {lognormal: 5 ms}, loss: 0.3 %, order: kept}
  - {from: us/leaf-1, to: us/server-*, path: probe, jitter: {table: [0 ms, 1 ms, 7 ms]}}
faults:
  - {at: 2 s, for: 1 s, server: us/server-1, set: {speed: 0.5}}
  - {at: 2 s, link: {from: g, to: us/*}, set: {delay: 20 ms}}
records: {decisions: 7 %, samples: 50 ms}
live: {transport: tcp, pass_spacing: 250 us}
arms:
  x: {policies: {f: {step: 0.1 /s^2}}, cells.*.leaf.count: 2, reports.every: 2 s, faults: []}
  y:
  z: {classes: {c: {prompt_tokens: 3}}}
expect:
  - x: sojourn_s.p99 < 250 ms
  - y: cells.us.share >= 5 %
  - x: classes.c.sojourn_s.p50 <= 0.9 * z.classes.c.sojourn_s.p50
"""


def arms_of(changes: str, *overrides: tuple[str, str]) -> dict[str, Scenario]:
    """The arms of the design's example with one arm `x` of these changes in place of its own."""
    base = HERDING[: HERDING.index("arms:")]
    return scenario_from_text(f"{base}arms:\n  x: {changes}\n", "f.yaml", overrides).arms


def fault_of(changes: str, *overrides: tuple[str, str]) -> str:
    """The message of a fault in such an arm."""
    with pytest.raises(ScenarioError) as raised:
        arms_of(changes, *overrides)
    return str(raised.value)


# --- what is read -------------------------------------------------------------------------------------------


def test_the_example_of_the_design_has_three_arms_and_four_expectations(tmp_path: Path) -> None:
    file = tmp_path / "herding.yaml"
    file.write_text(HERDING)
    loaded = load_scenario(file)

    assert loaded.path == file
    assert loaded.name == "herding"
    assert list(loaded.arms) == ["greedy", "even", "flow"]
    assert len(loaded.expectations) == 4
    assert loaded.comment.startswith("Do roots that chase the idlest cell herd")
    assert loaded.comment.endswith("so shares that never move are seen to fail.")


def test_an_arm_differs_from_the_others_in_what_it_overrides_alone() -> None:
    loaded = scenario_from_text(HERDING).arms

    for name, scenario in loaded.items():
        assert {line.policy for root in scenario.roots.values() for line in root.traffic} == {name}
        assert scenario.model_copy(update={"roots": {}}) == loaded["flow"].model_copy(update={"roots": {}})


def test_values_arrive_in_base_units() -> None:
    scenario = scenario_from_text(HERDING).arms["flow"]
    flow = scenario.policies["flow"]

    assert scenario.duration == 20.0
    assert scenario.reports.every == 0.1
    assert scenario.roots["west"].traffic[0].rate == 350.0
    assert scenario.links[2].loss == 0.01
    assert scenario.links[0].from_ == "root.*"
    assert isinstance(flow, FlowPolicy)
    assert flow.step == Step(0.12, "/s^2")


def test_a_file_without_arms_has_one_called_main() -> None:
    base = HERDING[: HERDING.index("arms:")]

    assert list(scenario_from_text(base).arms) == ["main"]
    assert list(scenario_from_text(f"{base}arms:\n").arms) == ["main"]


def test_a_subset_of_the_arms_keeps_the_expectations_that_it_suffices_for() -> None:
    loaded = scenario_from_text(HERDING, arms=["flow", "even"])

    assert list(loaded.arms) == ["even", "flow"]
    assert [str(each) for each in loaded.expectations] == [
        "even: sojourn_s.p99 > 1.2 * flow.sojourn_s.p99",
        "flow: cells.us.share > 0.40",
    ]


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_read(tmp_path: Path) -> None:
    file = tmp_path / "herding.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + HERDING.replace("\n", "\r\n").encode())

    assert load_scenario(file).arms == scenario_from_text(HERDING).arms


def test_an_alias_stands_for_what_it_names() -> None:
    text = HERDING.replace("leaf: {policy: idlest}", "leaf: &leaf {policy: idlest}", 1).replace(
        "leaf: {policy: idlest}", "leaf: *leaf"
    )

    assert scenario_from_text(text).arms == scenario_from_text(HERDING).arms


def test_the_file_has_no_keys_by_the_names_of_the_models_fields() -> None:
    """`class_` is how Python spells `class`; a file that says so has a misspelt key."""
    with pytest.raises(ScenarioError, match=r"class_: unknown key \(class\?\)"):
        scenario_from_text(HERDING.replace("{class: sand, load", "{class_: sand, load"))


# --- overrides ----------------------------------------------------------------------------------------------


def test_a_path_with_globs_changes_every_place_it_leads_to() -> None:
    scenario = arms_of("{roots.*th.traffic.*.rate: 10 /s, roots.south.traffic.0.load: null}")["x"]

    assert [root.traffic[0].rate for root in scenario.roots.values()] == [350.0, 10.0, 10.0]


def test_positions_may_be_written_with_brackets_or_dots() -> None:
    dots = arms_of("{links.0.delay: 3 ms}")["x"]
    brackets = arms_of('{"links[0].delay": 3 ms}')["x"]

    assert dots == brackets
    assert [line.delay for line in dots.links] == [0.003, 0.02, 0.5]


def test_a_list_is_replaced_whole() -> None:
    scenario = arms_of("{links: [{from: root.*, to: cell.*, delay: 1 ms}], faults: []}")["x"]

    assert [line.delay for line in scenario.links] == [0.001]


def test_a_mapping_is_merged_into_what_is_there() -> None:
    scenario = arms_of("{policies: {flow: {step: 0.5 /s^2}, new: {kind: random}}}")["x"]
    flow = scenario.policies["flow"]

    assert isinstance(flow, FlowPolicy)
    assert flow.step == Step(0.5, "/s^2")
    assert flow.interval == 0.1
    assert list(scenario.policies) == ["flow", "greedy", "even", "idlest", "new"]


def test_a_path_with_dots_sets_its_place_whole() -> None:
    assert "policies.flow: kind is missing" in fault_of("{policies.flow: {step: 0.5 /s^2}}")


def test_a_policy_of_another_kind_replaces_the_one_that_was_there() -> None:
    scenario = arms_of("{policies: {flow: {kind: random}}}")["x"]

    assert scenario.policies["flow"] == policy_words.RandomPolicy(kind="random")


def test_another_distribution_replaces_the_one_that_was_there() -> None:
    scenario = arms_of(
        "{classes: {sand: {output_tokens: {fixed: 8}}}, links: {'0': {jitter: {uniform: 1 ms}}}}"
    )["x"]

    assert scenario.classes["sand"].output_tokens == Tokens(fixed=8)
    assert scenario.classes["sand"].timeout == 10.0
    assert scenario.links[0].jitter == Jitter(uniform="1 ms")


def test_a_key_that_does_not_exist_yet_may_be_created_where_its_parent_exists() -> None:
    scenario = arms_of("{roots.north.allowed: [us], warmup: 1 s, time_scale: 2}")["x"]

    assert scenario.roots["north"].allowed == ("us",)
    assert scenario.time_scale == 2.0


def test_a_path_leads_through_groups_of_keys_that_have_defaults() -> None:
    scenario = arms_of("{live.transport: tcp, cells.us.reports.every: 1 s, cells.*.leaf.count: 2}")["x"]

    assert scenario.live.transport == "tcp"
    assert scenario.cells["us"].reports == schema.Reports(every="1 s")
    assert [cell.leaf.count for cell in scenario.cells.values()] == [2, 2, 2]


def test_every_group_of_keys_that_has_defaults_can_be_led_through() -> None:
    groups = {
        field.alias or name
        for words in (*vars(schema).values(), *vars(policy_words).values())
        if isinstance(words, type) and issubclass(words, BaseModel)
        for name, field in words.model_fields.items()
        if isinstance(field.default, Words) or field.default_factory is dict
    }

    # Token counts are alternatives and not a group; the parameters of a user's policy are the user's.
    assert groups - {"prompt_tokens", "output_tokens", "params"} <= arms.GROUPS


def test_a_key_without_value_is_taken_away() -> None:
    scenario = arms_of("{roots.west.allowed: null, links.0.jitter: ~}")["x"]

    assert scenario.roots["west"].allowed is None
    assert scenario.links[0].jitter is None


def test_a_path_that_leads_nowhere_names_the_nearest_way() -> None:
    assert fault_of("{roots.wets.allowed: [us]}") == (
        "f.yaml:28: arms.x.roots.wets.allowed: leads nowhere: no 'wets' in roots (west?); accepted: west, north, south"
    )
    assert "arms.x.name.of: leads nowhere: name has no keys" in fault_of("{name.of: 3}")


def test_the_command_line_comes_before_the_arms() -> None:
    scenario = arms_of("{seed: 3}", ("seed", "2"), ("duration", "9 s"), ("roots.*.allowed", "[us, eu]"))["x"]

    assert scenario.seed == 3
    assert scenario.duration == 9.0
    assert [root.allowed for root in scenario.roots.values()] == [("us", "eu")] * 3


def test_the_command_line_may_change_arms_and_expectations_too() -> None:
    loaded = scenario_from_text(HERDING, overrides=[("expect", "[]"), ("arms.slow", "{duration: 60 s}")])

    assert loaded.expectations == ()
    assert loaded.arms["slow"].duration == 60.0


def test_a_fault_of_an_override_is_blamed_on_its_line() -> None:
    assert fault_of("\n    seed: 3\n    cells:\n      us:\n        servers: 0") == (
        "f.yaml:32: arms.x.cells.us.servers: 0 is out of range; accepted: a whole number from 1"
    )


# --- what is written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [HERDING, EVERYTHING], ids=["herding", "everything"])
def test_what_is_written_loads_to_an_equal_scenario(text: str) -> None:
    for scenario in scenario_from_text(text).arms.values():
        assert scenario_from_text(dump_scenario(scenario)).arms["main"] == scenario


def test_numbers_of_many_digits_are_written_exactly() -> None:
    odd = scenario_from_text(EVERYTHING).arms["x"].model_copy(update={"time_scale": 1 / 3}).scaled()
    written = scenario_from_text(dump_scenario(odd)).arms["main"]

    assert written.model_dump() == odd.model_dump()


def test_what_is_written_keeps_the_parameters_of_a_users_policy() -> None:
    written = scenario_from_text(dump_scenario(scenario_from_text(EVERYTHING).arms["y"])).arms["main"]
    policy = written.policies["u"]

    assert isinstance(policy, UserPolicy)
    assert policy.params == {"a": [1, None, {"b": "x", "c": "no"}], "d": 1.5}


def test_what_is_written_has_units_and_the_keys_of_the_file() -> None:
    written = dump_scenario(scenario_from_text(HERDING).arms["flow"])

    assert "duration: 20.0 s\n" in written
    assert "loss: 1 %\n" in written
    assert "- class: sand\n" in written
    assert "null" not in written


SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("**/*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_every_shipped_scenario_loads_and_opens_with_its_question(path: Path) -> None:
    loaded = load_scenario(path)

    assert loaded.comment
    for scenario in loaded.arms.values():
        assert scenario_from_text(dump_scenario(scenario)).arms["main"] == scenario
