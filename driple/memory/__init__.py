"""MEMORY: how many bytes of device memory a training step needs."""
