"""Throughput of a training job on many workers, from a trace of one (Li et al., ICPE 2020)."""
