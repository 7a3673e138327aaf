"""Cleaning of published measurements: one module for each kind of source.

    rows as gathered (csv) -> `PublishedRun`, ... with JOB, options, cluster and why a row is unused

`tables.training_rows` and `tables.forward_rows` are the entries;
`scripts/published/pytorch_rows.py` calls them. Facts that a source's own configuration files
state, and that its tables do not, stand in `datasets/runs/published/lambda_batches.csv.gz`.
"""
