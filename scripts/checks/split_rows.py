"""Check tensor, context, expert and pipeline parallelism on published rows, traced anew.

    datasets/runs/published/pytorch_rows.csv.gz -> rows with a degree above 1, in simulated
    precisions own:NAME (scripts/published/models) -> traced step -> simulated on
    2x8xV100/NVLink+100G@tp2-pp4

Needs the extras for tracing. Rows of one device from the same sources are printed beside, as the
error of their computing is in the error of every other row. Left out are rows of adapters.
Replicas of NVIDIA's programs, InternEvo and SimuMax share out their states (distributed optimizer).
With --checked, the split rows become runs that stated errors come from (then run
`python -m scripts.fits.heldout --state`).

    python -m scripts.checks.split_rows --out scripts/studies/published/split_rows.csv
    python -m scripts.checks.split_rows --checked datasets/runs/published/split_runs.json
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np

from driple.answers.checked_runs import CheckedRun, shipped_run_columns
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind
from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.errors import ConfigError, DripleError
from driple.files import atomic_write
from driple.graph.torch.options import StepOptions
from driple.runs.measured_run import MeasuredRun
from driple.runs.published_runs import (
    TRAINING_FILE,
    PublishedRun,
    library_of,
    read_published,
    setting_name,
)
from driple.runs.step_key import capability_of
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import simulated_step_s
from scripts.fits.checked import kind_of_prepared
from scripts.fits.checked_files import runs_to_json
from scripts.published.models import definition_of, traced_job

ROWS = Path(__file__).parents[2] / "datasets" / "runs" / "published" / TRAINING_FILE
_PRECISIONS = frozenset({"fp16", "bf16", "amp-fp16", "amp-bf16", "fp32", "tf32"})
_STEPS = 3
_BUILT = {
    "deepseekv3_l4": "own:deepseek-v3-l4"
}  # models that a row does not name as they are built
# Gbit/s of the adapter of each device, of machines whose network a row does not state: DGX H100 and
# B200, GB200 NVL72; of the B300 and GB300.
_ADAPTER_GBPS, _LATER_GBPS = 400, 800
_WHOLE_STATES = frozenset({"LiBai benchmark"})  # sources whose replicas share out nothing


def main(argv: list[str] | None = None) -> int:
    """Print the errors of each source and scheme; write one line a row to --out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=Path, default=ROWS, help="table of published rows")
    parser.add_argument("--out", type=Path, help="table to write: a line for each row")
    parser.add_argument("--checked", type=Path, help="runs to write, for stated errors")
    parser.add_argument("--source", help="rows of this source alone")
    parser.add_argument(
        "--fused",
        action="store_true",
        help="fuse element-wise ops where the definition of the model says so",
    )
    given = parser.parse_args(argv)
    rows = [row for row in chosen(read_published(given.rows))
            if given.source in (None, row.source)]  # fmt: skip
    if given.fused:
        rows = [
            replace(row, compiled=row.compiled or definition_of(row.job).compiled) for row in rows
        ]
    simulated_rows = list(_simulated(rows))
    predictions = [(row, seconds) for row, seconds, _ in simulated_rows]
    if given.checked:
        runs = [checked_run(*simulated) for simulated in simulated_rows if is_split(simulated[0])]
        atomic_write(given.checked, runs_to_json(runs).encode(), error=ConfigError)
    for (source, kind), some in _groups(predictions).items():
        ratio = np.array([simulated / row.step_s for row, simulated in some])
        error = 100 * abs(ratio - 1)
        print(f"{source:28} {kind:8} {len(some):3} rows  median {np.median(error):5.1f} %  "
              f"90th percentile {np.quantile(error, 0.9):5.1f} %  "
              f"simulated / published {np.median(ratio):.2f}")  # fmt: skip
    if given.out:
        with given.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["id", "source", "job", "setting", "degrees", "published_s",
                             "simulated_s"])  # fmt: skip
            for row, seconds in predictions:
                writer.writerow([row.id, row.source, row.job, split_setting(row), kind_of(row),
                                 row.step_s, f"{seconds:.4g}"])  # fmt: skip
    return 0


def chosen(rows: Sequence[PublishedRun]) -> list[PublishedRun]:
    """Rows that are split, and those of one device from the same sources."""
    rows = [
        replace(row, job=_BUILT[row.model.partition(" ")[0]])
        if not row.job and row.model.partition(" ")[0] in _BUILT
        else row
        for row in rows
    ]
    built = [
        row for row in rows
        if row.step_s > 0 and row.device and row.job.startswith("own:") and "+" not in row.job
        and row.precision in _PRECISIONS and row.task == "train"
        and not row.unused_why.startswith("duplicate")
    ]  # fmt: skip
    split = [row for row in built if is_split(row)]
    sources = {row.source for row in split}
    return split + [row for row in built if row.num_devices == 1 and row.source in sources]


def is_split(row: PublishedRun) -> bool:
    """Whether devices share a copy of the model, or its experts."""
    return any(degree > 1 for _, degree in _degrees(row))


def kind_of(row: PublishedRun) -> str:
    """Kinds of degrees above 1, such as `tp+pp`; `single` without any."""
    return "+".join(name for name, degree in _degrees(row) if degree > 1) or "single"


def split_setting(row: PublishedRun) -> str:
    """Name of the row's setting, such as `2x8xV100-SXM2/NVLink-V100+100G@tp2-pp4`."""
    plain = setting_name(replace(row, scheme="ddp" if row.num_devices > 1 else "none"))
    if row.num_devices > row.per_machine and not row.link_between:
        rate = _LATER_GBPS if row.device in ("B300", "GB300") else _ADAPTER_GBPS
        plain += f"+{row.per_machine}x{rate}G"
    words = [f"{kind}{degree}" for kind, degree in _degrees(row) if degree > 1]
    words += [word for word in row.implementation.split() if re.fullmatch(r"vpp\d+", word)]
    shares = words or row.scheme in ("zero1", "fsdp")
    if shares and row.num_devices > row.tp * row.pp:
        states = "fsdp" if row.scheme == "fsdp" else "zero1"
        words += [] if row.source in _WHOLE_STATES else [states]
    return f"{plain}@{'-'.join(words)}" if words else plain


def _degrees(row: PublishedRun) -> tuple[tuple[str, int], ...]:
    return ("tp", row.tp), ("cp", row.cp), ("ep", row.ep), ("pp", row.pp)


def checked_run(row: PublishedRun, seconds: float, kind: JobKind) -> CheckedRun:
    """A split row, which no fit has seen, as a run that stated errors come from."""
    cluster = ClusterKind.of(Setting.parse(split_setting(row)))
    seen = any(row.device == device for device, _ in shipped_run_columns().devices_seen())
    return CheckedRun(
        run=MeasuredRun(
            framework=kind.framework,
            family=row.family or row.job.removeprefix("own:").partition("-")[0],
            compiled=kind.compiled,
        ),
        kind=cluster.kind,
        held_out="model" if seen else "device",
        devices=(row.device,),
        num_devices=cluster.num_workers,
        num_servers=0,
        several_machines=cluster.several_machines,
        link=cluster.link,
        half=kind.half,
        log_ratio=log(seconds / row.step_s),
        mix=kind.mix,
    )


def checked(rows: Sequence[PublishedRun]) -> list[tuple[PublishedRun, float]]:
    """Each row with its simulated seconds."""
    return [(row, seconds) for row, seconds, _ in _simulated(rows)]


def _simulated(rows: Sequence[PublishedRun]) -> Iterator[tuple[PublishedRun, float, JobKind]]:
    """Rows with their simulated seconds and the kinds of their jobs, which are traced once."""
    jobs: dict[tuple[object, ...], list[PublishedRun]] = defaultdict(list)
    for row in rows:
        jobs[
            row.job, row.batch_size, row.size, row.precision, row.optimizer, row.grad_accumulation,
            row.activation_checkpointing, row.compiled, row.library, row.device,
            row.replays_graphs, row.channels_last, _overlaps(row),
        ].append(row)  # fmt: skip
    for some in jobs.values():
        try:
            job = prepared(some[0])
        except DripleError as error:
            print(f"{some[0].id}: {error}", file=sys.stderr, flush=True)
            continue
        kind = kind_of_prepared(job, compiled=some[0].compiled)
        for row in some:
            try:
                setting = Setting.parse(split_setting(row))
                seconds = simulated_step_s(
                    job, setting, replace(shipped_calibration(setting), jitter=0.0),
                    num_steps=_STEPS,
                )  # fmt: skip
            except DripleError as error:
                print(f"{row.id}: {error}", file=sys.stderr, flush=True)
                continue
            print(f"{row.id} {split_setting(row)} {row.job} {row.step_s:.3f} {seconds:.3f}",
                  file=sys.stderr, flush=True)  # fmt: skip
            yield row, seconds, kind


def prepared(row: PublishedRun) -> PreparedJob:
    """The step of a row on one device, as `driple validate` would have it."""
    generation = device_named(row.device).architecture.name
    options = StepOptions(
        precision=row.precision,  # type: ignore[arg-type]  # checked there
        optimizer=row.job_optimizer or definition_of(row.job).optimizer,
        grad_accumulation=row.grad_accumulation,
        activation_checkpointing=row.activation_checkpointing,  # type: ignore[arg-type]
        clip_gradients=definition_of(row.job).clip_gradients,
        compiled=row.compiled,
        channels_last=row.channels_last,
        compute_capability=divmod(capability_of(generation), 10),
    )
    graph = traced_job(row.job, batch_size=row.batch_size or 1, size=row.size or 0, options=options)
    program = Program(
        library=library_of(row.library) or None,  # type: ignore[arg-type]  # checked as it is read
        cuda_graphs=row.replays_graphs,
        tensor_overlap=_overlaps(row),
    )
    return PreparedJob(graph, program=program)


def _overlaps(row: PublishedRun) -> bool:
    return "tp-overlap" in row.implementation.split()


def _groups(
    pairs: Sequence[tuple[PublishedRun, float]],
) -> dict[tuple[str, str], list[tuple[PublishedRun, float]]]:
    groups: dict[tuple[str, str], list[tuple[PublishedRun, float]]] = defaultdict(list)
    for row, seconds in pairs:
        groups[row.source, kind_of(row)].append((row, seconds))
    return dict(sorted(groups.items()))


if __name__ == "__main__":
    sys.exit(main())
