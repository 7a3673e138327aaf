"""RUNS: one record of a measured run, its readers, stored steps, tuning and validation."""
