"""READ: TensorFlow graph files, without TensorFlow; nothing in them is executed."""
