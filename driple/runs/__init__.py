"""CALIBRATE: fits to published measurements, and how far they are off when held out."""
