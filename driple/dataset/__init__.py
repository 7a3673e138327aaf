"""DATASET: workloads with their graphs and labels, on disk and split for training.

Example, Example, ...  ->  Dataset  <->  folder (dataset.json, *.parquet)
                           Dataset  ->   Split (training, validation, test)
"""

from __future__ import annotations

from driple.dataset.example import Dataset, Example, fingerprint, graph_hash, merge_examples
from driple.dataset.split import Split, family_splits, random_split
from driple.dataset.store import read_dataset, read_datasets, write_dataset

__all__ = [
    "Dataset",
    "Example",
    "Split",
    "family_splits",
    "fingerprint",
    "graph_hash",
    "merge_examples",
    "random_split",
    "read_dataset",
    "read_datasets",
    "write_dataset",
]
