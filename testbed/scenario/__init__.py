"""The scenario file: its words, its checks, and the topology it describes."""
