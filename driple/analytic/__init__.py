"""Closed forms of the papers: what the simulator answers in a second, in microseconds."""
