"""Split a data set for training: at random, or with one model family held out.

    workload names, seed    ->  Split               60 / 20 / 20, as the authors
    examples, seed          ->  (family, Split) ... test = the family; the rest 80 / 20

A workload's place in the order is a hash of its name and the seed. The split therefore depends on
neither the order of the rows nor the version of any random generator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Example
from driple.errors import DatasetError
from driple.units import counted

__all__ = ["Split", "family_splits", "given_split", "limited_split", "random_split"]

IndexArray = npt.NDArray[np.int64]

HELD_OUT_SHARE = 0.2
VALIDATION_SHARE = 0.25  # of training and validation together, as in 60/20/20


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Row numbers of the three parts, each increasing; no row is in two of them.

    Attributes:
        train: shape [num_train], int64.
        validation: shape [num_validation], int64; chooses the epoch, and the configuration.
        test: shape [num_test], int64; only ever reported.
    """

    train: IndexArray
    validation: IndexArray
    test: IndexArray


def random_split(workloads: Sequence[str], seed: int) -> Split:
    """60 % training, 20 % validation, 20 % test, by workload.

    Args:
        workloads: unique workload names.
        seed: another seed gives another split.

    Raises:
        DatasetError: fewer than three workloads, or one of them twice.
    """
    if len(set(workloads)) != len(workloads):
        raise DatasetError("workload names are not unique; a split needs one name per workload")
    if len(workloads) < 3:
        raise DatasetError(
            f"data set has {counted(len(workloads), 'workload')}, a random split needs 3 or more; "
            "measure more workloads"
        )
    order = _shuffled(range(len(workloads)), workloads, seed)
    held_out = max(1, round(HELD_OUT_SHARE * len(order)))
    return Split(
        train=np.sort(order[2 * held_out :]),
        validation=np.sort(order[held_out : 2 * held_out]),
        test=np.sort(order[:held_out]),
    )


def given_split(examples: Sequence[Example]) -> Split | None:
    """The split that a data set came with: `part` in the details of each example, or none.

    Raises:
        DatasetError: only some examples state their part, or a part is unknown.
    """
    parts = [example.details.get("part") for example in examples]
    if not any(parts):
        return None
    rows = {
        name: np.array([i for i, part in enumerate(parts) if part == name], dtype=np.int64)
        for name in ("train", "validation", "test")
    }
    odd = len(parts) - sum(map(len, rows.values()))
    if odd:
        raise DatasetError(
            f"{counted(odd, 'workload')} without a part of the data set, or with an unknown one; "
            "import it again"
        )
    return Split(**rows)


def family_splits(examples: Sequence[Example], seed: int) -> list[tuple[str, Split]]:
    """One split per model family: the family is the test part, the rest is split 80 / 20.

    Returns:
        Pairs of family name and split, sorted by family.

    Raises:
        DatasetError: fewer than two families, or fewer than two workloads outside one of them.
    """
    families = sorted({example.family for example in examples})
    if len(families) < 2:
        raise DatasetError(
            f"data set has {len(families)} model family, a family split needs 2 or more; "
            "measure workloads of other families"
        )
    workloads = [example.workload for example in examples]
    splits = []
    for family in families:
        inside = [i for i, example in enumerate(examples) if example.family == family]
        outside = [i for i, example in enumerate(examples) if example.family != family]
        if len(outside) < 2:
            raise DatasetError(
                f"only {len(outside)} workload is not of family {family!r}, 2 or more are needed "
                "to train and to validate; measure workloads of other families"
            )
        order = _shuffled(outside, workloads, seed)
        held_out = max(1, round(HELD_OUT_SHARE * len(order)))
        split = Split(
            train=np.sort(order[held_out:]),
            validation=np.sort(order[:held_out]),
            test=np.array(inside, dtype=np.int64),
        )
        splits.append((family, split))
    return splits


def limited_split(split: Split, workloads: Sequence[str], size: int, seed: int) -> Split:
    """The split with only `size` workloads to train and validate on; the test part stays.

    A quarter of them validates. With the same seed, a smaller choice is part of a larger one.

    Raises:
        DatasetError: there are not so many, or fewer than two are asked for.
    """
    available = len(split.train) + len(split.validation)
    if not 2 <= size <= available:
        raise DatasetError(
            f"{size} workloads to learn from were asked for, the split has 2 to {available}; "
            "ask for fewer, or measure more"
        )
    num_validation = max(1, round(VALIDATION_SHARE * size))
    train = _shuffled(split.train.tolist(), workloads, seed)[: size - num_validation]
    validation = _shuffled(split.validation.tolist(), workloads, seed)[:num_validation]
    missing = size - len(train) - len(validation)
    if missing:  # the parts of the split are not 3 to 1
        rest = np.setdiff1d(np.concatenate([split.train, split.validation]), [*train, *validation])
        train = np.concatenate([train, _shuffled(rest.tolist(), workloads, seed)[:missing]])
    return Split(train=np.sort(train), validation=np.sort(validation), test=split.test)


def _shuffled(rows: Iterable[int], workloads: Sequence[str], seed: int) -> IndexArray:
    """The rows in the order of a hash of seed and workload name."""

    def place(row: int) -> bytes:
        return hashlib.sha256(f"{seed}\n{workloads[row]}".encode()).digest()

    return np.array(sorted(rows, key=place), dtype=np.int64)
