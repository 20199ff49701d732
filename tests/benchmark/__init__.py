"""Tests of the benchmark: that it measures what it says, never how fast."""
