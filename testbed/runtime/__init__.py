"""The two engines: virtual time in one process, and real processes over ZeroMQ."""
