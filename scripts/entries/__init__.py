"""Entries of the benchmark: predictions of baselines and of public predictors, as committed files.

rows of the benchmark --a predictor--> datasets/runs/benchmark/entries/NAME.csv.gz
"""
