"""The test bed: a small cluster on one machine that trains and is measured."""
