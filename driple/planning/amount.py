"""How much is trained: samples of an epoch, epochs, and where the numbers come from.

Job, --samples or --tokens, --epochs -> Amount
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driple.checks import check_number
from driple.errors import ConfigError
from driple.jobs.job import Job
from driple.remarks import Remark, remark

__all__ = ["Amount", "AmountAsked", "amount_of"]

_MOST_SAMPLES = 10**15


@dataclass(frozen=True, kw_only=True, slots=True)
class AmountAsked:
    """The amount as a user gave it; None is left to the data set.

    Attributes:
        samples: of an epoch.
        tokens: of an epoch, in place of samples.
        epochs: how often all samples are trained on.

    Raises:
        ConfigError: samples and tokens at once, or a number that is not above 0.
    """

    samples: float | None = None
    tokens: float | None = None
    epochs: float = 1.0

    def __post_init__(self) -> None:
        if self.samples is not None and self.tokens is not None:
            raise ConfigError("--samples and --tokens both state the amount; give one of them")
        for flag, value in (
            ("--samples", self.samples),
            ("--tokens", self.tokens),
            ("--epochs", self.epochs),
        ):
            if value is not None:
                check_number(flag, value, above=0, most=_MOST_SAMPLES)
        object.__setattr__(self, "epochs", float(self.epochs))  # 2 and 2.0 are written alike


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """What is trained in all.

    Attributes:
        samples_per_epoch: samples of all devices together.
        epochs: how often they are trained on.
        source: of the number of samples.
    """

    samples_per_epoch: int
    epochs: float
    source: Remark

    @property
    def samples(self) -> float:
        """Samples in all."""
        return self.samples_per_epoch * self.epochs


def amount_of(job: Job, asked: AmountAsked) -> Amount:
    """Samples that a job is trained on.

    Raises:
        ConfigError: tokens of a job whose samples have none; less than one sample; or neither an
            option nor the data set states the samples, and the job is not of images.
    """
    samples, source = _samples(job, asked)
    if samples * asked.epochs < 1:
        raise ConfigError(
            f"{samples:,} samples and --epochs {asked.epochs:g} are less than one sample; give "
            "more of either"
        )
    return Amount(samples_per_epoch=samples, epochs=asked.epochs, source=source)


def _samples(job: Job, asked: AmountAsked) -> tuple[int, Remark]:
    from driple.jobs.pytorch.workloads import IMAGENET_SAMPLES

    if asked.samples is not None:
        return math.ceil(asked.samples), remark("samples_by_option")
    if asked.tokens is not None:
        if job.seq_len is None:
            raise ConfigError(
                f"--tokens needs a job whose samples are texts of known length, and {job.name} "
                "states none; give --samples N"
            )
        source = remark("samples_by_tokens", tokens=asked.tokens, seq_len=job.seq_len)
        return math.ceil(asked.tokens / job.seq_len), source
    if job.samples is not None:
        return job.samples, remark("samples_of_data_set")
    if not job.reads_images:
        tokens = "" if job.seq_len is None else " or --tokens N"
        raise ConfigError(
            f"the samples of an epoch of {job.name} are not known; give --samples N{tokens}"
        )
    return IMAGENET_SAMPLES, remark("samples_of_imagenet")
