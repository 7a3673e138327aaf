"""Jobs as people write them, run on an H200 (27 of 76): what a step took, and what Driple says.

Programs and rows are `own_jobs.py` and `own_jobs_h200.csv` beside this file: PyTorch 2.11 on a
virtual machine with 16 virtual CPUs, 2026-11-27. None of them was seen by a fit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.jobs.load import Job, load_job
from driple.jobs.options import JobOptions
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

HOME = Path(__file__).parent
SETTING = "1xH200"
_WHISPER = "hf:whisper-small"  # whose row states tokens of the decoder


@dataclass(frozen=True, kw_only=True)
class OwnJob:
    """A job that was run.

    Attributes:
        name: program or model.
        precision: of the step.
        step_s: median seconds of a step.
        host_s: until the CPU had launched it.
        busy_s: sum of the kernels.
        kernels: their number.
        job: as Driple reads it.
    """

    name: str
    precision: str
    step_s: float
    host_s: float
    busy_s: float
    kernels: int
    job: Job

    @property
    def host_decides(self) -> bool:
        """Whether kernels run for less than 90 % of the step."""
        return self.busy_s < 0.9 * self.step_s

    def ready(self) -> ReadyJob:
        """To be asked for."""
        return ReadyJob(self.job)


def own_jobs() -> Iterator[OwnJob]:
    """All rows, as `driple predict` would read them."""
    declare_torchvision_ops()  # torchvision's own may be of another build
    with (
        (HOME / "own_jobs_h200.csv").open(encoding="utf-8", newline="") as file,
        TemporaryDirectory() as folder,
    ):
        for row in csv.DictReader(file):
            yield OwnJob(
                name=row["job"],
                precision=row["precision"],
                step_s=float(row["step_s"]),
                host_s=float(row["host_s"]),
                busy_s=float(row["busy_s"]),
                kernels=int(row["kernels"]),
                job=_read(row, Path(folder)),
            )


def _read(row: dict[str, str], folder: Path) -> Job:
    name = row["job"]
    options = JobOptions(
        precision=row["precision"],
        optimizer=row["optimizer"],
        batch_size=int(row["batch_size"]) if row["batch_size"] else None,
    )
    if name.startswith("own_jobs.py:"):  # whose programs have batches of their own
        source, options = f"{HOME}/{name}", replace(options, batch_size=None)
    elif name.startswith("timm:"):
        side = int(row["size"])
        source, options = name, replace(options, input_shape=(3, side, side))
    else:
        place = folder / name[3:]
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(row["config"], encoding="utf-8")
        source = f"hf:{place}"
        if name != _WHISPER:
            options = replace(options, seq_len=int(row["size"]))
    return load_job(source, options, setting=Setting.parse(SETTING))
