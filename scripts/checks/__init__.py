"""Checks of the package as a whole that print figures."""
