"""Closed forms of the papers: an estimate in microseconds where a simulation takes a second."""
