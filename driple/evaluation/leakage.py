"""Overlap of pre-training and test workloads of a transfer (leakage check).

    checkpoint, its file --run folder, or data set and seed 0--> names that it learned from
    those, tested names  --> Leakage: size of the overlap

A workload has the same graph on every setting, so a test workload that the pre-trained inspector
was trained on elsewhere is not unseen. A checkpoint does not contain its split, but the folder of
its run does (`runfiles.py`). Without the folder, the split of seed 0 is assumed, which all shipped
inspectors use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from driple.dataset.lookup import read_labels
from driple.dataset.split import random_split
from driple.errors import DatasetError
from driple.inspector.checkpoint import Checkpoint
from driple.inspector.trained_on import Source, TrainedOn
from driple.storedfiles import read_json
from driple.training.runfiles import CONFIG_FILE

__all__ = ["USUAL_SEED", "Leakage", "learned_tests"]

USUAL_SEED = 0  # of the split, of `driple train` and of all shipped inspectors


@dataclass(frozen=True, kw_only=True, slots=True)
class Leakage:
    """Overlap of a test set with the training part of a transfer's source.

    Attributes:
        tested: workloads of the test part.
        learned: those of them that were in the source's training part; without a record, those
            that may have been.
        recorded: whether the source's split is on record; else it is taken to be that of seed 0.
    """

    tested: int
    learned: int
    recorded: bool


def learned_tests(
    checkpoint: Checkpoint, file: Path, tested: Iterable[str], roots: Sequence[Path]
) -> Leakage | None:
    """Number of tested workloads that an inspector has learned from; None if unknown.

    Args:
        checkpoint: the pre-trained inspector.
        file: checkpoint file from which it was read.
        tested: names of the workloads.
        roots: folders in which the source's data set is looked for, by its name.
    """
    facts = checkpoint.trained_on
    own = _recorded(file, facts)
    recorded = own is not None
    if own is None:
        own = _of_usual_seed(facts, roots)
    if own is None:
        return None
    origin = facts.transferred_from
    if origin is not None and (earlier := _of_usual_seed(origin, roots)):
        own, recorded = own | earlier, False  # what it started from had learned, too
    names = set(tested)
    return Leakage(tested=len(names), learned=len(names & own), recorded=recorded)


def _recorded(file: Path, facts: TrainedOn) -> set[str] | None:
    """The training part in the folder of the run, if the file still lies there."""
    try:
        run = read_json(file.parent / CONFIG_FILE)["run"]
        mark, names = run["data_set"]["fingerprint"], {str(name) for name in run["split"]["train"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    same = mark == facts.fingerprint and len(names) == facts.num_train
    return names if same else None


def _of_usual_seed(facts: TrainedOn | Source, roots: Sequence[Path]) -> set[str] | None:
    """The training part that seed 0 gives; all workloads if the part that was used is larger."""
    for root in roots:
        try:
            names = tuple(read_labels(root / Path(str(facts.data_set)).name).targets)
            train = random_split(names, USUAL_SEED).train
        except DatasetError:
            continue
        if len(names) != facts.num_workloads:
            continue
        used = facts.num_train if isinstance(facts, TrainedOn) else None
        fits = used is None or used <= len(train)
        return {names[i] for i in train} if fits else set(names)
    return None
