"""Ways to train one job: batch of a device, passes per update, recomputation and precision.

    JobVariants (JOB, options) --Variant--> Job, read once each

What a variant changes is read anew, so each has the ops and the tensors of its own step. Passes of
gradient accumulation repeat the same ops, and are counted without reading again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from driple.errors import ConfigError, GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.torch.options import kernels_like
from driple.jobs.load import Job, JobOptions, JobReads, JobSource, load_job

if TYPE_CHECKING:
    from driple.cluster.setting import Setting

__all__ = ["JobVariants", "Variant"]

_PROBE_PASSES = 3  # ops of every pass, of all but the first, and of a step differ in their turns


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Variant:
    """One way to train a job.

    Attributes:
        batch_size: samples of a device in a pass.
        grad_accumulation: forward and backward passes per update.
        activation_checkpointing: `none`, `full` or `selective`.
        precision: such as `fp32` or `amp-bf16`; empty if unknown.
        compiled: whether `torch.compile` fuses the ops.
        channels_last: whether a model and its images are put in PyTorch's channels-last format.
        cuda_graphs: whether a compiled step is replayed as CUDA graphs.
        optimizer: in place of the job's own; empty for that.
    """

    batch_size: int
    grad_accumulation: int = 1
    activation_checkpointing: str = "none"
    precision: str = ""
    compiled: bool = False
    channels_last: bool = False
    cuda_graphs: bool = False
    optimizer: str = ""

    @property
    def samples_per_update(self) -> int:
        """Samples of a device per update of the parameters."""
        return self.batch_size * self.grad_accumulation

    @property
    def parts(self) -> tuple[str, ...]:
        """Its name in parts, without what is usual: `batch 8 x 4`, `full checkpointing`."""
        passes = f" x {self.grad_accumulation}" if self.grad_accumulation > 1 else ""
        kind = self.activation_checkpointing
        parts = (
            f"batch {self.batch_size}{passes}",
            "" if kind == "none" else f"{kind} checkpointing",
            self.precision,
            "channels last" if self.channels_last else "",
            "compiled" if self.compiled else "",
            "CUDA graphs" if self.cuda_graphs else "",
            self.optimizer,
        )
        return tuple(part for part in parts if part)

    @property
    def name(self) -> str:
        """Such as `batch 8 x 4, full checkpointing, amp-bf16`."""
        return ", ".join(self.parts)


class JobVariants:
    """A job, and other ways to train it.

    Attributes:
        given: the job as the user described it.
        usual: its own variant.

    Args:
        source: JOB as on the command line, a graph or a `Job`.
        options: what the user added.

    Raises:
        ConfigError: no such job, or its batch size is not known.
        GraphError: it cannot be read, or contains no training step.
    """

    def __init__(self, source: JobSource, options: JobOptions | None = None) -> None:
        self._options = options or JobOptions()
        self.given = load_job(source, options)
        if self.given.batch_size is None:
            raise ConfigError("a graph does not state its batch size; give --batch-size")
        self.usual = Variant(
            batch_size=self.given.batch_size,
            grad_accumulation=self.given.grad_accumulation,
            activation_checkpointing=self.given.activation_checkpointing,
            precision=self.given.precision,
            compiled=self.given.compiled,
            channels_last=self._options.channels_last,
            cuda_graphs=self.given.cuda_graphs,
        )
        self._reads = JobReads(source)
        self._jobs: dict[tuple[Variant, tuple[int, int] | None], Job] = {}

    @property
    def can_vary(self) -> bool:
        """Whether batch, passes, recomputation and precision can be changed: of PyTorch models."""
        return self.given.origin.is_model and not isinstance(self._reads.source, Job)

    def job(self, variant: Variant, setting: Setting) -> Job:
        """The job of a variant, with the kernels that a setting's devices run.

        Raises:
            ConfigError: a variant of a job that cannot be changed, or that the job refuses.
            GraphError: the model cannot be trained so.
        """
        if not self.can_vary:
            if variant != self.usual:
                raise ConfigError(f"{self.given.name} is a fixed graph; it can only be as it is")
            return self.given
        half = self.given.origin.may_be_half(variant.precision)
        like = kernels_like(setting.worker.architecture.name, half=half)
        key = (variant, like)
        if key not in self._jobs:
            self._jobs[key] = self._made(variant, like, setting)
        return self._jobs[key]

    def _made(self, variant: Variant, like: tuple[int, int] | None, setting: Setting) -> Job:
        if variant == self.usual and like == (8, 0):  # as it was read
            return self.given
        if variant.cuda_graphs:  # of the same ops
            compiled = self.job(replace(variant, cuda_graphs=False), setting)
            if compiled.step is not None:
                return replace(compiled, step=replace(compiled.step, cuda_graphs=True))
        one_pass = variant.grad_accumulation == 1
        probe = replace(variant, grad_accumulation=1 if one_pass else _PROBE_PASSES)
        job = self._reads.job(self._asked(probe), setting)
        return job if one_pass else with_passes(job, variant.grad_accumulation)

    def _asked(self, variant: Variant) -> JobOptions:
        """What the user added, as the variant has it."""
        return replace(
            self._options,
            batch_size=variant.batch_size,
            grad_accumulation=variant.grad_accumulation,
            activation_checkpointing=variant.activation_checkpointing,
            precision=variant.precision or None,
            compiled=variant.compiled,
            channels_last=variant.channels_last,
            cuda_graphs=variant.cuda_graphs,
            optimizer=variant.optimizer or self._options.optimizer,
        )


def with_passes(probe: Job, passes: int) -> Job:
    """The job with another number of passes per update.

    Args:
        probe: the job with three passes: then ops of each pass have three turns, ops that add to
            the gradients of an earlier pass two, and all others one.
        passes: two or more.

    Raises:
        GraphError: the job has other turns than these.
    """
    turns = probe.graph.executions
    if probe.grad_accumulation != _PROBE_PASSES or not np.isin(turns, (1, 2, 3)).all():
        raise GraphError(
            f"{probe.name}: its ops repeat otherwise than in passes of gradient accumulation; give "
            "--grad-accumulation, and leave --global-batch out"
        )
    counts = np.array([0, 1, passes - 1, passes])
    graph = replace(probe.graph, executions=counts[turns])
    step = None if probe.step is None else replace(probe.step, grad_accumulation=passes)
    return replace(probe, graph=graph, cost=cost_of_graph(graph), step=step)
