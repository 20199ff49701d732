"""The machine under the testbed: what its kernel counts, how many cores may be used, how fast they run."""
