"""CALIBRATE: errors of an inspector on unseen workloads -> its intervals (ours).

    validation part                      -> errors for graphs near the training graphs
    families left out, group by group    -> errors for graphs far from them

Every left-out family has the same weight, since the intervals of far graphs are for unseen
families. Each group of families needs one training, with one member and the same number of epochs.
The test part is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Dataset
from driple.dataset.split import Split
from driple.estimate import LEVEL
from driple.features import Groupings
from driple.inspector.ensemble import make_inspector
from driple.inspector.intervals import (
    NEAR_SHARE,
    Intervals,
    conformal_quantile,
    nearest_distances,
)
from driple.inspector.scaling import label_floor
from driple.training.config import Preset
from driple.training.metrics import predicted_times_s
from driple.training.prepare import PARTS, prepare
from driple.training.run import Fitted, RunOptions, fit

__all__ = ["calibrate", "carried_over", "family_groups", "folds_of", "log_errors"]

FloatArray = npt.NDArray[np.float64]

VALIDATION_EVERY = 4
_SMALLEST = 1e-9


def calibrate(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    fitted: Fitted,
    folder: Path,
    *,
    options: RunOptions,
    groupings: Groupings | None = None,
) -> Intervals | None:
    """Intervals of an inspector that was just trained.

    Args:
        dataset: examples of one setting.
        split: split that it was trained with.
        preset: its preset; `train.family_folds` is the number of groups of families that are left
            out in turn.
        fitted: the training.
        folder: folder of the run; the family groups' runs are kept in it.
        options: options of the run.
        groupings: groupings of the data set's graphs.

    Returns:
        None if the validation part is too small.
    """
    parts = fitted.prepared.parts
    floor = label_floor(parts["train"].labels)
    near = conformal_quantile(log_errors(fitted, "validation", floor))
    if near is None:
        return None
    known = parts["train"].batch.context.numpy()
    distances = nearest_distances(parts["validation"].batch.context.numpy(), known)
    far, reach = None, float(distances.max())
    left_out = [
        _train_without(dataset, part, preset, folder / name, options=options, groupings=groupings)
        for name, part in _left_out(dataset, split, preset.train.family_folds)
    ]
    if left_out:
        family_of = {item.workload: item.family for item in dataset.examples}
        far = conformal_quantile(
            np.concatenate([log_errors(one, "test", floor) for one in left_out]),
            families=[
                family_of[name] for one in left_out for name in one.prepared.parts["test"].workloads
            ],
        )
        reach = max(reach, *(_furthest(one) for one in left_out))
    return Intervals(
        level=LEVEL,
        near=near,
        far=None if far is None else np.maximum(far, near),
        threshold=float(np.quantile(distances, NEAR_SHARE)),
        reach=reach,
        known=known,
    )


def _furthest(left_out: Fitted) -> float:
    """Largest distance of a fold's test workloads to its training workloads."""
    parts = left_out.prepared.parts
    rows = parts["test"].batch.context.numpy()
    return float(nearest_distances(rows, parts["train"].batch.context.numpy()).max())


def folds_of(split: Split, num_folds: int, seed: int) -> list[tuple[str, Split]]:
    """A name and a split for each fold of the labels: one fold is the test part, the others train.

    Args:
        split: split of which the training and the validation part are used.
        num_folds: number of folds.
        seed: random seed of the order.
    """
    rows = np.sort(np.concatenate([split.train, split.validation]))
    order = np.random.default_rng(seed).permutation(rows)
    folds = []
    for number in range(num_folds):
        rest = np.delete(order, slice(number, None, num_folds))
        validation = np.arange(len(rest)) % VALIDATION_EVERY == 0
        part = Split(
            train=np.sort(rest[~validation]),
            validation=np.sort(rest[validation]),
            test=np.sort(order[number::num_folds]),
        )
        folds.append((f"fold-{number}", part))
    return folds


def carried_over(source: Intervals, left_out: Sequence[Fitted]) -> Intervals | None:
    """Intervals of a transferred inspector.

    The near half-widths come from the new labels, each predicted by a transfer without it. The
    ratio of far to near half-widths is that of the pre-trained inspector.

    Args:
        source: intervals of the pre-trained inspector.
        left_out: the transfers of `folds_of`.

    Returns:
        None if there are too few labels.
    """
    floor = label_floor(np.concatenate([one.prepared.parts["train"].labels for one in left_out]))
    errors = np.concatenate([log_errors(one, "test", floor) for one in left_out])
    near = conformal_quantile(errors)
    if near is None:
        return None
    contexts = [one.prepared.parts["test"].batch.context.numpy() for one in left_out]
    ratio = np.maximum(near / np.maximum(source.near, _SMALLEST), 1.0)
    return Intervals(
        level=source.level,
        near=near,
        far=None if source.far is None else np.maximum(source.far * ratio, near),
        threshold=source.threshold,
        reach=source.reach,
        known=np.concatenate([source.known, *contexts]),
    )


def log_errors(fitted: Fitted, name: str, floor: FloatArray) -> FloatArray:
    """|log(predicted / true)| of the targets and of the iteration time, shape [n, 13].

    Args:
        fitted: a training.
        name: name of the part.
        floor: shape [12], minimum of predictions and labels.
    """
    part, predicted = fitted.prepared.parts[name], fitted.predictions[name]
    targets = np.abs(np.log(np.maximum(predicted, floor)) - np.log(np.maximum(part.labels, floor)))
    times = np.abs(np.log(np.maximum(predicted_times_s(predicted), floor.min()) / part.times_s))
    return np.concatenate([targets, times[:, None]], axis=1)


def family_groups(families: Sequence[str], num_groups: int) -> list[set[str]]:
    """Families in at most this many groups of about as many workloads; each family in one."""
    groups: list[tuple[int, set[str]]] = [(0, set()) for _ in range(num_groups)]
    for family, count in sorted(Counter(families).items(), key=lambda item: (-item[1], item[0])):
        smallest = min(range(num_groups), key=lambda i: groups[i][0])
        size, members = groups[smallest]
        groups[smallest] = (size + count, members | {family})
    return [members for _, members in groups if members]


def _left_out(dataset: Dataset, split: Split, num_groups: int) -> list[tuple[str, Split]]:
    """A name and a split for each group of families, which is the test part."""
    if num_groups == 0:
        return []
    rows = np.concatenate([split.train, split.validation])
    groups = family_groups([dataset.examples[i].family for i in rows], num_groups)
    if len(groups) < 2:
        return []
    folds = []
    for number, group in enumerate(groups):
        kept = [
            np.array(
                [i for i in learned if dataset.examples[i].family not in group], dtype=np.int64
            )
            for learned in (split.train, split.validation)
        ]
        test = np.array([i for i in rows if dataset.examples[i].family in group], dtype=np.int64)
        if len(kept[0]) and len(kept[1]):
            part = Split(train=kept[0], validation=kept[1], test=np.sort(test))
            folds.append((f"families-{number}", part))
    return folds


def _train_without(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    folder: Path,
    *,
    options: RunOptions,
    groupings: Groupings | None,
) -> Fitted:
    """Train one member on a split without some families."""
    single = replace(preset, inspector=replace(preset.inspector, members=1))
    parts = {name: getattr(split, name).tolist() for name in PARTS}
    return fit(
        folder,
        {"preset": single.to_dict(), "rows": parts},
        single.train,
        options,
        prepare=lambda: prepare(
            dataset, split, single, progress=options.report_inputs, groupings=groupings
        ),
        make_model=lambda prepared: make_inspector(prepared.inspector, prepared.num_groups),
    )
