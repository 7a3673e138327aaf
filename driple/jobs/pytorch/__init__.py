"""PyTorch models that Driple builds itself, and what they train on."""
