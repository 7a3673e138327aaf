"""Makers of the data sets of settings and of the inspectors that are trained on them."""
