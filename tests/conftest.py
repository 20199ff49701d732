"""Tests that stand in for a class of the testbed run with its sources, those that compare both with both."""

from __future__ import annotations

import pytest

import testbed


def pytest_runtest_setup(item):
    """Skip what this form of the modules cannot tell."""
    if item.get_closest_marker("interpreted") and testbed.FORM == "compiled":
        pytest.skip("puts objects of its own in the place of a compiled class: TESTBED_COMPILED=no runs it")
    if item.get_closest_marker("compiled") and testbed.FORM != "compiled":
        pytest.skip("needs compiled modules that fit the sources: scripts/compile makes them")
