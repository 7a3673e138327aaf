"""Models of the built-in workloads: own definitions, for torchvision need not be installed."""
