"""The errors that were reached beside those that were wanted, task by task.

rows, held-out predictions, TensorFlow runs, checked runs --reached--> Reached, ...

Every task stands with each way of leaving something out of the fits; where no such predictions were
made, its errors are None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.runs.measured_run import ALL_REDUCE, MeasuredRun, family_of_job
from driple.runs.validation.held_out import HeldOutPrediction
from driple.runs.validation.metrics import family_weights, weighted_quantile
from driple.runs.validation.predictions import Predictions, RowPrediction
from driple.runs.validation.speedups import (
    CompilePair,
    compile_pairs,
    constant_speedups,
    predicted_speedups,
)

__all__ = [
    "CONSTANT_TASK",
    "RECURRENT",
    "SPEEDUP_TASK",
    "SPLITS",
    "Errors",
    "Reached",
    "errors_by",
    "errors_of",
    "reached",
    "reached_by_tensorflow",
    "rows_of_tasks",
]

FloatArray = npt.NDArray[np.float64]
RowTest = Callable[[MeasuredRun], bool]

SPLITS = ("family", "device", "source")
RECURRENT = frozenset({"gnmt"})  # of the language models
_LARGEST_DDP = 320
_MLPERF = "MLPerf"
_BY_DEVICE = frozenset({"lambda-pytorch", "NVIDIA DeepLearningExamples"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Errors:
    """Errors |predicted - measured| / measured on some rows, in percent.

    Attributes:
        rows: how many.
        families: model families among them.
        median_pct: median over rows.
        p90_pct: 90th percentile over rows.
        family_median_pct: median with each family weighted alike, and each machine type of it.
        family_p90_pct: 90th percentile with these weights.
        signed_pct: median over rows of (predicted - measured) / measured.
    """

    rows: int
    families: int
    median_pct: float
    p90_pct: float
    family_median_pct: float
    family_p90_pct: float
    signed_pct: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """One task with one way of leaving something out.

    Attributes:
        task: in words.
        split: what the fits had not seen, a key of `predictions.SPLITS`.
        wanted_median_pct: the median error that was aimed at, percent; None for none.
        wanted_p90_pct: the 90th percentile that was aimed at, percent; None for none.
        errors: that were reached; None where the predictions were not made.
    """

    task: str
    split: str
    wanted_median_pct: float | None
    wanted_p90_pct: float | None
    errors: Errors | None


@dataclass(frozen=True, slots=True)
class _Task:
    """Rows that belong together, and what is wanted on them in each split."""

    name: str
    is_of: RowTest
    wanted: dict[str, tuple[float, float]]
    # Sources that count where a device is left out; where a family is, timm's rows count alone.
    by_device: frozenset[str] | None = None

    def counts(self, row: MeasuredRun, split: str) -> bool:
        """Whether a row of the task counts where a split is left out."""
        if self.by_device is None or split == "source":
            return True
        return row.source in self.by_device if split == "device" else row.source == "timm"


_VISION = {"family": (7.0, 22.0), "device": (12.0, 35.0)}
_FORWARD = {"family": (7.0, 22.0), "device": (10.0, 28.0)}
_TRANSFORMERS = {"family": (8.0, 22.0), "device": (12.0, 35.0)}


def _is_transformer(row: MeasuredRun) -> bool:
    return row.domain == "language" and row.family not in RECURRENT


def _is_mlperf(row: MeasuredRun) -> bool:
    return row.source.startswith(_MLPERF)


_TASKS = (
    _Task(
        "one GPU, vision, training in PyTorch (family left out: RTX 3090)",
        lambda row: (row.scheme, row.domain, row.task) == ("single", "vision", "train"),
        _VISION,
        _BY_DEVICE,
    ),
    _Task(
        "one GPU, vision, forward pass (three GPUs)",
        lambda row: (row.scheme, row.domain, row.task) == ("single", "vision", "forward"),
        _FORWARD,
    ),
    _Task(
        "one GPU, transformers of language, training",
        lambda row: (row.scheme, row.task) == ("single", "train") and _is_transformer(row),
        _TRANSFORMERS,
    ),
    _Task(
        "one GPU, speech, recommenders, recurrent translation, training",
        lambda row: (
            (row.scheme, row.task) == ("single", "train")
            and row.domain != "vision"
            and not _is_transformer(row)
        ),
        {"family": (15.0, 50.0)},
    ),
    _Task(
        "DDP, 2 to 320 GPUs",
        lambda row: (
            row.scheme == ALL_REDUCE and not _is_mlperf(row) and row.num_devices <= _LARGEST_DDP
        ),
        {"family": (10.0, 35.0)},
    ),
    _Task(
        "DDP, MLPerf, 8 to 3,456 GPUs",
        lambda row: row.scheme == ALL_REDUCE and _is_mlperf(row),
        {"family": (20.0, 60.0)},
    ),
    _Task(
        "FSDP and ZeRO, 1 to 512 GPUs", lambda row: row.scheme == "sharded",
        {"family": (9.0, 25.0)},
    ),
)  # fmt: skip
_TENSORFLOW = {
    "single": ("one GPU, TensorFlow", _TRANSFORMERS),
    "ring": ("all-reduce, TensorFlow", {}),
}
_SERVERS_PCT = 10.0
_SPEEDUP_PCT = (7.0, 20.0)
SPEEDUP_TASK = "speed-up by torch.compile"
CONSTANT_TASK = f"{SPEEDUP_TASK}, a constant on the same rows"


def errors_of(ratios: FloatArray, weights: FloatArray, families: Sequence[str]) -> Errors:
    """Errors of predictions.

    Args:
        ratios: predicted over measured, shape [n], n of at least 1.
        weights: of each, with families equal.
        families: of each.
    """
    signed = ratios - 1
    errors = np.abs(signed)
    return Errors(
        rows=len(errors),
        families=len(set(families)),
        median_pct=100 * float(np.median(errors)),
        p90_pct=100 * float(np.percentile(errors, 90)),
        family_median_pct=100 * weighted_quantile(errors, weights, 0.5),
        family_p90_pct=100 * weighted_quantile(errors, weights, 0.9),
        signed_pct=100 * float(np.median(signed)),
    )


def errors_by(
    rows: Sequence[MeasuredRun],
    predictions: Predictions,
    split: str,
    key: Callable[[MeasuredRun], str],
) -> dict[str, Errors]:
    """Errors of the groups of rows that a key names, in the order of the names.

    Args:
        rows: with measured times.
        predictions: of the rows; those without one are left out.
        split: what the fits had not seen.
        key: name of the group of a row.
    """
    groups: dict[str, list[MeasuredRun]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    errors_of_group = {
        name: _errors_of_rows(some, predictions, split) for name, some in sorted(groups.items())
    }
    return {name: errors for name, errors in errors_of_group.items() if errors is not None}


def reached(
    rows: Sequence[MeasuredRun],
    predictions: Predictions,
    folds: Mapping[str, int] | None = None,
) -> list[Reached]:
    """All tasks of PyTorch, each with a family, a device and a source left out.

    Args:
        rows: with measured times.
        predictions: by fits that had not seen them.
        folds: fold of each family.
    """
    return [*_of_rows(rows, predictions), *_of_speedups(rows, predictions, folds)]


def rows_of_tasks(rows: Sequence[MeasuredRun]) -> dict[tuple[str, str], list[MeasuredRun]]:
    """The rows that count of each task, by its name and by what is left out."""
    return {
        (task.name, split): [row for row in rows if task.is_of(row) and task.counts(row, split)]
        for task in _TASKS
        for split in SPLITS
    }


def _of_rows(rows: Sequence[MeasuredRun], predictions: Predictions) -> Iterator[Reached]:
    for task in _TASKS:
        some = [row for row in rows if task.is_of(row)]
        for split in SPLITS:
            kept = [row for row in some if task.counts(row, split)]
            wanted = task.wanted.get(split, (None, None))
            yield Reached(
                task=task.name,
                split=split,
                wanted_median_pct=wanted[0],
                wanted_p90_pct=wanted[1],
                errors=_errors_of_rows(kept, predictions, split),
            )


def _errors_of_rows(
    rows: Sequence[MeasuredRun], predictions: Predictions, split: str
) -> Errors | None:
    pairs = [
        (row, prediction)
        for row in rows
        if (prediction := predictions.of(row.id, split)) is not None
    ]
    if not pairs:
        return None
    kept = [row for row, _ in pairs]
    ratios = np.array([one.seconds / row.step_s for row, one in pairs])
    return errors_of(ratios, family_weights(kept), [row.family for row in kept])


def _of_speedups(
    rows: Sequence[MeasuredRun], predictions: Predictions, folds: Mapping[str, int] | None
) -> Iterator[Reached]:
    """Errors of the ratio of two rows that differ in the compiler alone.

    The constant is the median of the pairs of other folds of families, on the pairs that the
    simulator predicts.
    """
    pairs = compile_pairs(rows)
    constants = constant_speedups(pairs, folds)
    for split in SPLITS:
        seconds: list[RowPrediction | None] = [predictions.of(row.id, split) for row in rows]
        some, speedups = predicted_speedups(pairs, seconds)
        wanted = _SPEEDUP_PCT if split == "family" else (None, None)
        yield Reached(
            task=SPEEDUP_TASK,
            split=split,
            wanted_median_pct=wanted[0],
            wanted_p90_pct=wanted[1],
            errors=_errors_of_pairs(some, speedups),
        )
        if split == "family":
            kept = np.array([constants[pair.eager] for pair in some])
            yield Reached(
                task=CONSTANT_TASK,
                split=split,
                wanted_median_pct=None,
                wanted_p90_pct=None,
                errors=_errors_of_pairs(some, kept),
            )


def _errors_of_pairs(pairs: Sequence[CompilePair], speedups: FloatArray) -> Errors | None:
    if not pairs:
        return None
    kept = [pair.row for pair in pairs]
    ratios = speedups / np.array([pair.speedup for pair in pairs])
    return errors_of(ratios, family_weights(kept), [row.family for row in kept])


def reached_by_tensorflow(predictions: Sequence[HeldOutPrediction]) -> list[Reached]:
    """TensorFlow on one device and on rings; parameter servers source by source.

    Args:
        predictions: of runs, with a model or a device left out. No source was left out.
    """
    rows = []
    for kind, (task, wanted) in _TENSORFLOW.items():
        for split in SPLITS:
            some = [one for one in predictions if one.run.kind == kind and _split(one) == split]
            median_pct, p90_pct = wanted.get(split, (None, None))
            rows.append(_of_runs(task, split, some, median_pct, p90_pct))
    servers = [one for one in predictions if one.run.kind == "servers"]
    for source in sorted({one.run.source for one in servers}):
        for split in ("family", "device"):
            some = [one for one in servers if (one.run.source, _split(one)) == (source, split)]
            task = f"parameter servers, TensorFlow, source {source}"
            rows.append(_of_runs(task, split, some, _SERVERS_PCT, None))
    return rows


def _split(prediction: HeldOutPrediction) -> str:
    return "family" if prediction.held_out == "model" else prediction.held_out


def _of_runs(
    task: str,
    split: str,
    predictions: Sequence[HeldOutPrediction],
    wanted_median_pct: float | None,
    wanted_p90_pct: float | None,
) -> Reached:
    families = [family_of_job(one.run.job) for one in predictions]
    counts = {name: families.count(name) for name in families}
    weights = np.array([1 / counts[name] / len(counts) for name in families])
    ratios = np.array([one.simulated_s / one.run.step_s for one in predictions])
    return Reached(
        task=task,
        split=split,
        wanted_median_pct=wanted_median_pct,
        wanted_p90_pct=wanted_p90_pct,
        errors=errors_of(ratios, weights, families) if predictions else None,
    )
