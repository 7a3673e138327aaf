"""Make the tables of what we measured on a GPU: datasets/runs/measured-h100, -h200.

    JSON lines of scripts/runs/measure_gpu.py -> rows.csv.gz, machine.json, kernels.csv.gz,
                                            memory_steps.xz, kernels.steps.xz

    python -m scripts.runs.gpu_tables FILE... --out FOLDER

Rows that the folder has already stay; a job that was measured again has its new row. Jobs that
failed for another reason than memory are left out. The steps are those that `driple predict` reads
for the same job: the page on memory and the fit of kernels read them without PyTorch. A job that
cannot be read has a row and no step.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.errors import ConfigError, DatasetError, DripleError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.memory.step_memory import BatchedMemory, StepMemory
from scripts.fits.measured_gpu import (
    FACTS,
    MEASURED,
    MEASURED_FILE,
    MEASURED_STEPS_FILE,
    ProfiledRun,
    read_profiled_runs,
    write_profiled_runs,
)
from scripts.fits.measured_kernels import (
    KERNELS_FILE,
    KernelTime,
    key_of,
    read_kernel_times,
    write_kernel_times,
)
from scripts.fits.memory_store import write_memory_steps
from scripts.published.rows.cells import read_raw
from scripts.published.step_pack import StepPacker
from scripts.runs.gpu_jobs import configured
from scripts.runs.gpu_survey import family_of
from scripts.runs.kernel_parts import parts_of

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
PUBLISHED = DATASETS / "runs" / "published"
STEPS_FILE, MACHINE_FILE = "kernels.steps.xz", "machine.json"
_NO_MARK = 2**61 - 1  # no size is a multiple of it, so that none grows with a batch
_SHOWN = 20  # steps between two lines of progress
_NAMES = {
    fact: MEASURED.get(fact, fact)
    for fact in FACTS
    if fact not in ("family", "ran", "activation_checkpointing")
}
_OUT_OF_MEMORY = "OutOfMemoryError"


def main(argv: Sequence[str] | None = None) -> int:
    """Make them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", help="of scripts/runs/measure_gpu.py")
    parser.add_argument("--out", type=Path, required=True, help="FOLDER of the device's tables")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    try:
        machine, rows, times = rows_of(given.files)
        machine = {**_machine_of(given.out, machine["device"]), **machine}
        rows, times = with_known(given.out, rows, times)
        graphs = dict(graphs_of(rows, setting_on(machine["device"])))
        given.out.mkdir(parents=True, exist_ok=True)
        write_profiled_runs(given.out / MEASURED_FILE, rows)
        write_kernel_times(given.out / KERNELS_FILE, times)
        text = json.dumps(machine, indent=1, sort_keys=True) + "\n"
        atomic_write(given.out / MACHINE_FILE, text.encode(), error=DatasetError)
        steps = {key: memory_of(graph) for key, graph in graphs.items()}
        write_memory_steps(given.out / MEASURED_STEPS_FILE, steps)
        timed = {one.key for one in times}
        packed = packed_steps([row for row in rows if row.key in timed], graphs)
        atomic_write(given.out / STEPS_FILE, packed, error=DatasetError)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(rows)} rows, {len(steps)} steps, kernels of {len(timed)}")
    return 0


def _machine_of(folder: Path, device: str) -> Mapping[str, Any]:
    """What the folder says of the machine, such as where it stands, which no program knows."""
    file = folder / MACHINE_FILE
    if not file.exists():
        return {}
    known: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if known["device"] != device:
        raise ConfigError(f"{folder} holds runs on {known['device']}, the files some on {device}")
    return known


def setting_on(device: str) -> Setting:
    """One device.

    Args:
        device: as the driver names it.

    Raises:
        ConfigError: the catalogue lacks it.
    """
    return Setting.parse(f"1x{device_named(device).name}")


def with_known(
    folder: Path, rows: Sequence[ProfiledRun], times: Sequence[KernelTime]
) -> tuple[list[ProfiledRun], list[KernelTime]]:
    """Rows and kernels of the folder that were not measured again, then the new ones."""
    new = {row.key for row in rows}
    known, kept = [], []
    if (folder / MEASURED_FILE).exists():
        known = [row for row in read_profiled_runs(folder / MEASURED_FILE) if row.key not in new]
    if (folder / KERNELS_FILE).exists():
        kept = [one for one in read_kernel_times(folder / KERNELS_FILE) if one.key not in new]
    return [*known, *rows], [*kept, *times]


def rows_of(
    files: Sequence[Path],
) -> tuple[Mapping[str, Any], list[ProfiledRun], list[KernelTime]]:
    """The machine, all rows and their kernels; of a job that was measured twice the later ones.

    Raises:
        ConfigError: a file is not one of `measure_gpu`, or the machines differ.
    """
    machine: dict[str, Any] = {}
    runs: dict[str, ProfiledRun] = {}
    times: dict[str, list[KernelTime]] = {}
    timm = {row["name"]: row["family"] for row in read_raw(PUBLISHED / "timm_names.csv.gz")}
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
            row = ProfiledRun(
                family=family_of(line["name"], timm),
                ran=kind == "row",
                activation_checkpointing="full" if line["checkpointing"] else "none",
                **{fact: line[name] for fact, name in _NAMES.items() if line.get(name) is not None},
            )
            runs[row.key] = row
            times[row.key] = parts_of(row.key, line.get("ops", ()))
    return machine, list(runs.values()), [one for some in times.values() for one in some]


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from error


def graphs_of(rows: Sequence[ProfiledRun], setting: Setting) -> Iterator[tuple[str, OpGraph]]:
    """The step of each row that can be read, at its batch size, on the setting's device."""
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    for number, row in enumerate(rows, 1):
        try:
            graph = graph_of(row, setting)
        except DripleError as error:
            print(f"{row.key}: {error}", file=sys.stderr)
            continue
        own = int(graph.parameters.elements.sum())
        if row.parameters in (None, own):
            yield row.key, graph
        else:
            print(
                f"{row.key}: ran with {row.parameters} parameters, and this library's has {own}",
                file=sys.stderr,
            )
        if number % _SHOWN == 0:
            print(f"{number} of {len(rows)} steps", flush=True)


def memory_of(graph: OpGraph) -> BatchedMemory:
    """The tensors of a step, which does not grow with a batch."""
    step = StepMemory.of(graph)
    still = np.zeros(len(step.nbytes), dtype=np.float64)
    return BatchedMemory(step=step, batch_size=0, bytes_each=still)


def packed_steps(rows: Sequence[ProfiledRun], graphs: Mapping[str, OpGraph]) -> bytes:
    """The steps of rows whose kernels were timed, each at its own batch size."""
    packer = StepPacker(_NO_MARK)
    for row in rows:
        graph = graphs.get(row.key)
        if graph is None or row.compiled:
            continue
        update = graph.update
        numbers = (update.state_bytes, update.moved_bytes, update.num_kernels)
        packer.add(key_of(row), graph, {update.optimizer: numbers} if graph.is_training else {})
    return packer.content()


def graph_of(row: ProfiledRun, setting: Setting) -> OpGraph:
    """The graph of a row's step, as `driple predict` reads its job for a setting."""
    from driple.jobs.load import JobOptions, load_job

    library, _, name = row.job.partition(":")
    options = JobOptions(
        batch_size=row.batch_size,
        precision=row.precision,
        task=row.task,
        optimizer=row.optimizer or None,
        channels_last=row.channels_last,
        compiled=row.compiled,
        activation_checkpointing="full" if row.is_checkpointed else None,
    )
    if library == "timm":
        options = replace(options, input_shape=(3, row.size, row.size))
        return load_job(row.job, options, setting=setting, forward=True).graph
    if library == "hf":
        with tempfile.TemporaryDirectory() as folder:
            configured(name).save_pretrained(folder)
            options = replace(options, seq_len=row.size)
            return load_job(f"hf:{folder}", options, setting=setting, forward=True).graph
    return _of_torchvision(name, row)


def _of_torchvision(name: str, row: ProfiledRun) -> OpGraph:
    import torch
    import torchvision
    from torch.nn.functional import cross_entropy

    from driple.graph.torch.options import StepOptions
    from driple.graph.torch.step import traced_step

    alone = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    model = torchvision.models.get_model(name, weights=None, **alone).to("meta")
    with torch.device("meta"):
        images = torch.empty(row.batch_size, 3, row.size, row.size)
        labels = torch.zeros(row.batch_size, dtype=torch.int64)
    options = StepOptions(
        precision=row.precision,  # type: ignore[arg-type]  # checked there
        optimizer=row.optimizer or "momentum",
        channels_last=row.channels_last,
        compiled=row.compiled,
        task=row.task,  # type: ignore[arg-type]  # checked there
    )
    return traced_step(model, images, lambda made: cross_entropy(made, labels), options)


if __name__ == "__main__":
    sys.exit(main())
