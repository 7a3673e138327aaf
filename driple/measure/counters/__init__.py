"""Counters of devices, memory and links, and the process that samples them."""
