"""What would make a job fit that does not: each change is estimated itself.

JobMemory of a job that may not fit -> the largest batch that fits, checkpointing, fsdp, 8-bit
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from driple.api.memory import JobMemory, Remedy
from driple.errors import ConfigError, GraphError, SettingError
from driple.jobs.options import JobOptions

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.jobs.load import Job, JobReads
    from driple.memory.largest import LargestBatches
    from driple.memory.memory_estimate import MemoryEstimate

__all__ = ["largest_batch", "with_remedies"]

_ADAM = ("adam", "adamw")
_EIGHT_BITS = "adam8bit"
_LEAST_BATCH = 2  # of one sample, PyTorch runs other ops


def with_remedies(
    memory: JobMemory | None,
    job: Job,
    setting: Setting,
    reads: JobReads,
    options: JobOptions | None,
) -> JobMemory | None:
    """The memory of a job with the largest batch that fits; with remedies, if it may not fit.

    Both need a job that can be loaded anew.

    Args:
        memory: memory of the job.
        job: that is asked about.
        setting: cluster and scheme.
        reads: where the job came from; others are read there.
        options: as it was loaded.
    """
    if memory is None or memory.estimate is None or memory.estimate.fits is None:
        return memory
    if not isinstance(reads.source, str | Path):
        return memory
    if memory.estimate.fits == "yes":
        most = _most_that_fit(job, setting, reads, options or JobOptions())
        return replace(memory, largest=most)
    remedies = sorted(_remedies(job, setting, reads, options), key=_order)
    return replace(memory, remedies=tuple(remedies), remedies_asked=True)


def _order(remedy: Remedy) -> tuple[bool, float]:
    estimate = remedy.memory
    return estimate.fits != "yes", -(estimate.margin_bytes or 0.0)


def _remedies(
    job: Job, setting: Setting, reads: JobReads, options: JobOptions | None
) -> Iterator[Remedy]:
    """A smaller batch, recomputed activations, sharded parameters, states of 8 bits."""
    from driple.memory.estimate import memory_of
    from driple.schemes.registry import scheme_that_holds_least

    asked = options or JobOptions()
    batch = largest_batch(job, setting, reads, asked)
    if batch is not None:
        yield Remedy(flag=f"--batch-size {batch[0]}", memory=batch[1])
    others = {}
    if job.trains and job.activation_checkpointing == "none" and job.library is not None:
        full = replace(asked, activation_checkpointing="full")
        others["--activation-checkpointing full"] = _loaded(reads, full, setting)
    if job.trains and job.optimizer.removesuffix("-fused") in _ADAM and job.library is not None:
        others[f"--optimizer {_EIGHT_BITS}"] = _with_eight_bits(job, setting, reads, asked)
    for flag, changed in others.items():
        if changed is not None:
            yield Remedy(flag=flag, memory=memory_of(changed, setting))
    if job.trains and setting.num_workers > 1 and not setting.num_servers:
        scheme = scheme_that_holds_least().name
        try:
            sharded = setting.with_scheme(scheme)
        except SettingError:
            return
        if sharded.scheme != setting.scheme:
            yield Remedy(flag=f"--scheme {scheme}", memory=memory_of(job, sharded))


def _with_eight_bits(
    job: Job, setting: Setting, reads: JobReads, options: JobOptions
) -> Job | None:
    """The job with states of 8 bits: its own step with another update, where nothing else differs.

    Clipped gradients have kernels and tensors of their own, so have masters in fp32, and PyTorch 1
    updates otherwise.
    """
    from driple.graph.torch.eight_bit_adam import with_eight_bit_adam

    has_masters = job.step is not None and job.step.has_masters
    clips = options.with_config().clip_gradients
    if not (clips or has_masters or job.library == "torch1"):
        graph = with_eight_bit_adam(job.graph)
        if graph is not None:
            return replace(job, graph=graph, optimizer=_EIGHT_BITS)
    return _loaded(reads, replace(options, optimizer=_EIGHT_BITS), setting)


def largest_batch(
    job: Job, setting: Setting, reads: JobReads, options: JobOptions
) -> tuple[int, MemoryEstimate] | None:
    """The largest batch size below the job's that fits, and its memory; None if none is known.

    Args:
        job: at a batch size that may not fit.
        setting: cluster and scheme.
        reads: where the job came from; it is read once more, at another batch size.
        options: as the job was loaded.
    """
    from driple.memory.batch_line import batched_memory
    from driple.memory.last_that import last_that

    size = job.batch_size
    if size is None or size <= _LEAST_BATCH:
        return None
    other = _loaded(reads, replace(options, batch_size=max(_LEAST_BATCH, size // 2)), setting)
    if other is None:
        return None

    try:
        at = batched_memory(other, job, setting)
        best = 1 + last_that(lambda number: at(number + 1).fits == "yes", size - 1)
        return (best, at(best)) if best else None
    except ConfigError:  # the two jobs are not on one line
        return None


def _most_that_fit(
    job: Job, setting: Setting, reads: JobReads, options: JobOptions
) -> LargestBatches | None:
    """The largest batch sizes that fit, of a job that does; None if they are not known.

    The job is loaded once more, at another batch size.
    """
    size = job.batch_size
    if size is None or not job.origin.is_model:
        return None
    from driple.memory.batch_line import batched_memory
    from driple.memory.largest import largest_batches

    small, large = max(size, _LEAST_BATCH), 2 * max(size, _LEAST_BATCH)
    few = job if small == size else _loaded(reads, replace(options, batch_size=small), setting)
    many = _loaded(reads, replace(options, batch_size=large), setting)
    if few is None or many is None or many.batch_size == few.batch_size:
        return None
    try:
        return largest_batches(batched_memory(few, many, setting), size)
    except (ConfigError, GraphError):  # the two jobs are not on one line
        return None


def _loaded(reads: JobReads, options: JobOptions, setting: Setting) -> Job | None:
    """The job with other options; None if it does not take them."""
    try:
        return reads.job(options, setting)
    except (ConfigError, GraphError):
        return None
