"""Programs that make shipped files, studies and benchmarks; not installed."""
