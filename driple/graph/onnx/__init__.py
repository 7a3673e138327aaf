"""READ: an ONNX file -> OpGraph, its backward pass and update derived op by op."""
