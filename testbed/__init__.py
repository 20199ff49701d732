"""A testbed of distributed load balancing under delayed feedback: real processes, late observations."""

from testbed.compiled import take_compiled

__version__ = "0.1.0"
FORM = take_compiled()  # 'compiled', 'interpreted', or 'stale': interpreted, since a source has changed
