"""A seed in which an incident does not show as its file expects is told with the numbers."""

from __future__ import annotations

from testbed.verification import incidents

TEXT = """
# Reported in a/b#1: something. One sees nothing.
name: made
duration: 1 s
cells: {us: {servers: 2, service: {slots: 2, fixed: 10 ms}, leaf: {policy: turns}}}
roots: {a: {traffic: [{class: c, rate: 50 /s, policy: turns}]}}
classes: {c: {}}
policies: {turns: {kind: round_robin}}
arms: {fault: {}, cure: {}, unused: {cells.us.servers: 1}}
expect:
  - fault: cells.us.servers.server-1.share >= 0.4
  - cure: cells.us.servers.server-1.share <= 0.3
"""


def test_what_does_not_hold_is_told_with_its_numbers(tmp_path, monkeypatch) -> None:
    (tmp_path / "made.yaml").write_text(TEXT)
    monkeypatch.setattr(incidents, "FOLDER", tmp_path)

    (found,) = incidents.staged(quick=False)

    assert not found.met
    assert found.source == "a/b#1"
    assert found.measured.startswith(
        "0 of 5 seeds; seed 1: cure: cells.us.servers.server-1.share <= 0.3: 0.5"
    )
    assert "fault:" not in found.measured


def test_one_seed_in_five_may_miss(tmp_path, monkeypatch) -> None:
    (tmp_path / "made.yaml").write_text(TEXT)
    monkeypatch.setattr(incidents, "FOLDER", tmp_path)
    missing: set[int] = {3}
    monkeypatch.setattr(incidents, "unmet", lambda path, seed: ["it"] if seed in missing else [])

    (found,) = incidents.staged(quick=False)
    assert (found.met, found.measured) == (True, "4 of 5 seeds; seed 3: it")
    missing.add(5)
    (found,) = incidents.staged(quick=False)
    assert not found.met
