"""Traces of the PyTorch profiler (Kineto): read as a stream, then summed by kind and module."""
