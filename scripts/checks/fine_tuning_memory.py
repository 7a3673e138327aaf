"""Compare predicted with published memory of fine-tuning: LoRA, QLoRA, DeepSpeed's ZeRO, FSDP.

    nice python -m scripts.checks.fine_tuning_memory [WORDS ...]

datasets/runs/published: fine_tuning_memory.csv, fine_tuning_models.json -> a line for each row

Each row is read as `driple predict hf:FOLDER` reads it, from the config of its model. Words choose
rows whose model, kind or scheme they are.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from driple.cluster.setting import Setting
from driple.graph.torch.lora import LoraAdapters
from driple.jobs.load import JobOptions, load_job
from driple.memory.estimate import memory_of
from driple.memory.memory_estimate import MemoryEstimate

__all__ = ["FineTuningRun", "PredictedRun", "predicted_runs", "published_runs"]

PUBLISHED = Path(__file__).resolve().parents[2] / "datasets" / "runs" / "published"
_GIB = 2.0**30
# In use of an H100 before any process (`empty_bytes` of datasets/runs/measured-h100), which NVML
# counts and fms-acceleration subtracts.
_IDLE_GIB = 506_724_352 / _GIB


@dataclass(frozen=True, kw_only=True, slots=True)
class FineTuningRun:
    """A published run.

    Attributes:
        kind: `full`, `lora`, `qlora` or `zero`.
        source: where it is published.
        model: key of `fine_tuning_models.json`.
        setting: cluster, with its scheme.
        options: how it is trained.
        offload: what is kept on the host.
        bucket_elements: of DeepSpeed's buffer; None without DeepSpeed.
        allocated_gib: PyTorch's largest allocated memory of a device.
        device_gib: NVML's, less what was in use before; None if not stated.
        doubt: why the row may not be what it says; empty for none.
    """

    kind: str
    source: str
    model: str
    setting: Setting
    options: JobOptions
    offload: tuple[str, ...] = ()
    bucket_elements: int | None = None
    allocated_gib: float
    device_gib: float | None = None
    doubt: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedRun:
    """A published run and its prediction."""

    run: FineTuningRun
    estimate: MemoryEstimate

    @property
    def error_pct(self) -> float:
        """Relative error of the allocated memory."""
        value = 0.0 if self.estimate.allocated is None else self.estimate.allocated.value
        return 100 * (value / _GIB / self.run.allocated_gib - 1)

    @property
    def is_device_inside(self) -> bool | None:
        """Whether NVML's number is in its 90 % interval; None if either is not known."""
        device, measured = self.estimate.device_total, self.run.device_gib
        if device is None or device.lower is None or device.upper is None or measured is None:
            return None
        return device.lower <= (measured + _IDLE_GIB) * _GIB <= device.upper


def published_runs() -> list[FineTuningRun]:
    """The rows of the table."""
    with (PUBLISHED / "fine_tuning_memory.csv").open(encoding="utf-8", newline="") as file:
        return [_run(row) for row in csv.DictReader(file)]


def _run(row: dict[str, str]) -> FineTuningRun:
    setting = Setting.parse(row["setting"])
    options = JobOptions(
        batch_size=int(row["batch_size"]),
        seq_len=int(row["seq_len"]),
        precision=row["precision"],
        optimizer=row["optimizer"],
        activation_checkpointing=row["activation_checkpointing"],
        grad_accumulation=int(row["grad_accumulation"]),
        lora=LoraAdapters.read(row["lora"]) if row["lora"] else None,
        weights=row["weights"] or None,
    )
    return FineTuningRun(
        kind=row["kind"],
        source=row["source"],
        model=row["model"],
        setting=setting.with_scheme(row["scheme"]) if row["scheme"] else setting,
        options=options,
        offload=tuple(row["offload"].split("+")) if row["offload"] else (),
        bucket_elements=int(row["bucket_elements"]) if row["bucket_elements"] else None,
        allocated_gib=float(row["allocated_gib"]),
        device_gib=float(row["device_gib"]) if row["device_gib"] else None,
        doubt=row["doubt"],
    )


def predicted_runs(runs: Sequence[FineTuningRun]) -> Iterator[PredictedRun]:
    """The memory of each run; jobs that several have are read once."""
    configs = json.loads((PUBLISHED / "fine_tuning_models.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        jobs = {}
        for run in runs:
            folder = Path(place) / run.model
            folder.mkdir(exist_ok=True)
            (folder / "config.json").write_text(json.dumps(configs[run.model]), encoding="utf-8")
            key = (run.model, run.options)
            if key not in jobs:
                jobs[key] = load_job(f"hf:{folder}", run.options, setting=run.setting)
            job = replace(jobs[key], offload=run.offload, bucket_elements=run.bucket_elements)
            yield PredictedRun(run=run, estimate=memory_of(job, run.setting))


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each row, then the errors of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    words = set(parser.parse_args(argv).words)
    rows = [
        one for one in published_runs() if words <= {one.kind, one.model, one.setting.scheme.name}
    ]
    done = []
    for prediction in predicted_runs(rows):
        done.append(prediction)
        run, options = prediction.run, prediction.run.options
        value = (
            0.0
            if prediction.estimate.allocated is None
            else prediction.estimate.allocated.value / _GIB
        )
        device = (
            prediction.estimate.device_total.value / _GIB
            if prediction.estimate.device_total
            else 0.0
        )
        nvml = "" if run.device_gib is None else f"  device {device:5.1f} of {run.device_gib:5.1f}"
        print(
            f"{run.kind:5} {run.model:10} {run.setting.name:18} batch {options.batch_size} x "
            f"{options.grad_accumulation:2} {options.weights or '-':10} "
            f"{'+'.join(run.offload) or '-':17} {value:5.1f} of {run.allocated_gib:5.1f} GiB, "
            f"{prediction.error_pct:+4.0f} %{nvml}{'  doubtful' if run.doubt else ''}",
            flush=True,
        )
    for kind in dict.fromkeys(one.run.kind for one in done):
        errors = [abs(one.error_pct) for one in done if one.run.kind == kind]
        inside = [one.is_device_inside for one in done if one.run.kind == kind]
        known = [one for one in inside if one is not None]
        share = f"; device inside {sum(known)} of {len(known)}" if known else ""
        print(f"{kind}: median {median(errors):.1f} %, largest {max(errors):.0f} %{share}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
