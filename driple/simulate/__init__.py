"""SIMULATE: OpGraph + setting -> what NVML and the network counters would have shown."""
