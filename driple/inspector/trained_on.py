"""Record of the data that an inspector learned from, as a checkpoint keeps it.

Dataset, Split, training run  ->  TrainedOn  <->  metadata of the checkpoint  (`driple.codec`)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driple.codec import Json, json_field
from driple.errors import CheckpointError
from driple.trace.provenance import TimeError

__all__ = ["Source", "TrainedOn"]

_OPTIONAL = json_field(optional=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The pre-trained inspector of a transfer.

    Attributes:
        data_set: name of the data set that it learned from.
        num_workloads: workloads of that data set.
        preset: preset that it was trained with.
        setting: its cluster setting.
        weights: hash of its weights.
        others: keys that Driple does not know.
    """

    data_set: str | None = field(default=None, metadata=_OPTIONAL)
    num_workloads: int | None = field(default=None, metadata=_OPTIONAL)
    preset: str | None = field(default=None, metadata=_OPTIONAL)
    setting: str | None = field(default=None, metadata=_OPTIONAL)
    weights: str | None = field(default=None, metadata=_OPTIONAL)
    others: Mapping[str, Json] = field(default_factory=dict, metadata=json_field(rest=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedOn:
    """Data set, sizes, sources and range of the graphs; None where nothing is recorded.

    Attributes:
        best_epoch: epoch of the weights.
        data_set: name of the data set.
        date: day of the training, ISO format.
        epochs: epochs done.
        fingerprint: hash of the data set (`driple.dataset.fingerprint`).
        label_error: error of the simulator's iteration times, where labels are simulated.
        label_sources: `measured`, `simulated` or `published`, each once.
        labels_fitted: day of the simulator's fit by which labels were simulated, ISO format.
        num_train: workloads of the training part.
        num_workloads: workloads of the data set.
        range: least and most value of each fact of a graph (`inputs.facts`) in the training part.
        seed: random seed of the training.
        transferred_from: the inspector that was adapted; None if it was trained from scratch.
        others: keys that Driple does not know.

    Raises:
        CheckpointError: a range that falls.
    """

    best_epoch: int | None = field(default=None, metadata=_OPTIONAL)
    data_set: str | None = field(default=None, metadata=_OPTIONAL)
    date: str | None = field(default=None, metadata=_OPTIONAL)
    epochs: int | None = field(default=None, metadata=_OPTIONAL)
    fingerprint: str | None = field(default=None, metadata=_OPTIONAL)
    label_error: TimeError | None = field(default=None, metadata=_OPTIONAL)
    label_sources: tuple[str, ...] = field(default=(), metadata=_OPTIONAL)
    labels_fitted: str | None = field(default=None, metadata=_OPTIONAL)
    num_train: int | None = field(default=None, metadata=_OPTIONAL)
    num_workloads: int | None = field(default=None, metadata=_OPTIONAL)
    range: Mapping[str, tuple[float, float]] = field(default_factory=dict, metadata=_OPTIONAL)
    seed: int | None = field(default=None, metadata=_OPTIONAL)
    transferred_from: Source | None = field(default=None, metadata=_OPTIONAL)
    others: Mapping[str, Json] = field(default_factory=dict, metadata=json_field(rest=True))

    def __post_init__(self) -> None:
        for name, (least, most) in self.range.items():
            if not least <= most:
                raise CheckpointError(f"trained_on.range of {name} falls from {least} to {most}")
