"""BENCHMARK: a table of measured steps, splits, and predictors that are scored on them."""
