"""EVALUATE: every method on every fold of a data set, by the same rules."""
