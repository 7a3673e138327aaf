"""The one way from what a user typed to a training job.

    JOB, JobOptions            --load_job-->  Job
    JOB, JobOptions, settings  --load_jobs--> a Job for each setting
    JobReads(JOB).job(JobOptions, setting)   the same Job for all that nothing tells apart

JOB is a graph file, a SavedModel's folder, a name, `hf:PATH`, `timm:NAME`, or FILE.py:FUNCTION that
builds a model of one's own; from Python also an `OpGraph`, or a `Job` (see `job_of_module`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

from driple.cluster.setting import Setting
from driple.errors import ConfigError, GraphError
from driple.graph import OpGraph
from driple.jobs.graph_file import GRAPH_FILE, job_of_graph
from driple.jobs.hugging_face import HUGGING_FACE
from driple.jobs.job import Job
from driple.jobs.onnx_file import ONNX_FILE
from driple.jobs.options import MAX_MIB, JobOptions, options_of
from driple.jobs.own_model import OWN_MODEL
from driple.jobs.pytorch_name import PYTORCH
from driple.jobs.readers import (
    JobRequest,
    nothing_of,
    reader_of,
    register_reader,
    registered_readers,
)
from driple.jobs.timm_name import TIMM
from driple.jobs.workload_name import CATALOGUE

__all__ = [
    "JOB_HELP",
    "MAX_MIB",
    "Job",
    "JobOptions",
    "JobReads",
    "JobSource",
    "load_job",
    "load_jobs",
    "reading_key",
]

for _reader in (HUGGING_FACE, TIMM, OWN_MODEL, ONNX_FILE, GRAPH_FILE, PYTORCH, CATALOGUE):
    register_reader(_reader)

JOB_HELP = f"{'; '.join(reader.form for reader in registered_readers())}. The FILE.py is executed"
JobSource = str | Path | OpGraph | Job


def load_job(
    source: JobSource,
    options: JobOptions | None = None,
    *,
    setting: str | Setting | None = None,
    training: bool = True,
    forward: bool = False,
) -> Job:
    """The job that a user named.

    Args:
        source: JOB of the command line, a graph, or a job, which is returned as it is.
        options: what the user adds to it.
        setting: cluster that the job is for, or its name: a TensorFlow workload is placed on it,
            and its devices decide the kernels of a PyTorch model; V100-P1w2 and an A100 if None.
        training: whether a graph without a training step is refused.
        forward: whether the question has an answer for a forward pass that was asked for.

    Raises:
        ConfigError: no such job, options that make no sense for it, or a forward pass where only
            training has an answer.
        SettingError: an unknown setting.
        GraphError: the file cannot be read, or contains no training step.
        MissingExtraError: a package that reads this kind of job is not installed.
    """
    options = options_of(options)
    _check_source(source)
    is_forward = not source.trains if isinstance(source, Job) else options.task == "forward"
    if is_forward and not forward:
        raise ConfigError(
            "this question is about training, and the job is a forward pass (--set task=forward); "
            "leave that out, or ask driple predict or driple inspect"
        )
    if isinstance(source, Job):
        if options.given:
            raise ConfigError(
                f"{' and '.join(options.given)}: a Job has its own options; give them to load_job, "
                "or the job by its name"
            )
        return source
    where = Setting.parse(setting) if isinstance(setting, str) else setting
    if isinstance(source, OpGraph):
        job = job_of_graph(source, options, training=training)
    else:
        text = str(source)
        reader = reader_of(text, options)
        request = JobRequest(
            text=text, options=options.with_config(where), setting=where, training=training
        )
        job = reader.read(request)
    if not options.config.file:
        return job
    config = options.config
    return replace(
        job,
        undecided=options.undecided(where),
        offload=config.offload,
        bucket_elements=config.bucket_elements,
        reuse_elements=config.reuse_elements,
        updates_in_backward=bool(config.updates_in_backward),
    )


def load_jobs(
    source: JobSource,
    options: JobOptions | None,
    settings: Sequence[Setting],
    *,
    forward: bool = False,
) -> list[Job]:
    """The job on each of several settings; those of which nothing decides it share one.

    Args:
        source: see `load_job`.
        options: see `load_job`.
        settings: clusters that the job is for.
        forward: see `load_job`.

    Raises:
        ConfigError, GraphError, MissingExtraError: see `load_job`.
    """
    reads = JobReads(source, forward=forward)
    return [reads.job(options, setting) for setting in settings]


class JobReads:
    """One JOB with several options on several settings: read once for all that decides it.

    Args:
        source: see `load_job`.
        forward: see `load_job`.

    Attributes:
        source: that was given.

    Raises:
        ConfigError: no such job.
    """

    def __init__(self, source: JobSource, *, forward: bool = False) -> None:
        _check_source(source)
        self.source = source
        self._forward = forward
        self._read: dict[Hashable, Job | ConfigError | GraphError] = {}

    def job(self, options: JobOptions | None, setting: Setting | None) -> Job:
        """The job; one that cannot be read is refused in the same words again.

        Args:
            options: see `load_job`.
            setting: see `load_job`.

        Raises:
            ConfigError, GraphError, MissingExtraError: see `load_job`.
        """
        key = reading_key(self.source, options, setting)
        if key not in self._read:
            try:
                self._read[key] = load_job(
                    self.source, options, setting=setting, forward=self._forward
                )
            except (ConfigError, GraphError) as error:
                self._read[key] = error
        job = self._read[key]
        if isinstance(job, Exception):
            raise job
        return job


def reading_key(source: JobSource, options: JobOptions | None, setting: Setting | None) -> Hashable:
    """What tells readings of one JOB apart: those with equal keys give the same job.

    Args:
        source: see `load_job`.
        options: see `load_job`.
        setting: see `load_job`.

    Raises:
        ConfigError: no such job.
    """
    asked = options_of(options)
    if setting is None:
        return repr(asked), None
    decided_by: Callable[[Setting], Hashable] = nothing_of
    if not isinstance(source, Job | OpGraph):
        decided_by = reader_of(str(source), asked).decided_by
    return repr(asked), decided_by(setting), asked.decided_by(setting)


def _check_source(source: object) -> None:
    """Refuse what is no job, such as a module, which `job_of_module` makes one of.

    Raises:
        ConfigError: which.
    """
    if not isinstance(source, JobSource):
        raise ConfigError(
            f"JOB is a {type(source).__name__}, and a path, a name, a graph or a Job is needed; "
            "make a Job of a PyTorch module with driple.job_of_module(module, batch_size=..., "
            "input_shape=...)"
        )
