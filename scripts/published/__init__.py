"""Makers of the tables, steps and graphs of what others published."""
