"""The laws and published results that the testbed has to reproduce, each held against what it gives."""
