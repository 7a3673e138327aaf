"""INSPECT: the graph neural network that predicts the twelve numbers of a job, without PyTorch."""
