"""ESTIMATE: the answer of a method together with its known error."""
