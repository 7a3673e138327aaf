"""Where the folds of a benchmark lie: splits of a data set by seed, or by family held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from driple.dataset.example import Dataset
from driple.dataset.split import Split, family_splits, random_split
from driple.evaluation.benchmark import BenchmarkConfig

__all__ = ["FoldPlace", "places_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoldPlace:
    """Place of a fold: its seed, the family held out (or none), and its rows.

    Attributes:
        seed: of the split, and of what is trained on it.
        family: held out; empty for a random split.
        split: rows of the data set.
    """

    seed: int
    family: str
    split: Split

    @property
    def name(self) -> str:
        """Name of the fold in the progress."""
        return f"{self.family}, seed {self.seed}" if self.family else f"seed {self.seed}"


def places_of(dataset: Dataset, config: BenchmarkConfig) -> Iterator[FoldPlace]:
    """All folds of a benchmark, seed by seed.

    Raises:
        DatasetError: too few workloads or families for the split.
    """
    for seed in config.seeds:
        if config.split == "random":
            yield FoldPlace(seed=seed, family="", split=random_split(dataset.workloads, seed))
        else:
            for family, split in family_splits(dataset.examples, seed):
                yield FoldPlace(seed=seed, family=family, split=split)
