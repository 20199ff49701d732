"""What holds for every test: which form of the modules it needs, and which examples of its properties are tried."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

import testbed

# How long an example takes is the host's to say. The same examples are tried in every run, so that a change is judged by
# what it changes; `pytest --hypothesis-profile=seek` tries new ones. What a test asks for itself goes before both.
settings.register_profile(
    "seek", derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


def pytest_runtest_setup(item):
    """Skip what this form of the modules cannot tell."""
    if item.get_closest_marker("interpreted") and testbed.FORM == "compiled":
        pytest.skip("puts objects of its own in the place of a compiled class: TESTBED_COMPILED=no runs it")
    if item.get_closest_marker("compiled") and testbed.FORM != "compiled":
        pytest.skip("needs compiled modules that fit the sources: scripts/compile makes them")
