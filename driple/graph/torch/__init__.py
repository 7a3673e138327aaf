"""READ: the training step of a PyTorch model, followed by shapes alone."""
