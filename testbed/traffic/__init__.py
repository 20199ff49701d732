"""Planned arrivals and the work they bring."""
