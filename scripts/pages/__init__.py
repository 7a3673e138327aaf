"""Makers of pages of the documentation, and of the schema of `--json`."""
