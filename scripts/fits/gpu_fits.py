"""Fits of the GPU model with families, a device or a source left out; each is made once and kept.

    published rows, runs and ops of one device, measured kernels -> FitTable
    FitTable --without a part--> GpuModel

A finished fit is written to a folder, so that a program that was stopped goes on where it was.
Those of `scripts.fits.part_fits` ship.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from driple.codec import from_json, to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.measured_run import MeasuredRun, fold_of
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.runs.validation.shipped import Shipped
from driple.runs.validation.splits import HeldOutPart
from driple.simulate.calibration import GpuModel, shipped_calibration
from driple.simulate.prepared_job import OpKinds
from scripts.fits.batched import BatchedGraph
from scripts.fits.device_fit import FitOptions, fit_devices
from scripts.fits.device_rows import tensorflow_steps, torch_steps
from scripts.fits.family_sizes import LARGEST, SMALLEST, FamilySizes, work_of_sample
from scripts.fits.fit_table import FitTable, StepRow, fit_table
from scripts.fits.hosts import known_hosts, with_usual_host
from scripts.fits.links import program_of
from scripts.fits.measured_kernels import kernel_steps
from scripts.fits.op_rows import op_steps
from scripts.fits.present_fit import with_present
from scripts.fits.sampled import sampled_forward
from scripts.fits.sizes import fold_of_smallest, sizes_of
from scripts.fits.spread_rows import computing_of, telling_rows

__all__ = ["FAMILY_OF_TENSORFLOW", "FITS", "GpuFits", "LeftOut", "Tag", "left_out_of"]

FITS = Path(__file__).with_name("parts")  # fits that ship, by scripts.fits.part_fits
# Families of TensorFlow's models among those of the PyTorch rows; others are their own.
FAMILY_OF_TENSORFLOW: Mapping[str, str] = {
    **dict.fromkeys(("resnet50", "resnet101", "resnet152"), "resnet"),
    **dict.fromkeys(("resnet50_v2", "resnet101_v2", "resnet152_v2"), "resnetv2"),
    **dict.fromkeys(("vgg11", "vgg16", "vgg19"), "vgg"),
    **dict.fromkeys(("inception3", "inception4", "googlenet"), "inception"),
}
# How much all rows of a kind count together. Forward passes are many and of three devices.
_TRAINING, _FORWARD, _TENSORFLOW, _OPS, _KERNELS = 4.0, 2.0, 1.0, 0.5, 1.0
USUAL_OPTIONS = FitOptions()


@dataclass(frozen=True, kw_only=True, slots=True)
class Tag:
    """What of a step can be left out.

    Attributes:
        fold: of its model's family; -1 for a single op, which every fit may see.
        device: that ran it.
        source: who published it.
        end: `largest` or `smallest`, where it is of that size of its model's family; else empty.
    """

    fold: int
    device: str
    source: str
    end: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """What a fit does not see; nothing by default.

    Attributes:
        fold: of model families; None for none.
        device: by its name in the catalogue; empty for none.
        source: empty for none.
        largest: fold of families whose largest size it does not see; None for none.
        smallest: the same of their smallest size.
    """

    fold: int | None = None
    device: str = ""
    source: str = ""
    largest: int | None = None
    smallest: int | None = None

    def hides(self, tag: Tag) -> bool:
        """Whether a step belongs to what is left out."""
        return (
            tag.fold == self.fold
            or (bool(self.device) and tag.device == self.device)
            or (bool(self.source) and tag.source == self.source)
            or (tag.end == LARGEST and tag.fold == self.largest)
            or (tag.end == SMALLEST and tag.fold == self.smallest)
        )

    @property
    def name(self) -> str:
        """In words, for files and progress."""
        folds = (("fold", self.fold), (LARGEST, self.largest), (SMALLEST, self.smallest))
        parts = [f"{words}-{fold}" for words, fold in folds if fold is not None]
        parts += [self.device, self.source]
        return "-".join(part.replace(" ", "_") for part in parts if part) or "nothing"


def left_out_of(part: HeldOutPart) -> LeftOut:
    """What a fit for a part does not see.

    Raises:
        ConfigError: no such split.
    """
    if part.split == "nothing":
        return LeftOut()
    if part.split == "family":
        return LeftOut(fold=int(part.name.removeprefix("fold ")))
    if part.split == "size":
        fold = int(part.name.removeprefix("sizes "))
        return LeftOut(largest=fold, smallest=fold_of_smallest(fold))
    if part.split == "device":
        return LeftOut(device=part.name)
    if part.split == "source":
        return LeftOut(source=part.name)
    raise ConfigError(f"no fit is made for the split {part.split[:40]!r}")


NOTHING = LeftOut()


class GpuFits:
    """Fits to the published steps on one device, and to those on several that tell of computing.

    What the exchange adds to the latter is simulated with a first fit, to steps on one device.

    Args:
        shipped: rows of PyTorch with their steps and folds.
        runs: of TensorFlow; those on one device count.
        graphs: of their models in single and half precision.
        published: folder of published tables, for single ops.
        measured: folder of steps that we measured, for the times of their kernels; None for none.
        cache: folder that keeps finished fits; None keeps none.
        options: of the fit.
        spread: whether steps on several devices count.
        progress: told what is being fitted.
    """

    def __init__(
        self,
        *,
        shipped: Shipped,
        runs: Sequence[TensorFlowRun],
        graphs: Mapping[tuple[str, bool], BatchedGraph],
        published: Path,
        measured: Path | None = None,
        cache: Path | None = None,
        options: FitOptions = USUAL_OPTIONS,
        spread: bool = True,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._shipped, self._published, self._spread = shipped, published, spread
        self._measured = measured
        known = set(graphs)
        self._runs = [run for run in runs if run.kind == "single" and (run.job, run.half) in known]
        self._graphs, self._cache = graphs, cache
        self._options, self._progress = options, progress
        self._table: tuple[FitTable, list[Tag]] | None = None
        self._known: dict[LeftOut, GpuModel] = {}

    def fold_of_model(self, model: str) -> int:
        """Fold of a model of TensorFlow."""
        return fold_of(_family_of(model), self._shipped.folds)

    def without(self, left_out: LeftOut = NOTHING) -> GpuModel:
        """The fit that does not see a part of the steps, with the usual host and present kernels.

        Raises:
            ConfigError: nothing would be left, or a kept fit is damaged.
        """
        usual = with_usual_host(self.fitted(left_out), known_hosts())
        return with_present(usual, left_out.fold)

    def fitted(self, left_out: LeftOut = NOTHING) -> GpuModel:
        """The same with the published host and without present kernels."""
        if left_out not in self._known:
            file = self.file_of(left_out)
            if file is not None and file.exists():
                self._known[left_out] = from_json(GpuModel, _read(file), where=file.name)
            else:
                self._known[left_out] = self._fitted(left_out)
                if file is not None:
                    _write(file, to_dict(self._known[left_out], where="fit"))
        return self._known[left_out]

    def file_of(self, left_out: LeftOut) -> Path | None:
        """File that keeps a fit; None if none is kept."""
        return None if self._cache is None else self._cache / f"{self._key(left_out)}.json.xz"

    def _key(self, left_out: LeftOut) -> str:
        """Name of a kept fit: another choice of options or rows is another fit."""
        options = [getattr(self._options, field.name) for field in fields(FitOptions)]
        rows = (len(self._shipped.rows), len(self._runs), self._measured is not None)
        facts = (options, *rows, self._spread)
        return f"{left_out.name}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:10]}"

    def _fitted(self, left_out: LeftOut) -> GpuModel:
        if self._table is None:
            self._progress("ops of all steps")
            self._table = self._made()
        table, tags = self._table
        seen = [i for i, tag in enumerate(tags) if not left_out.hides(tag)]
        if not seen:
            raise ConfigError(f"no published step is left without {left_out.name}")
        if len(seen) == len(tags) and left_out != NOTHING:
            return self.fitted()
        self._progress(
            "fit of all devices" if left_out == NOTHING else f"fit without {left_out.name}"
        )
        return fit_devices(table.take(seen), self._options)

    def _made(self) -> tuple[FitTable, list[Tag]]:
        rows, sizes = self._rows(), sizes_of(self._shipped.rows, self._shipped.steps)
        ends = {row.id: end for row, end in zip(self._shipped.rows, sizes.ends, strict=True)}
        tags = [
            Tag(
                fold=self._fold(row), device=row.device, source=row.source, end=ends[row.id]
            )
            for row in rows
        ]  # fmt: skip
        tags += self._tags_of_runs(sizes.families)

        def all_steps() -> Iterator[tuple[OpKinds, StepRow]]:
            yield from torch_steps(rows, self._weights(rows), self._shipped.steps)
            yield from tensorflow_steps(self._runs, _weights_of_runs(self._runs), self._graphs)
            for kinds, step in op_steps(self._published, _OPS):
                tags.append(Tag(fold=-1, device=step.device.name, source=step.source))
                yield kinds, step
            if self._measured is None:
                return
            for family, work, kinds, step in kernel_steps(self._measured, _KERNELS):
                tags.append(
                    Tag(
                        fold=fold_of(family, self._shipped.folds),
                        device=step.device.name,
                        source=step.source,
                        end=sizes.families.end_of(family, work),
                    )
                )
                yield kinds, step

        return fit_table(all_steps()), tags

    def _tags_of_runs(self, sizes: FamilySizes) -> list[Tag]:
        """What can be left out of TensorFlow's runs."""
        works: dict[tuple[str, bool], float] = {}
        for run in self._runs:
            if (run.job, run.half) not in works:
                job = self._graphs[run.job, run.half].job(run.batch_size, program_of(run))
                works[run.job, run.half] = work_of_sample(
                    job.kinds, samples=run.batch_size, task="train"
                )
        return [
            Tag(
                fold=self.fold_of_model(run.job),
                device=run.device,
                source=run.source,
                end=sizes.end_of(_family_of(run.job), works[run.job, run.half]),
            )
            for run in self._runs
        ]

    def _rows(self) -> list[MeasuredRun]:
        """Rows of PyTorch that are fitted, those of one job together."""
        rows = [row for row in self._shipped.rows if row.scheme == "single" and row.library]
        kept = [row for row in rows if row.task != "forward"] + sampled_forward(rows)
        kept += self._spread_rows() if self._spread else []
        return sorted(kept, key=lambda row: repr(row.step_key))

    def _spread_rows(self) -> list[MeasuredRun]:
        """Rows on several devices without what their exchange adds; found once, then kept."""
        rows = telling_rows(self._shipped.rows)
        if not rows:
            return []
        file = self._spread_file()
        if file is not None and file.exists():
            seconds = _read(file)
            return [replace(row, step_s=seconds[row.id]) for row in rows if row.id in seconds]
        calibration = replace(shipped_calibration(), model=self._first().fitted())
        self._progress("steps on several devices")
        computing = computing_of(rows, self._shipped.steps, calibration)
        if file is not None:
            _write(file, {row.id: row.step_s for row in computing})
        return computing

    def _first(self) -> GpuFits:
        """Fits to steps on one device."""
        return GpuFits(
            shipped=self._shipped,
            runs=self._runs,
            graphs=self._graphs,
            published=self._published,
            measured=self._measured,
            cache=self._cache,
            options=self._options,
            spread=False,
            progress=self._progress,
        )

    def _spread_file(self) -> Path | None:
        """File that keeps the steps on several devices without what their exchange adds."""
        name = f"{self._key(NOTHING)}-spread.json.xz"
        return None if self._cache is None else self._cache / name

    @property
    def files_of_rows(self) -> list[Path]:
        """Files that keep what all fits begin with."""
        files = (self._first().file_of(NOTHING), self._spread_file())
        return [file for file in files if file is not None]

    def _fold(self, row: MeasuredRun) -> int:
        return fold_of(row.family, self._shipped.folds)

    def _weights(self, rows: Sequence[MeasuredRun]) -> list[float]:
        """Of rows of PyTorch: families count by the root of their rows, machines alike."""
        cells = Counter((row.task, row.family, row.setting) for row in rows)
        families = Counter((row.task, row.family) for row in rows)
        machines = Counter((mode, family) for mode, family, _ in cells)
        raw = [
            families[row.task, row.family] ** 0.5
            / machines[row.task, row.family]
            / cells[row.task, row.family, row.setting]
            for row in rows
        ]
        totals: dict[str, float] = {}
        for row, weight in zip(rows, raw, strict=True):
            totals[row.task] = totals.get(row.task, 0.0) + weight
        scale = {"forward": _FORWARD}
        return [
            scale.get(row.task, _TRAINING) * weight / totals[row.task]
            for row, weight in zip(rows, raw, strict=True)
        ]


def _read(file: Path) -> Any:
    """What is kept in a file."""
    return json.loads(lzma.decompress(file.read_bytes()))


def _write(file: Path, kept: Any) -> None:
    """Keep something in a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = lzma.compress(json.dumps(kept).encode(), preset=9 | lzma.PRESET_EXTREME)
    atomic_write(file, content, error=ConfigError)


def _family_of(model: str) -> str:
    """Family of a model of TensorFlow."""
    return FAMILY_OF_TENSORFLOW.get(model, model)


def _weights_of_runs(runs: Sequence[TensorFlowRun]) -> list[float]:
    cells: Counter[Any] = Counter((run.job, run.device) for run in runs)
    raw = np.array([1.0 / cells[run.job, run.device] for run in runs])
    return (_TENSORFLOW * raw / raw.sum()).tolist() if len(raw) else []
