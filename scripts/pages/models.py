"""Write docs/models.md: does it fit, and how fast, for thirty models on twenty GPUs.

    python -m scripts.pages.models

MODELS x GPUS --predict--> samples/s or memory needed, and the errors stated -> two tables
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import driple
from driple.cluster.setting import parse_setting
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.jobs.load import JobOptions, load_jobs
from driple.memory.memory_estimate import MemoryEstimate
from driple.quantities import rounded, size
from scripts.pages.known_models import MODELS, KnownModel

__all__ = ["GPUS", "Cell", "cell_words", "cells_of", "page_text"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
# Ten of data centres, then ten that people buy or that clouds rent for less.
GPUS = ("V100-SXM2", "V100-SXM2-32G", "A30", "A40", "A100", "A100-80G", "L40S", "H100", "H200",
        "B200", "T4", "2080Ti", "TitanRTX", "3080", "3090", "4090", "A10G", "A5000", "A6000",
        "L4")  # fmt: skip
_IN_FIRST = 10
_PRECISION = "amp-fp16"
_OPTIMIZERS = {True: "momentum", False: "adamw"}  # of images, of texts
_HEAD = Path(__file__).with_name("models.in.md")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A model on a GPU.

    Attributes:
        samples_per_s: predicted; None if the time is not known.
        needed_bytes: of the device.
        fits: `surely`, `yes` (not by the upper end of its interval), `likely not`, `no` or
            `unknown`.
        median_pct: stated error of the step time; None if it was not checked.
        p90_pct: the same for nine in ten.
    """

    samples_per_s: float | None
    needed_bytes: float | None
    fits: str
    median_pct: float | None
    p90_pct: float | None


def cells_of(model: KnownModel, gpus: Sequence[str]) -> list[Cell]:
    """The model on each GPU."""
    options = JobOptions(
        batch_size=model.batch_size,
        seq_len=model.seq_len,
        precision=_PRECISION,
        optimizer=_OPTIMIZERS[bool(model.timm)],
    )
    with tempfile.TemporaryDirectory() as folder:
        if model.config:
            (Path(folder) / "config.json").write_text(json.dumps(model.config))
        job = f"timm:{model.timm}" if model.timm else f"hf:{folder}"
        settings = [parse_setting(f"1x{gpu}") for gpu in gpus]
        jobs = load_jobs(job, options, settings)  # read once: no batch or remedy is searched for
        answers = [
            answer
            for read, setting in zip(jobs, settings, strict=True)
            for answer in driple.predict(read, setting).answers
        ]
    cells = []
    for answer in answers:
        held = None if answer.memory is None else answer.memory.estimate
        total = None if held is None else held.device_total
        stated = answer.stated
        cells.append(
            Cell(
                samples_per_s=model.batch_size / answer.iteration_time_s.value,
                needed_bytes=None if total is None else total.value,
                fits="surely" if held is not None and held.surely_fits else _fits(held),
                median_pct=None if stated is None else stated.median_pct,
                p90_pct=None if stated is None else stated.p90_pct,
            )
        )
    return cells


def _fits(held: MemoryEstimate | None) -> str:
    return "unknown" if held is None else held.fits or "unknown"


def cell_words(cell: Cell) -> str:
    """Samples per second, or the memory that is missing."""
    doubt = "" if cell.fits in {"surely", "no"} else " ?"
    if cell.fits in {"no", "likely not"} and cell.needed_bytes is not None:
        return f"*{size(cell.needed_bytes)}{doubt}*"
    return f"{'-' if cell.samples_per_s is None else rounded(cell.samples_per_s)}{doubt}"


def _step_words(model: KnownModel) -> str:
    return (
        str(model.batch_size) if model.seq_len is None else f"{model.batch_size} x {model.seq_len}"
    )


def _error_words(cells: Sequence[Cell]) -> str:
    """Median and nine in ten, from the least to the most of the GPUs."""
    medians = [cell.median_pct for cell in cells if cell.median_pct is not None]
    ends = [cell.p90_pct for cell in cells if cell.p90_pct is not None]
    if not medians or not ends:
        return "not checked"
    return f"{_span(medians)}, {_span(ends)} %"


def _span(values: Sequence[float]) -> str:
    low, high = round(min(values)), round(max(values))
    return str(low) if low == high else f"{low} to {high}"


def page_text(
    models: Sequence[KnownModel],
    rows: Sequence[Sequence[Cell]],
    gpus: Sequence[str],
    day: datetime.date,
) -> str:
    """The page.

    Args:
        models: in the order of the rows.
        rows: cells of each model, in the order of the GPUs.
        gpus: names.
        day: when it was made.
    """
    facts = {"precision": _PRECISION, "day": day.isoformat(), "image_optimizer": _OPTIMIZERS[True]}
    parts = [_HEAD.read_text(encoding="utf-8").format(**facts)]
    for title, chosen in (
        ("Data centres", range(min(_IN_FIRST, len(gpus)))),
        ("Desks, and cheaper clouds", range(min(_IN_FIRST, len(gpus)), len(gpus))),
    ):
        names = [gpus[i] for i in chosen]
        if not names:
            continue
        lines = [
            f"## {title}",
            "",
            f"| model | step | {' | '.join(names)} | error of the time |",
            f"|---|---|{'---:|' * len(names)}---|",
        ]
        for model, cells in zip(models, rows, strict=True):
            words = " | ".join(cell_words(cells[i]) for i in chosen)
            lines.append(
                f"| {model.name} | {_step_words(model)} | {words} | {_error_words(cells)} |"
            )
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict every model, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=len(MODELS), help="only so many models")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    models = MODELS[: given.first]
    rows = []
    for model in models:
        rows.append(cells_of(model, GPUS))
        print(model.name, *map(cell_words, rows[-1]), flush=True, file=sys.stderr)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    text = page_text(models, rows, GPUS, today)
    atomic_write(given.output, text.encode(), error=ConfigError)


if __name__ == "__main__":
    main()
