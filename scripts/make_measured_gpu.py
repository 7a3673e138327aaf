"""Make the tables of what we measured on a GPU: datasets/measured-h100.

    JSON lines of scripts/measure_gpu.py -> rows.csv.gz, machine.json, memory_steps.xz

    python -m scripts.make_measured_gpu FILE... [--out FOLDER]

Jobs that failed for another reason than memory are left out. The steps are those that
`driple predict` reads for the same job; the page on memory compares them without PyTorch. A job
that cannot be read has a row and no step.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from driple.calibration.measured_gpu import (
    MEASURED_FILE,
    MEASURED_STEPS_FILE,
    MeasuredRow,
    write_measured_rows,
)
from driple.calibration.memory_store import write_memory_steps
from driple.errors import ConfigError, DatasetError, DripleError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.memory.step_memory import BatchedMemory, StepMemory
from scripts.gpu_jobs import configured

OUT = Path(__file__).resolve().parents[1] / "datasets" / "measured-h100"
_SETTING = "1xH100"
_COLUMNS = frozenset(one.name for one in fields(MeasuredRow))
_OUT_OF_MEMORY = "OutOfMemoryError"


def main(argv: Sequence[str] | None = None) -> int:
    """Make them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", help="of scripts/measure_gpu.py")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    try:
        machine, rows = rows_of(given.files)
        steps = dict(steps_of(rows))
        given.out.mkdir(parents=True, exist_ok=True)
        write_measured_rows(given.out / MEASURED_FILE, rows)
        text = json.dumps(machine, indent=1, sort_keys=True) + "\n"
        atomic_write(given.out / "machine.json", text.encode(), error=DatasetError)
        write_memory_steps(given.out / MEASURED_STEPS_FILE, steps)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(rows)} rows, {len(steps)} steps")
    return 0


def rows_of(files: Sequence[Path]) -> tuple[Mapping[str, Any], list[MeasuredRow]]:
    """The machine, and all rows; of a job that was measured twice the later one.

    Raises:
        ConfigError: a file is not one of `measure_gpu`, or the machines differ.
    """
    machine: dict[str, Any] = {}
    found: dict[str, MeasuredRow] = {}
    for file in files:
        for line in _lines(file):
            kind = line.pop("kind", None)
            if kind == "machine":
                if machine and machine["device"] != line["device"]:
                    raise ConfigError(
                        f"{file} was measured on {line['device']}, the files before on "
                        f"{machine['device']}; give those of one device"
                    )
                machine = line
                continue
            if kind == "failed" and _OUT_OF_MEMORY not in line.get("error", ""):
                continue
            row = MeasuredRow(
                ran=kind == "row", **{name: line[name] for name in line if name in _COLUMNS}
            )
            found[row.key] = row
    return machine, list(found.values())


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from error


def steps_of(rows: Sequence[MeasuredRow]) -> list[tuple[str, BatchedMemory]]:
    """The step of each row that can be read, at its batch size."""
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    found = []
    for row in rows:
        try:
            step = StepMemory.of(graph_of(row))
        except DripleError as error:
            print(f"{row.key}: {error}", file=sys.stderr)
            continue
        still = np.zeros(len(step.nbytes), dtype=np.float64)
        found.append((row.key, BatchedMemory(step=step, batch_size=0, bytes_each=still)))
    return found


def graph_of(row: MeasuredRow) -> OpGraph:
    """The graph of a row's step, as `driple predict` reads its job."""
    from driple.cluster.setting import Setting
    from driple.jobs.load import JobOptions, load_job

    library, _, name = row.name.partition(":")
    options = JobOptions(
        batch_size=row.batch,
        precision=row.precision,
        task=row.task,
        optimizer=row.optimizer or None,
        channels_last=row.channels_last,
        compiled=row.compiled,
        activation_checkpointing="full" if row.checkpointing else None,
    )
    setting = Setting.parse(_SETTING)
    if library == "timm":
        options = replace(options, input_shape=(3, row.size, row.size))
        return load_job(row.name, options, setting=setting, forward=True).graph
    if library == "hf":
        with tempfile.TemporaryDirectory() as folder:
            configured(name).save_pretrained(folder)
            options = replace(options, seq_len=row.size)
            return load_job(f"hf:{folder}", options, setting=setting, forward=True).graph
    return _of_torchvision(name, row)


def _of_torchvision(name: str, row: MeasuredRow) -> OpGraph:
    import torch
    import torchvision
    from torch.nn.functional import cross_entropy

    from driple.graph.torch.options import StepOptions
    from driple.graph.torch.step import traced_step

    alone = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    model = torchvision.models.get_model(name, weights=None, **alone).to("meta")
    with torch.device("meta"):
        images = torch.empty(row.batch, 3, row.size, row.size)
        labels = torch.zeros(row.batch, dtype=torch.int64)
    options = StepOptions(
        precision=row.precision,  # type: ignore[arg-type]  # checked there
        optimizer=row.optimizer or "momentum",  # type: ignore[arg-type]  # checked there
        channels_last=row.channels_last,
        compiled=row.compiled,
        task=row.task,
    )
    return traced_step(model, images, lambda made: cross_entropy(made, labels), options)


if __name__ == "__main__":
    sys.exit(main())
