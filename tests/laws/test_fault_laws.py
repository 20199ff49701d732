"""Faults in a run under virtual time: they take hold where and when they were asked for, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from testbed.links.delay import mean_delay_s
from testbed.scenario.topology import build_topology
from tests.laws.chaos import TEXT, counted, ledger_gaps
from tests.laws.virtual_run import VirtualRun, run_text

SECONDS = 4


@pytest.fixture(scope="module", name="chaos")
def a_run_of_all_faults(tmp_path_factory: pytest.TempPathFactory) -> VirtualRun:
    return run_text(tmp_path_factory.mktemp("chaos"), TEXT.format(duration=SECONDS, seed=3))


def test_every_message_is_accounted_for_whatever_faults_do(chaos: VirtualRun) -> None:
    """sent + duplicated = delivered + dropped by cause + under way, for every link; the table says the same."""
    assert ledger_gaps(chaos.outcome) == []
    for line in chaos.outcome.ledger:
        ends = {"source": line.source, "target": line.target, "path": line.path}
        assert line.sent == counted(chaos.tables, "sent", **ends)
        assert line.duplicated == counted(chaos.tables, "duplicated", **ends)
        assert line.delivered == counted(chaos.tables, "delivered", **ends)
        for cause, count in line.dropped.items():
            assert count == counted(chaos.tables, f"dropped_{cause}", **ends)
    for cause in ("loss", "cut", "queue"):
        assert counted(chaos.tables, f"dropped_{cause}") > 0
    assert counted(chaos.tables, "duplicated") > 0
    assert counted(chaos.tables, "reordered") > 0


def test_every_request_ends_once_though_replies_come_twice(chaos: VirtualRun) -> None:
    requests = chaos.tables["requests"]

    assert set(requests["outcome"]) == {"completed", "timed_out"}
    assert (requests["attempts"] == 1).all()
    assert counted(chaos.tables, "duplicated", source="us/leaf-1", target="root.a", path="reply") > 20


def test_a_copy_of_a_report_is_heard_twice(chaos: VirtualRun) -> None:
    seen = chaos.tables["observations"]
    mine = (seen["root"] == "root.a") & (seen["leaf"] == "us/leaf-1")

    again = int(mine.sum()) - len(set(seen["sequence"][mine].tolist()))

    assert again == pytest.approx(
        counted(chaos.tables, "duplicated", source="us/leaf-1", target="root.a", path="observation"), abs=1
    )
    assert again > 10


def test_observations_are_as_late_as_their_distribution_says(chaos: VirtualRun) -> None:
    """The ages on arrival of all reports over a link: their distribution, and their mean within three errors."""
    seen = chaos.tables["observations"]
    transit_s = (seen["received_at_s"] - seen["measured_at_s"])[seen["leaf"] == "us/leaf-1"]
    topology = build_topology(chaos.scenario)
    link = next(each for each in topology.links if (each.source, each.path) == ("us/leaf-1", "observation"))

    shape = 1 + np.sqrt(1 + 5**2)

    assert stats.kstest(transit_s, stats.pareto(shape, scale=0.05 * (shape - 1) / shape).cdf).pvalue > 0.01
    assert abs(transit_s.mean() - mean_delay_s(link.effect)) < 3 * transit_s.std() / np.sqrt(len(transit_s))


def test_a_relative_fault_at_time_zero_holds_for_the_first_message(chaos: VirtualRun) -> None:
    requests = chaos.tables["requests"]
    mine = (requests["root"] == "root.b") & (requests["cell"] == "us") & np.isfinite(requests["at_leaf_s"])
    travel_s = (requests["at_leaf_s"] - requests["sent_at_s"])[mine]
    sent_s = requests["sent_at_s"][mine]

    assert sent_s[0] < 0.05
    assert travel_s[sent_s < 0.5] == pytest.approx(0.130)
    assert travel_s[sent_s > 0.7] == pytest.approx(0.030)


def test_a_partition_cuts_both_ways_and_only_between_its_sides(chaos: VirtualRun) -> None:
    """Replies of the eu do not reach root a either; root b, on its side, is served as ever."""
    requests = chaos.tables["requests"]
    during = (requests["sent_at_s"] > 0.5) & (requests["sent_at_s"] < 1.0)
    to_eu = requests["cell"] == "eu"

    assert not np.isfinite(requests["at_leaf_s"][during & to_eu & (requests["root"] == "root.a")]).any()
    assert (requests["outcome"][during & to_eu & (requests["root"] == "root.b")] == "completed").all()
    assert counted(chaos.tables, "dropped_cut", source="root.a", target="eu/leaf-1") > 10
    assert counted(chaos.tables, "dropped_cut", source="eu/leaf-1", target="root.a", path="observation") == 50
    assert counted(chaos.tables, "dropped_cut", source="root.a", target="us/leaf-1") == 0


def test_a_flapping_link_loses_its_share_of_the_reports(chaos: VirtualRun) -> None:
    """Reports every 10 ms from 0.25 s on, 20 % of each eighth of a second, to within one report a period."""
    periods = (SECONDS - 0.25) / 0.125

    cut = counted(chaos.tables, "dropped_cut", source="eu/leaf-1", target="root.b", path="observation")

    assert 2 * periods <= cut <= 3 * periods + 10  # and those of the time in which requests drain


def test_a_rate_below_that_of_the_reports_drops_the_rest(chaos: VirtualRun) -> None:
    """100 reports a second into 80, out of the half second in which the link is cut."""
    sent = {"source": "eu/leaf-1", "target": "root.a", "path": "observation"}
    carried = (
        counted(chaos.tables, "sent", **sent)
        - counted(chaos.tables, "dropped_cut", **sent)
        - counted(chaos.tables, "dropped_queue", **sent)
    )
    open_s = counted(chaos.tables, "sent", **sent) / 100 - 0.5

    assert carried == pytest.approx(80 * open_s, abs=4)


def test_demand_doubles_while_its_fault_lasts(chaos: VirtualRun) -> None:
    planned_s = chaos.tables["requests"]["planned_at_s"][chaos.tables["requests"]["root"] == "root.b"]

    during = ((planned_s >= 1.0) & (planned_s < 1.5)).sum()
    low, high = stats.poisson.interval(0.999, 150)
    assert low <= during <= high
    low, high = stats.poisson.interval(0.999, 150 * (SECONDS - 0.5))
    assert low <= len(planned_s) - during <= high


def test_all_faults_are_acknowledged_and_heal_at_the_latest_when_the_run_ends(chaos: VirtualRun) -> None:
    faults = chaos.tables["faults"]

    assert faults["applied_at_s"].tolist() == faults["planned_at_s"].tolist() == [0.0, 0.5, 0.25, 1.0, 1.0]
    assert (faults["nodes_applied"] == faults["nodes_expected"]).all()
    assert (faults["nodes_healed"] == faults["nodes_expected"]).all()
    assert faults["nodes_expected"].tolist() == [1, 2, 1, 1, 2]
    for_good = np.isnan(faults["heal_planned_at_s"])
    assert faults["healed_at_s"][~for_good].tolist() == faults["heal_planned_at_s"][~for_good].tolist()
    assert faults["healed_at_s"][for_good] == pytest.approx(chaos.outcome.ended_at_s)


def test_each_node_acknowledges_each_fault_when_it_sets_in_and_when_it_heals(chaos: VirtualRun) -> None:
    """Those of every fault are told one by one; what the table `faults` has of them is the last."""
    faults, applied = chaos.tables["faults"], chaos.tables["applied"]

    for healed, counts, instants in (
        (False, "nodes_applied", "applied_at_s"),
        (True, "nodes_healed", "healed_at_s"),
    ):
        rows = applied["healed"] == healed
        told = [(applied["fault"] == fault) & rows for fault in faults["fault"]]
        assert [len(set(applied["node"][mine])) for mine in told] == faults[counts].tolist()
        assert [applied["done_at_s"][mine].max() for mine in told] == faults[instants].tolist()
    assert len(set(zip(applied["fault"], applied["node"], applied["healed"], strict=True))) == len(
        applied["fault"]
    )
    partition = applied["fault"] == 1
    assert sorted(set(applied["node"][partition])) == ["eu/leaf-1", "root.a"]


def test_a_fault_of_one_link_leaves_every_other_link_as_it_was(tmp_path) -> None:
    """With a split keyed by request, what root a's requests to the us meet does not change by one bit."""
    calm = TEXT.format(duration=2, seed=3).partition("faults:")[0]
    line = "  - {at: 0.5 s, for: 0.7 s, link: {from: cell.eu, to: root.*}, set: {delay: +1 s, loss: 50 %}}\n"

    without = run_text(tmp_path / "without", calm).tables["links"]
    with_it = run_text(tmp_path / "with", f"{calm}faults:\n{line}").tables["links"]

    def others(links):
        keep = links["source"] != "eu/leaf-1"
        keep &= links["at_s"] < 1.99  # how long requests drain differs
        return {
            name: links[name][keep] for name in ("source", "target", "path", "at_s", "sent", "drawn_s_mean")
        }

    for name, column in others(without).items():
        np.testing.assert_array_equal(column, others(with_it)[name], err_msg=name)
    assert with_it["dropped_loss"][with_it["source"] == "eu/leaf-1"].sum() > 0


def test_time_scale_two_doubles_every_instant_under_every_fault(tmp_path) -> None:
    one, two = (
        run_text(tmp_path / f"{scale}", TEXT.format(duration=2, seed=5), time_scale=scale).tables
        for scale in (1.0, 2.0)
    )

    for table in ("requests", "observations", "faults", "lateness"):
        for name, column in one[table].items():
            if column.dtype.kind == "f":
                np.testing.assert_array_equal(column, two[table][name], err_msg=f"{table}.{name}")
            elif column.ndim == 1:
                assert column.tolist() == two[table][name].tolist(), f"{table}.{name}"


def test_messages_are_accounted_for_in_a_run_of_random_faults(tmp_path) -> None:
    """Any of the faults at any time, several at once."""
    kinds = "".join(
        f"        - {{for: {length}, {target}}}\n"
        for length, target in (
            ("0.3 s", "link: {from: root.*, to: cell.*}, pick: one, set: {delay: x3, duplicate: 20 %}"),
            ("0.2 s", "link: {from: cell.*, to: root.*}, pick: half, set: {loss: 30 %, loss_burst: 4}"),
            ("0.1 s", "link: {from: '*', to: '*'}, pick: minority, set: {cut: true}"),
            ("0.2 s", "partition: [root.a, cell.us]"),
            ("0.3 s", "link: {from: '*', to: '*', path: request}, set: {rate: 100 /s, queue: 5}"),
            (
                "0.3 s",
                "link: {from: '*', to: '*'}, set: {order: free, reorder: {fraction: 20 %, late: 30 ms}}",
            ),
            ("0.2 s", "root: '*', pick: one, set: {shift: {to: a, share: 50 %}, burst: 40}"),
        )
    )
    calm = TEXT.format(duration=3, seed=8).partition("faults:")[0]

    run = run_text(tmp_path, f"{calm}faults:\n  - random:\n      rate: 10 /s\n      kinds:\n{kinds}")

    assert len(run.tables["faults"]["fault"]) > 15
    assert ledger_gaps(run.outcome) == []
    assert set(run.tables["requests"]["outcome"]) <= {"completed", "timed_out"}
    assert (run.tables["faults"]["nodes_healed"] == run.tables["faults"]["nodes_expected"]).all()


def test_a_delay_is_per_message_per_direction_and_per_hop(tmp_path) -> None:
    """What is asked for is what each hop adds, once, and only the way that was named."""
    text = TEXT.format(duration=1, seed=3).partition("links:")[0]
    links = (
        "links:\n"
        "  - {from: root.*, to: cell.us, path: request, delay: 100 ms}\n"
        "  - {from: cell.eu, to: root.*, path: reply, delay: 50 ms}\n"
    )

    requests = run_text(tmp_path, text + links).tables["requests"]

    there_s = requests["at_leaf_s"] - requests["sent_at_s"]
    back_s = requests["replied_at_s"] - requests["left_leaf_s"]
    us, eu = requests["cell"] == "us", requests["cell"] == "eu"
    assert there_s[us] == pytest.approx(0.100)
    assert back_s[us] == pytest.approx(0.0)
    assert there_s[eu] == pytest.approx(0.0)
    assert back_s[eu] == pytest.approx(0.050)
    assert requests["at_server_s"] == pytest.approx(requests["at_leaf_s"])


def test_a_partition_of_everything_heals_on_time(tmp_path) -> None:
    """No fault can cut off what heals it: the nodes know their changes before the run."""
    calm = TEXT.format(duration=2, seed=3).partition("faults:")[0]
    line = "  - {at: 0.5 s, for: 0.5 s, link: {from: '*', to: '*'}, set: {cut: true}}\n"

    run = run_text(tmp_path, f"{calm}faults:\n{line}")

    requests, faults = run.tables["requests"], run.tables["faults"]
    sent_s = requests["sent_at_s"]
    assert not np.isfinite(requests["at_leaf_s"][(sent_s > 0.5) & (sent_s < 1.0)]).any()
    later = (sent_s > 1.0) & (
        (requests["root"] == "root.b") | (requests["cell"] == "eu")
    )  # no losses by chance there
    assert (requests["outcome"][later] == "completed").all()
    assert faults["healed_at_s"].tolist() == [1.0]
    assert faults["nodes_healed"].tolist() == faults["nodes_expected"].tolist() == [7]
