"""Many tasks at once: processes of this machine, or a cluster of Ray, behind the same calls."""
