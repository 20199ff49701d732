from dataclasses import replace

import numpy as np
import pytest

from testbed.analysis.records import Tables
from testbed.analysis.summary import summarize_arm, summarize_run
from testbed.figures.age import draw_age, mean_ages
from testbed.figures.colours import CELL_COLOURS, VERDICT_COLOURS, arm_styles, cell_colours
from testbed.figures.decisions import draw_decisions
from testbed.figures.drawing import DrawnArm, draw_all
from testbed.figures.in_flight import draw_in_flight
from testbed.figures.page import MOST_COLUMNS, caption, columns_for, faults_of
from testbed.figures.shares import draw_shares
from testbed.figures.split import LAYERS, bars_of, draw_split
from testbed.record.outcome import RunOutcome
from testbed.scenario.schema import Scenario
from tests.analysis.made_arms import (
    made_faults,
    made_lateness,
    made_outcome,
    made_scenario,
    made_tables,
    steady,
    swinging,
)

FAULT = {"at": "12 s", "for": "4 s", "cell": "eu", "set": {"speed": 0.4}}


def drawn(arms: dict[str, tuple[Scenario, Tables]], outcome: RunOutcome | None = None) -> list[DrawnArm]:
    ended = made_outcome() if outcome is None else outcome
    summaries = {name: summarize_arm(scenario, tables, ended) for name, (scenario, tables) in arms.items()}
    run = summarize_run("herding", summaries)
    return [DrawnArm(name, *pair, run["arms"][name]) for name, pair in arms.items()]


def herding(rate_per_s: float = 300.0) -> dict[str, tuple[Scenario, Tables]]:
    greedy, flow = made_scenario("greedy", faults=[FAULT]), made_scenario("flow", faults=[FAULT])
    return {
        "greedy": (greedy, made_tables(greedy, swinging(0.8, 1.8), rate_per_s=rate_per_s)),
        "flow": (flow, made_tables(flow, steady(0.44, 0.34, 0.22), updates=True, rate_per_s=rate_per_s)),
    }


@pytest.fixture(scope="module")
def arms() -> list[DrawnArm]:
    return drawn(herding())


def words_on(figure) -> str:
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    notes = [text.get_text() for text in figure.texts]
    return " ".join([*titles, *texts, *notes]).replace("\n", " ")


def test_a_live_run_has_every_figure(arms):
    assert list(draw_all(arms)) == [
        "in_flight", "servers", "shares", "sojourn", "split", "age", "decisions", "lateness"
    ]  # fmt: skip


def test_a_virtual_run_has_no_lateness():
    assert "lateness" not in draw_all(drawn(herding(), made_outcome(engine="virtual")))


def test_every_figure_says_which_run_it_shows(arms):
    """Scenario, seed, engine, requests and verdict stand on each figure."""
    for figure in draw_all(arms).values():
        words = words_on(figure)
        assert "Scenario herding, seed 1, live engine" in words
        assert f"{arms[0].summary['requests']['completed']:,} of" in words
        assert "verdict: valid in each arm" in words
        assert "Fault: cell eu: speed 0.4 at 12 s for 4 s." in words


def test_a_caption_names_the_arms_that_are_unlike_most(arms):
    def named(name, completed, verdict):
        requests = {**arms[0].summary["requests"], "completed": completed, "planned": 1200}
        return replace(
            arms[0], name=name, summary={**arms[0].summary, "requests": requests, "verdict": verdict}
        )

    said = caption(
        [
            named("a", 1200, "valid"),
            named("b", 1100, "suspect"),
            named("c", 1200, "valid"),
            named("d", 1200, "suspect"),
        ],
        "Shown.",
    )

    assert (
        "requests completed of planned: 1,100 of 1,200 in b; 1,200 of 1,200 in the others;"
        " verdict: valid in a, c; suspect in b, d."
    ) in said


def test_arms_share_their_axes(arms):
    left, right = draw_in_flight(arms).axes

    assert left.get_ylim() == right.get_ylim()
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("greedy", "flow")


def test_a_cell_has_one_colour_in_every_panel(arms):
    for figure in (draw_in_flight(arms), draw_shares(arms)):
        for axes in figure.axes:
            used = {line.get_color() for line in axes.lines}
            assert set(CELL_COLOURS[:3]) <= used


def test_no_text_is_cut_at_the_edge_and_none_covers_the_caption(arms):
    for stem, figure in draw_all(arms).items():
        width, height = figure.get_size_inches() * figure.dpi
        legend = figure.legends[0].get_window_extent()
        caption = figure.texts[1].get_window_extent()
        assert legend.x1 <= width, stem
        assert caption.x1 <= width, stem
        assert caption.y0 >= 0, stem
        assert caption.y1 <= legend.y0, stem
        for axes in figure.axes:
            inside = axes.get_tightbbox()
            assert inside.y0 >= legend.y1 - 1, stem
            assert inside.x0 >= -1, stem
            assert inside.x1 <= width + 1, stem
            assert inside.y1 <= height + 1, stem


def test_an_invalid_arm_is_marked_across_its_data():
    made = herding()
    scenario, tables = made["greedy"]
    made["greedy"] = (scenario, {**tables, "lateness": made_lateness(scenario, 0.1)})

    figure = draw_in_flight(drawn(made))

    assert "INVALID" in [text.get_text() for text in figure.axes[0].texts]
    assert "INVALID" not in [text.get_text() for text in figure.axes[1].texts]


def test_a_single_arm_and_many_arms_can_be_drawn(arms):
    one = drawn({"flow": herding()["flow"]})
    six = [replace(arms[i % 2], name=f"arm {i}") for i in range(6)]

    assert len(draw_all(one)) == 8
    assert len(draw_in_flight(six).axes) == 6
    assert len(draw_all(six)) == 8


def test_a_run_without_requests_can_be_drawn():
    scenario = made_scenario("greedy")

    figures = draw_all(
        drawn({"greedy": (scenario, made_tables(scenario, steady(1.0, 0.0, 0.0), rate_per_s=1e-9))})
    )

    assert len(figures) == 8


def test_a_run_cut_short_in_its_warm_up_can_be_drawn():
    outcome = RunOutcome("live", "actual", ended_at_s=3.0, drained=False, interrupted=True)

    assert len(draw_all(drawn(herding(), outcome))) == 8


def test_lines_stay_short_however_many_requests(arms):
    for figure in draw_all(arms).values():
        lengths = [len(line.get_xdata()) for axes in figure.axes for line in axes.lines]
        assert max(lengths, default=0) <= 1000


def test_ages_are_split_into_travel_and_waiting(arms):
    for arm in arms:
        ages = mean_ages(arm)
        assert ages.transit_s == pytest.approx(0.5, abs=0.01)
        assert ages.waiting_s == pytest.approx(0.05, abs=0.02)


def test_layers_too_thin_to_be_seen_are_named_in_the_caption(arms):
    figure = draw_split(arms)
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    thin = words_on(figure).partition("Too thin to be seen: ")[2].partition(".")[0].split(", ")

    took = {name.replace("_", " ") for bar in bars_of(arms) for name, mean_s in bar.split_s.items() if mean_s}
    assert set(thin) | set(named) == took
    assert not set(thin) & set(named)


def test_bars_of_time_add_up_to_the_mean_sojourn_of_their_arm(arms):
    bars = bars_of(arms)
    panel = draw_split(arms).axes[0]

    assert [bar.arm for bar in bars] == ["greedy", "flow"]
    ends = [max(each.get_x() + each.get_width() for each in panel.patches if each.get_y() // 1 == place - 1)
            for place in (0, 1)]  # fmt: skip
    assert ends == pytest.approx([arm.summary["sojourn_s"]["mean"] for arm in arms], rel=1e-6)


def test_an_arm_of_which_nothing_is_known_says_so(arms):
    unknown = {"regret_s": None, "deviation": None, "synchrony": None}
    bare = replace(arms[0], summary={**arms[0].summary, **unknown})

    for panel in draw_decisions([bare, arms[1]]).axes:
        assert "not known" in panel.texts[0].get_text()


def test_panels_fill_their_rows():
    assert [columns_for(count) for count in (1, 3, 4, 5, 6, 8, 9)] == [1, 3, 4, 3, 3, 4, 3]
    assert MOST_COLUMNS == 4


def test_an_arm_looks_the_same_in_every_run_and_unlike_its_fellows():
    styles = arm_styles(
        [("a", "flow"), ("b", "least_cost"), ("c", "flow"), ("d", "mine:Policy"), ("e", None)]
    )

    assert styles["a"] == arm_styles([("only", "flow")])["only"]
    assert len(set(styles.values())) == 5


def test_many_arms_of_a_kind_all_look_unlike():
    styles = arm_styles([(f"arm {i}", "flow") for i in range(16)])

    assert len(set(styles.values())) == 16


def test_colours_of_cells_begin_anew_after_the_last():
    assert cell_colours([f"cell {i}" for i in range(9)])["cell 8"] == CELL_COLOURS[0]
    assert set(VERDICT_COLOURS) == {"valid", "suspect", "invalid", "incomplete"}


def test_faults_are_told_in_words():
    line = {
        "at": "3 s",
        "link": {"from": "cell.us", "to": "root.*", "path": "observation"},
        "set": {"delay": "2 s", "loss": "5 %"},
    }
    scenario = made_scenario(faults=[line])
    arm = DrawnArm("flow", scenario, {"faults": made_faults(scenario)}, {})

    assert faults_of([arm]) == ["link cell.us -> root.* observation: delay 2 s, loss 5 % at 3 s for good"]


def test_faults_that_not_all_arms_have_are_told_with_those_that_do():
    """An arm without the fault is no reason to leave it out, nor to say it of all, whichever arm comes first."""
    harmed = made_scenario("greedy", faults=[FAULT])
    arms = [
        DrawnArm(name, scenario, {"faults": made_faults(scenario)}, {})
        for name, scenario in (("calm", made_scenario("greedy")), ("a", harmed), ("b", harmed))
    ]

    assert faults_of(arms) == ["cell eu: speed 0.4 at 12 s for 4 s (not in calm)"]
    assert faults_of(arms[:2]) == ["cell eu: speed 0.4 at 12 s for 4 s (in a)"]
    assert faults_of(arms[1:]) == ["cell eu: speed 0.4 at 12 s for 4 s"]


def test_a_panel_of_several_arms_shades_the_faults_of_each():
    made = herding()
    calm = made_scenario("flow")
    made = {"calm": (calm, made_tables(calm, steady(0.44, 0.34, 0.22))), "greedy": made["greedy"]}

    over_time = draw_age(drawn(made)).axes[1]

    assert (12.0, 4.0) in [(each.get_x(), each.get_width()) for each in over_time.patches]


def test_the_bar_of_an_arm_has_the_time_that_its_root_held_requests():
    """Each request waits 0.5 s for its decision to take effect, which is most of its sojourn."""
    made = herding()
    scenario, tables = made["greedy"]
    requests = dict(tables["requests"])
    for column in [name for name in requests if name.endswith("_at_s") and name != "planned_at_s"]:
        requests[column] = requests[column] + 0.5
    requests["held_s"] = np.full(len(requests["planned_at_s"]), 0.5)
    arms = drawn({"held": (scenario, {**tables, "requests": requests})})

    (bar,) = bars_of(arms)
    panel = draw_split(arms).axes[0]

    assert bar.split_s["root_hold"] == pytest.approx(0.5)
    assert set(bar.split_s) <= set(LAYERS)
    end_s = max(each.get_x() + each.get_width() for each in panel.patches)
    assert end_s == pytest.approx(arms[0].summary["sojourn_s"]["mean"], rel=1e-6)


def test_arms_with_an_autoscaler_have_a_figure_of_their_servers():
    arms = herding()
    scenario, tables = arms["greedy"]
    looks = {"cell": ["us", "us"], "at_s": [1.0, 2.0], "wanted": [3, 5], "in_use": [3, 4]}
    arms["greedy"] = (
        scenario,
        {**tables, "scalings": {name: np.array(each) for name, each in looks.items()}},
    )

    figure = draw_all(drawn(arms))["scaling"]

    (panel,) = figure.axes
    assert panel.get_title(loc="left") == "greedy"
    assert [line.get_ydata().tolist() for line in panel.lines[:2]] == [[3, 5], [3, 4]]
