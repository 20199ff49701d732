"""What the mathematics says of a scenario before it runs: operating point, loop delay, critical step."""
