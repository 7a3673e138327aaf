"""PLAN: which devices, how many, at what price."""
