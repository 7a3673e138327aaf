"""VALIDATE: how far predictions are from measured runs that their fits had not seen."""
