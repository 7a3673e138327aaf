"""What a minute with PyTorch shows of this machine: `driple measure --machine`."""
