"""Profile a job with one worker on this machine: real steps, fully traced (Li et al., section 2).

    Workload, setting -> TurnCluster with tracing -> RunMetadata files -> JobTrace
    files of the user's own job                    -> JobTrace

Tracing adds time between steps, so the step time comes from untraced steps.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Sequence
from pathlib import Path

from driple.async_sgd.jobtrace import JobTrace
from driple.async_sgd.origin import TraceOrigin
from driple.checks import check_whole
from driple.cluster.setting import Setting
from driple.errors import ConfigError, TraceError
from driple.jobs.workload import Workload
from driple.measure.testbed.async_cluster import TurnCluster, TurnJob
from driple.measure.testbed.cluster import RunPlan, require_measurable
from driple.measure.testbed.cpu_quota import worker_shares
from driple.measure.testbed.metadata import ProfiledStep, records_of
from driple.measure.testbed.step_trace import job_trace_of
from driple.measure.testbed.timelines import records_of_timelines

__all__ = ["profile_workload", "read_recorded", "read_steps"]

_LEAST_STEPS = 2
_MOST_STEPS = 1000
_MOST_BYTES = 256 * 2**20  # limit of one step's file


def profile_workload(
    workload: Workload, setting: Setting, plan: RunPlan, num_steps: int
) -> JobTrace:
    """Train a workload with one worker and its servers, and trace `num_steps` steps.

    Args:
        workload: the workload.
        setting: a CPU setting with one worker, such as CPU-P1w1/ho-200M.
        plan: quotas of worker and servers, and number of untraced, timed steps.
        num_steps: number of traced steps.

    Raises:
        ConfigError: the setting has more than one worker, or steps out of range.
        MeasureError: this machine cannot measure the setting, or a role failed.
        TraceError: TensorFlow's record cannot be read.
    """
    check_whole("--set steps", num_steps, _LEAST_STEPS, _MOST_STEPS)
    if setting.num_workers != 1:
        raise ConfigError(
            f"profiling takes one worker, {setting.name} has {setting.num_workers}; give a setting "
            "such as CPU-P1w1/ho-200M"
        )
    bits_per_s = require_measurable(setting)
    job = TurnJob(
        workload=workload,
        num_servers=setting.num_servers,
        num_workers=1,
        bits_per_s=bits_per_s,
        server_share=plan.server_share,
        worker_share=worker_shares(setting, plan.share)["w0"],
    )
    with (
        tempfile.TemporaryDirectory(prefix="driple-profile-") as name,
        TurnCluster(setting.num_servers, 1) as cluster,
    ):
        cluster.open(job)
        cluster.trace(Path(name), num_steps)
        turn = cluster.turn([0.0], plan.seconds)
        cluster.close_job()
        about = TraceOrigin(
            workload=workload.name,
            setting=setting.name,
            worker_share=plan.share,
            server_share=plan.server_share,
            provenance="measured",
            versions=cluster.versions,
            other_cores=turn.other_cores,
            measured=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        return read_steps(
            Path(name),
            batch_size=workload.batch_size,
            bytes_per_s=bits_per_s / 8,
            step_s=1 / turn.steps_per_s(0.0),
            about=about,
        )


def read_steps(
    folder: Path, *, batch_size: int, bytes_per_s: float, step_s: float, about: TraceOrigin
) -> JobTrace:
    """The trace of the steps that `TurnCluster.trace` wrote into a folder.

    Args:
        folder: folder with a `RunMetadata` of each step, named by its start time.
        batch_size: examples of a step.
        bytes_per_s: rate of the links.
        step_s: mean step time without tracing, seconds.
        about: origin of the trace.

    Raises:
        TraceError: a record is damaged, or holds no partition graphs or no transfers.
    """
    steps = [
        ProfiledStep(metadata=file.read_bytes(), begin_s=int(file.stem) / 1e9)
        for file in sorted(folder.glob("*.pb"))
    ]
    return job_trace_of(
        *records_of(steps),
        batch_size=batch_size,
        bytes_per_s=bytes_per_s,
        untraced_step_s=step_s,
        about=about,
    )


def read_recorded(
    files: Sequence[Path], *, batch_size: int, bytes_per_s: float, step_s: float | None
) -> JobTrace:
    """The trace of a user's own job, from TensorFlow's records of its steps.

    Args:
        files: files of successive steps. Either each holds a serialised `RunMetadata`, the first
            with the partition graphs; or each holds a Chrome timeline with tensor descriptions.
        batch_size: examples of a step.
        bytes_per_s: rate of the links during profiling.
        step_s: step time without tracing, seconds, if measured.

    Raises:
        TraceError: a file cannot be read, holds no such record, or is of another kind.
    """
    contents = {str(file): _content(file) for file in files}
    kinds = {content.lstrip()[:1] in {b"{", b"["} for content in contents.values()}
    if len(kinds) > 1:
        raise TraceError("some files are Chrome timelines and others are not; give one kind")
    if True in kinds:
        recorded = records_of_timelines(contents, bytes_per_s)
    else:
        recorded = records_of(
            [ProfiledStep(metadata=content, begin_s=None) for content in contents.values()]
        )
    return job_trace_of(
        *recorded,
        batch_size=batch_size,
        bytes_per_s=bytes_per_s,
        untraced_step_s=step_s,
        about=TraceOrigin(files=tuple(file.name for file in files), provenance="measured"),
    )


def _content(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if size > _MOST_BYTES:
            raise TraceError(
                f"{file} holds {size / 2**20:.0f} MiB, more than the {_MOST_BYTES / 2**20:.0f} "
                "that one step may; give one step per file"
            )
        return file.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot read {file}: {error.strerror}") from error
