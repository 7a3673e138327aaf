"""The model families of the paper in TensorFlow, and their training steps."""
