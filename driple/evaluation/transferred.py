"""The method `transferred`: an inspector of another setting, tuned on the fold (section 4).

    source Dataset, the fold's seed and family --train `default`--> Checkpoint, kept as a run
    Checkpoint + the fold's training labels --transfer--> TrainResult

A family that is held out is held out of the source too, so that neither has seen it. On a random
split the source is split by the same seed, and a workload's place in the order is a hash of its
name and the seed: what one setting tests the other tests too, or validates on where its share of
the first places ends earlier. Of the shipped measured settings no test workload is one that the
source was trained on (`tests/training/test_moved.py`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split, family_splits, random_split
from driple.evaluation.benchmark import BenchmarkConfig
from driple.evaluation.foldfiles import run_folder
from driple.features import Groupings
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.training.config import Preset
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.train import RunOptions, TrainResult, train
from driple.training.transfer import TransferConfig, transfer, transfer_config

__all__ = ["TransferredMethod", "trained_once"]


@dataclass(frozen=True, kw_only=True)
class TransferredMethod:
    """Source of the inspectors, and the configuration of their tuning.

    Attributes:
        source: labels of the other setting.
        preset: preset that its inspectors are trained with.
        config: configuration of the benchmark, whose overrides hold for both trainings.
        work_dir: working folder of the benchmark, in whose runs the source's inspectors are kept.
        groupings: groupings of the graphs, shared with those of the benchmark.
    """

    source: Dataset
    preset: Preset
    config: BenchmarkConfig
    work_dir: Path
    groupings: Groupings

    @cached_property
    def _mark(self) -> str:
        return fingerprint(self.source)

    @cached_property
    def _transfer(self) -> TransferConfig:
        config = transfer_config(self.preset.name)
        return replace(config, train=self.config.overridden(config.train))

    @cached_property
    def _preset(self) -> Preset:
        return replace(self.preset, train=self.config.overridden(self.preset.train))

    def decides(self, seed: int, family: str) -> str:
        """Hash of all that decides the pre-trained inspector and its transfer."""
        split = self._split(seed, family)
        learned = sorted(self.source.workloads[i] for i in (*split.train, *split.validation))
        fields = [self._preset.config_hash(), asdict(self._transfer), self._mark, learned]
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def fold(
        self,
        dataset: Dataset,
        split: Split,
        run: Path,
        *,
        seed: int,
        family: str,
        options: RunOptions,
    ) -> TrainResult:
        """Transfer to one fold; the source is trained first, unless that is done.

        Args:
            dataset: labels of the setting that is learned.
            split: split of the fold.
            run: folder of the transfer.
            seed: random seed of the split.
            family: family that is held out; empty on a random split.
            options: options of both trainings.
        """
        checkpoint = self._pretrained(seed, family, options)
        return transfer(
            checkpoint,
            dataset,
            split,
            self._transfer,
            run,
            options=options,
            groupings=self.groupings,
        )

    def _split(self, seed: int, family: str) -> Split:
        """The fold of the source; a family that it lacks needs no holding out."""
        if family:
            for name, split in family_splits(self.source.examples, seed):
                if name == family:
                    return split
        return random_split(self.source.workloads, seed)

    def _pretrained(self, seed: int, family: str, options: RunOptions) -> Checkpoint:
        split = self._split(seed, family)
        run = run_folder(self.work_dir, self.source, self._mark, split, self._preset)
        return trained_once(
            self.source, split, self._preset, run, options=options, groupings=self.groupings
        )


def trained_once(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    run: Path,
    *,
    options: RunOptions,
    groupings: Groupings,
) -> Checkpoint:
    """The inspector of a run that is done; trained now, if it is not. Arguments as of `train`."""
    file = run / CHECKPOINT_FILE
    if file.exists():  # it is written last
        return load_checkpoint(file)
    return train(dataset, split, preset, run, options=options, groupings=groupings).checkpoint
