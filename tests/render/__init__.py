"""Tests of how results become text."""
