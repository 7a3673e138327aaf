"""Memory beside every answer for a GPU setting: whether the job fits, and what would make it fit.

Job, Setting -> JobMemory: MemoryEstimate, or why it is unknown; remedies, each estimated itself
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driple.codec import Json
from driple.errors import ConfigError, GraphError, SettingError

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.jobs.load import Job, JobOptions, JobSource
    from driple.memory.estimate import Bytes, MemoryEstimate

__all__ = [
    "JobMemory",
    "Remedy",
    "largest_batch",
    "memory_beside",
    "memory_dict",
    "memory_sentence",
]

_GIB = 2.0**30
_ADAM = ("adam", "adamw")
_FSDP, _EIGHT_BITS = "fsdp", "adam8bit"
_LEAST_BATCH = 2  # of one sample, PyTorch runs other ops


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """A change of the job or of the scheme, and the memory that it would need.

    Attributes:
        flag: as it is typed, such as `--batch-size 12`.
        memory: estimate with it.
    """

    flag: str
    memory: MemoryEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class JobMemory:
    """Memory of a job on one device of a setting.

    Attributes:
        estimate: what it needs; None if it is unknown.
        reason: why it is unknown; empty if it is known.
        remedies: what would make it fit, if it may not; those that fit come first.
        remedies_asked: whether remedies were looked for.
    """

    estimate: MemoryEstimate | None
    reason: str = ""
    remedies: tuple[Remedy, ...] = ()
    remedies_asked: bool = False


def memory_beside(
    job: Job, setting: Setting, source: JobSource | None = None, options: JobOptions | None = None
) -> JobMemory | None:
    """Memory of a job, and remedies where it may not fit; None for a setting without GPUs.

    Args:
        job: that is asked about.
        setting: cluster and scheme.
        source: where the job came from, to load it with other options; None looks for no remedy.
        options: as the job was loaded.

    Raises:
        CatalogError: the catalogue does not state the memory of the device.
    """
    from driple.memory.estimate import memory_of

    if setting.on_cpu:
        return None
    try:
        made = memory_of(job, setting)
    except GraphError as error:
        return JobMemory(estimate=None, reason=str(error))
    if made.allocated is None:
        return JobMemory(estimate=None, reason=made.source)
    if made.fits == "yes" or source is None or not isinstance(source, str):
        return JobMemory(estimate=made)
    found = sorted(_remedies(job, setting, source, options), key=_order)
    return JobMemory(estimate=made, remedies=tuple(found), remedies_asked=True)


def _order(remedy: Remedy) -> tuple[bool, float]:
    made = remedy.memory
    return made.fits != "yes", -(made.margin_bytes or 0.0)


def _remedies(
    job: Job, setting: Setting, source: str, options: JobOptions | None
) -> Iterator[Remedy]:
    """A smaller batch, recomputed activations, sharded parameters, states of 8 bits."""
    from driple.jobs.load import JobOptions
    from driple.memory.estimate import memory_of

    asked = options or JobOptions()
    batch = largest_batch(job, setting, source, asked)
    if batch is not None:
        yield Remedy(flag=f"--batch-size {batch[0]}", memory=batch[1])
    others = []
    if job.trains and job.activation_checkpointing == "none" and job.library is not None:
        others.append(("--activation-checkpointing full", {"activation_checkpointing": "full"}))
    if job.trains and job.optimizer.removesuffix("-fused") in _ADAM and job.library is not None:
        others.append((f"--optimizer {_EIGHT_BITS}", {"optimizer": _EIGHT_BITS}))
    for flag, change in others:
        changed = _loaded(source, replace(asked, **change), setting)  # type: ignore[arg-type]
        if changed is not None:
            yield Remedy(flag=flag, memory=memory_of(changed, setting))
    if job.trains and setting.num_workers > 1 and not setting.num_servers:
        try:
            sharded = setting.with_scheme(_FSDP)
        except SettingError:
            return
        if sharded.scheme != setting.scheme:
            yield Remedy(flag=f"--scheme {_FSDP}", memory=memory_of(job, sharded))


def largest_batch(
    job: Job, setting: Setting, source: str, options: JobOptions
) -> tuple[int, MemoryEstimate] | None:
    """The largest batch size below the job's that fits, and its memory; None if none is known.

    Args:
        job: at a batch size that may not fit.
        setting: cluster and scheme.
        source: where the job came from; it is loaded once more, at another batch size.
        options: as the job was loaded.
    """
    from driple.memory.estimate import memory_at_batches

    size = job.batch_size
    if size is None or size <= _LEAST_BATCH:
        return None
    other = _loaded(source, replace(options, batch_size=max(_LEAST_BATCH, size // 2)), setting)
    if other is None:
        return None
    low, high, best = 0, size, None
    while high - low > 1:
        middle = (low + high) // 2
        try:
            made = memory_at_batches(other, job, setting, [middle])[0]
        except ConfigError:
            return None
        if made.fits == "yes":
            low, best = middle, (middle, made)
        else:
            high = middle
    return best


def _loaded(source: str, options: JobOptions, setting: Setting) -> Job | None:
    """The job with other options; None if it does not take them."""
    from driple.jobs.load import load_job

    try:
        return load_job(source, options, setting=setting, forward=True)
    except (ConfigError, GraphError):
        return None


def memory_dict(found: JobMemory | None) -> dict[str, Json] | None:
    """The memory of one answer in the JSON of every command."""
    if found is None:
        return None
    made = found.estimate
    if made is None:
        return {"known": False, "reason": found.reason}
    return {"known": True, "reason": "", **_estimate_dict(made)} | {
        "parts": dict(made.parts),
        "largest": made.largest,
        "source": made.source,
        "what_would_fit": [
            {"flag": one.flag, **_estimate_dict(one.memory)} for one in found.remedies
        ],
    }


def _estimate_dict(made: MemoryEstimate) -> dict[str, Json]:
    return {
        "allocated_bytes": _bytes_dict(made.allocated),
        "reserved_bytes": _bytes_dict(made.reserved),
        "device_total_bytes": _bytes_dict(made.device_total),
        "is_lower_bound": made.is_lower_bound,
        "capacity_bytes": made.capacity_bytes,
        "usable_bytes": made.usable_bytes,
        "fits": made.fits,
        "margin_bytes": made.margin_bytes,
    }


def _bytes_dict(one: Bytes | None) -> dict[str, Json] | None:
    if one is None:
        return None
    return {"value": one.value, "lower": one.lower, "upper": one.upper}


def memory_sentence(made: MemoryEstimate) -> str:
    """Three numbers, whether the job fits, and what is largest, in one line."""
    numbers = [
        f"{_gib(one.value)} {words}"
        for one, words in (
            (made.allocated, "allocated"), (made.reserved, "reserved"),
        )
        if one is not None
    ]  # fmt: skip
    total = made.device_total
    if total is not None:
        ends = ""
        if total.lower is not None and total.upper is not None:
            ends = f" ({_gib(total.lower, unit=False)} to {_gib(total.upper, unit=False)})"
        numbers.append(f"{_gib(total.value)} on the device{ends}")
    least = "at least " if made.is_lower_bound else ""
    words = f"memory {least}{', '.join(numbers)}"
    if made.capacity_bytes is not None:
        words += f" of {_gib(made.capacity_bytes)}: {_fits_words(made)}"
    return f"{words}; largest: {made.largest}" if made.largest else words


def _fits_words(made: MemoryEstimate) -> str:
    margin = made.margin_bytes or 0.0
    left = f"{_gib(margin)} left" if margin >= 0 else f"{_gib(-margin)} too little"
    if made.fits is None:
        return "unknown whether it fits, as sizes are unknown"
    return {"yes": f"fits, {left}", "likely not": f"likely does not fit ({left})"}.get(
        made.fits, f"does not fit, {left}"
    )


def _gib(nbytes: float, *, unit: bool = True) -> str:
    """Gibibytes with three significant digits."""
    value = nbytes / _GIB
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{text} GiB" if unit else text
