"""The fake GPU server: rate curves, profiles, batches."""
