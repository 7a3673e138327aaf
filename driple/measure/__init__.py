"""MEASURE: real training runs on this machine -> samples, traces, labels."""
