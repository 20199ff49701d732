"""Does a scenario fit this machine? What it needs, what there is, and what was measured."""
