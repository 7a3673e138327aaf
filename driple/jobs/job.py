"""`Job`: one training job, ready for every question, with all that was assumed about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.files import printable_name
from driple.graph.cost import GraphCost, cost_of_graph
from driple.graph.low_precision import LOW_PRECISIONS
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import Library, StepOptions
from driple.jobs.training_config.config import Change, Undecided
from driple.remarks import Remark

__all__ = ["ON_SERVERS", "Job", "JobOrigin", "job_of"]

_IMAGE_RANK, _CHANNELS = 3, frozenset({1, 3, 4})
_HALF = frozenset(
    {"bf16", "fp16", "amp-bf16", "amp-fp16", "bf16-mixed", "fp16-mixed", *LOW_PRECISIONS}
)
_MOST_NAMED = 6
ON_SERVERS, _ON_ONE_DEVICE = "V100-P1w2/ho-PCIe", "1xA100"

_USUAL_STEP = StepOptions()  # of a graph, which states none of it


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOrigin:
    """What a job is made from, and what follows from that.

    Attributes:
        name: in the JSON, such as `timm`.
        is_path: whether a user types a path, whose last part is a short name of the job.
        is_model: whether it is a PyTorch model, which is built anew for another batch, precision or
            recomputation; else it is a graph, which is as it is.
        casts_itself: whether its own code may compute in half precision, whatever is asked.
    """

    name: str
    is_path: bool = False
    is_model: bool = False
    casts_itself: bool = False

    def may_be_half(self, precision: str) -> bool:
        """Whether attention may be in half precision where this precision is asked."""
        return precision in _HALF or self.casts_itself


@dataclass(frozen=True, kw_only=True, slots=True, weakref_slot=True, eq=False, repr=False)
class Job:
    """A training job, ready for every question.

    Attributes:
        source: what the user typed.
        origin: what that is.
        graph: of one worker's step.
        cost: FLOPs and bytes of its ops.
        batch_size: samples per device in a forward pass; None if a graph file does not state it.
        seq_len: tokens of a sample; None for other data, or if unknown.
        input_shape: one sample of other data, such as (3, 224, 224); None if unknown.
        precision: such as `amp-bf16`; empty if unknown.
        optimizer: such as `adamw`; empty if unknown.
        step: how it is trained if it is a PyTorch model; None of other graphs.
        samples: samples of an epoch of its data set; None if unknown.
        assumptions: what was assumed about the job.
        undecided: decisive fields of its training config that nobody read: there is no verdict on
            what they change.
        offload: what of it is kept on the host: `states`, `parameters`.
        bucket_elements: gradients of the buffer by which its program exchanges them; None for the
            scheme's usual one.
        reuse_elements: parameters within which DeepSpeed keeps a gathered block for its next use;
            None for its default.
        updates_in_backward: whether each parameter is updated as soon as its gradient is there.
    """

    source: str
    origin: JobOrigin
    graph: OpGraph
    cost: GraphCost
    batch_size: int | None = None
    seq_len: int | None = None
    input_shape: tuple[int, ...] | None = None
    precision: str = ""
    optimizer: str = ""
    step: StepOptions | None = None
    samples: int | None = None
    assumptions: tuple[Remark, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    offload: tuple[str, ...] = ()
    bucket_elements: int | None = None
    reuse_elements: int | None = None
    updates_in_backward: bool = False

    def __repr__(self) -> str:
        return f"<Job {self.source}: {self.graph.num_nodes} nodes>"

    @property
    def kind(self) -> str:
        """Name of its origin: `file` is a TensorFlow graph, `own_model` a model of one's own."""
        return self.origin.name

    @property
    def name(self) -> str:
        """Short name for titles: the file's name, or what the user typed."""
        return printable_name(Path(self.source).name if self.origin.is_path else self.source)

    @property
    def grad_accumulation(self) -> int:
        """Forward and backward passes per update."""
        return 1 if self.step is None else self.step.grad_accumulation

    @property
    def activation_checkpointing(self) -> str:
        """What of a model is recomputed: `none`, `full` or `selective`."""
        return "none" if self.step is None else self.step.activation_checkpointing

    @property
    def compiled(self) -> bool:
        """Whether `torch.compile` fuses its ops."""
        return self.step is not None and self.step.compiled

    @property
    def cuda_graphs(self) -> bool:
        """Whether its compiled step is replayed as CUDA graphs."""
        return self.step is not None and self.step.cuda_graphs

    @property
    def tensor_overlap(self) -> bool:
        """Whether devices that share tensors exchange them beside the products."""
        return self.step is not None and self.step.tensor_overlap

    @property
    def trains(self) -> bool:
        """Whether it is training; else one forward pass in eval mode."""
        return self.step is None or self.step.trains

    @property
    def library(self) -> Library | None:
        """Generation of PyTorch that runs it; None for other graphs."""
        return None if self.step is None else self.step.library

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Compute capability of the device whose kernels of attention it has; None for none."""
        return None if self.step is None else self.step.compute_capability

    def stated(self, name: str) -> Any:
        """Value of an option by its name in `JobOptions`, as the job has it."""
        owner = self if hasattr(self, name) else self.step or _USUAL_STEP
        return getattr(owner, name)

    def open_fields(self, change: Change) -> tuple[Undecided, ...]:
        """Decisive fields that were not read and change the `memory` or the `time` of a step."""
        return tuple(one for one in self.undecided if change in one.changes)

    def require_decided(self, change: Change, question: str) -> None:
        """Refuse a question whose whole answer a field changes that was not read.

        Args:
            change: `memory` or `time`.
            question: such as `a sweep`.

        Raises:
            ConfigError: which fields.
        """
        fields = self.open_fields(change)
        if fields:
            named = ", ".join(f"{one.field}: {one.value}" for one in fields[:_MOST_NAMED])
            more = len(fields) - _MOST_NAMED
            raise ConfigError(
                f"{fields[0].file} has fields that change the {change} of a step and have no model "
                f"here ({named}{f' and {more} more' if more > 0 else ''}), so {question} has no "
                "answer; leave them out of the file to ask without them"
            )

    @property
    def usual_setting(self) -> str:
        """Setting that is asked for if the user names none: the one that the graph is made for."""
        return ON_SERVERS if self.graph.layout == "servers" else _ON_ONE_DEVICE

    @property
    def reads_images(self) -> bool:
        """Whether a sample is an image: three sizes, one of them 1, 3 or 4 channels.

        A graph that does not state its input reads images if it has 2-D convolutions.
        """
        if self.seq_len is not None:
            return False
        shape = self.input_shape
        if shape is not None:
            return len(shape) == _IMAGE_RANK and bool({shape[0], shape[-1]} & _CHANNELS)
        return any(op.kind == "conv" for op in self.graph.signatures)

    @property
    def has_unknown(self) -> bool:
        """Whether sizes or loop turns are unknown: then no price, advice or error is stated."""
        return self.graph.report.has_unknown

    @property
    def unknown(self) -> Remark | None:
        """Unknown sizes and turns; None if there are none."""
        return self.graph.report.unknown

    @property
    def options_that_set(self) -> str:
        """The options that set what is unknown."""
        report = self.graph.report
        is_open = any(doubt.values.get("open_inputs") for doubt in report.doubts)
        sizes = ["--input NAME=SHAPE"] if is_open else []
        return " and ".join([*sizes, *(["--set loop_turns=N"] if report.unknown_turns else [])])

    @property
    def op_types_without_cost(self) -> Mapping[str, int]:
        """Number of nodes of each op type that has no formula."""
        return self.cost.unknown


def job_of(
    source: str,
    origin: JobOrigin,
    graph: OpGraph,
    *,
    batch_size: int | None = None,
    seq_len: int | None = None,
    input_shape: tuple[int, ...] | None = None,
    step: StepOptions | None = None,
    samples: int | None = None,
    assumptions: tuple[Remark, ...] = (),
) -> Job:
    """A job from its graph.

    Args:
        source: what the user typed.
        origin: what that is.
        graph: of one worker's step.
        batch_size: samples per device.
        seq_len: tokens of a sample.
        input_shape: one sample of other data.
        step: how a PyTorch model is trained; without, precision and optimizer are the graph's.
        samples: samples of an epoch.
        assumptions: what was assumed.
    """
    from driple.jobs.graph_facts import precision_of

    return Job(
        source=source,
        origin=origin,
        graph=graph,
        cost=cost_of_graph(graph),
        batch_size=batch_size,
        seq_len=seq_len,
        input_shape=input_shape,
        precision=precision_of(graph) if step is None else step.precision,
        optimizer=graph.update.optimizer if step is None or not step.trains else step.optimizer,
        step=step,
        samples=samples,
        assumptions=assumptions,
    )
