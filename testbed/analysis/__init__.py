"""Figures of merit computed from the records alone."""
