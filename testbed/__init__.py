"""A testbed of distributed load balancing under delayed feedback: real processes, late observations."""

__version__ = "0.1.0"
