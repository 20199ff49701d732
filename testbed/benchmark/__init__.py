"""What this machine can carry: the project's own benchmark, printed by `testbed bench`."""
