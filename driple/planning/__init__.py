"""PLAN: choice of devices and instances by time and price."""
