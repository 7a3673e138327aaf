"""The table of job options: `JobOptions`, whose fields are its rows, and what is made from them.

JOB_OPTIONS        -> the command line, the keywords of job_of_module, the facts, the JSON
flags_for("timm")  -> the options that a kind of job takes; its reader refuses all others
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from driple.cluster.setting import Setting, UnknownCluster
from driple.errors import ConfigError
from driple.graph.low_precision import OTHER_SPELLINGS
from driple.graph.options import LARGEST_DIMENSION, MOST_LOOP_TURNS, ReadOptions
from driple.graph.torch.lora import BASE_WEIGHTS, LoraAdapters
from driple.graph.torch.options import (
    ACTIVATION_CHECKPOINTING,
    LIBRARIES,
    OPTIMIZERS,
    PRECISIONS,
    TASKS,
    TRACE_MODES,
    StepOptions,
)
from driple.jobs.option_row import (
    ANY,
    MIB_BYTES,
    MODELS,
    ROW,
    JobOption,
    lora_adapters,
    mebibytes,
    option,
    sample_shape,
    shapes_by_name,
    train_op,
    training_config,
)
from driple.jobs.training_config import TrainingConfig, Undecided
from driple.jobs.training_config.config import BOTH
from driple.rules import choice, number, switch, text, whole

__all__ = ["JOB_OPTIONS", "MAX_MIB", "JobOptions", "flags_for", "options_of"]

MAX_MIB = 512.0
_MOST_ACCUMULATION = 100_000
_FILE, _FILES, _OWN = frozenset({"file"}), frozenset({"file", "onnx"}), frozenset({"own_model"})
_STEP_NAMES = {column.name for column in fields(StepOptions)}


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOptions:
    """What a user adds to a job; None is left to the job, and what it assumes is stated.

    Raises:
        ConfigError: a value of another type, that is none of its choices, or out of range.
    """

    # fmt: off
    batch_size: int | None = option(
        None, "--batch-size", whole(1, LARGEST_DIMENSION),
        "samples of a device in a step; sets the first dimension of inputs that leave it open",
        suits=ANY, stated=True,
    )
    inputs: Mapping[str, tuple[int, ...]] = option(
        {}, "--input NAME=SHAPE", shapes_by_name(),
        "shape of an input of a graph file: NAME=SHAPE, such as images=32x300x300x3 or "
        "rate=scalar, with NAME:OUTPUT=SHAPE for a node with several outputs; may be given several "
        "times",
        suits=_FILES, metavar="SHAPE",
    )
    target: str | None = option(
        None, "--set target", train_op(), "name of the train op; the one with the most ops",
        suits=_FILE,
    )
    loop_turns: int | None = option(
        None, "--set loop_turns", whole(1, MOST_LOOP_TURNS),
        "turns of each loop whose number of turns is not in the graph; 1",
        suits=_FILE,
    )
    max_bytes: int = option(
        int(MAX_MIB * MIB_BYTES), "--set max_mib", mebibytes(),
        "refuse graph files larger than this, in MiB",
        suits=_FILES, typed_default=MAX_MIB, for_all=True,
    )
    seq_len: int | None = option(
        None, "--seq-len", whole(1, LARGEST_DIMENSION), "tokens of a sample",
        suits=MODELS - {"timm"}, stated=True,
    )
    input_shape: tuple[int, ...] | None = option(
        None, "--input SHAPE", sample_shape(), "of a model: one sample, such as 3x224x224",
        suits=MODELS, stated=True,
    )
    precision: str | None = option(
        None, "--precision", choice(PRECISIONS, OTHER_SPELLINGS),
        f"of a model: {', '.join(PRECISIONS)} (bf16: the whole model; amp: torch.autocast; mixed: "
        "DeepSpeed, FSDP's MixedPrecision and Megatron, with a copy in fp32; fp8, nvfp4: mixed, "
        "linear layers in 8 or 4 bits); fp32",
        suits=MODELS | {"onnx"}, metavar="NAME", stated=True,
    )
    optimizer: str | None = option(
        None, "--optimizer", choice(OPTIMIZERS), f"of a model: {', '.join(OPTIMIZERS)}",
        suits=MODELS | {"onnx"}, metavar="NAME", in_training=True, stated=True,
    )
    grad_accumulation: int | None = option(
        None, "--grad-accumulation", whole(1, _MOST_ACCUMULATION),
        "forward and backward passes per update of a model; 1",
        suits=MODELS, in_training=True, stated=True,
        words=lambda passes: f"{passes} passes per update" if passes > 1 else "",
    )
    activation_checkpointing: str | None = option(
        None, "--activation-checkpointing", choice(ACTIVATION_CHECKPOINTING),
        f"of a model: {', '.join(ACTIVATION_CHECKPOINTING)}; none",
        suits=MODELS, metavar="NAME", in_training=True, stated=True,
        words=lambda kind: "" if kind == "none" else f"{kind} activation checkpointing",
    )
    compiled: bool = option(
        False, "--compile", switch(), "the model is compiled by torch.compile",
        suits=MODELS, stated=True, words=lambda on: "compiled" if on else "",
    )
    cuda_graphs: bool = option(
        False, "--set cuda_graphs", switch(),
        "the model is compiled by torch.compile(mode='reduce-overhead'), which replays CUDA graphs",
        suits=MODELS, stated=True, words=lambda on: "CUDA graphs" if on else "",
    )
    tensor_overlap: bool = option(
        False, "--set tensor_overlap", switch(),
        "exchanges of tensor parallelism run beside the products next to them (tp_comm_overlap of "
        "NeMo and Transformer Engine, torchtitan's async TP)",
        suits=MODELS, in_training=True, stated=True,
        words=lambda on: "tensor exchanges beside products" if on else "",
    )
    lora: LoraAdapters | None = option(  # noqa: RUF009  # a field
        None, "--lora", lora_adapters(),
        "LoRA adapters of a frozen model, as PEFT makes them: r=16,alpha=32,targets=all-linear, or "
        "targets=q_proj+v_proj; also dropout=0.05, dtype=bf16 for adapters in half precision and "
        "rest=bf16 for all else that is not quantized",
        suits=MODELS, metavar="KEY=VALUE,...", stated=True,
        words=lambda adapters: "" if adapters is None else f"LoRA {adapters}",
    )
    weights: str | None = option(
        None, "--weights", choice(BASE_WEIGHTS),
        "a frozen model's linear layers quantized as by bitsandbytes: nf4 (4 bits), nf4-double "
        "(double quantization), int8 (LLM.int8)",
        suits=MODELS, metavar="NAME", stated=True,
        words=lambda kind: "" if kind is None else f"{kind} weights",
    )
    fused_loss: bool = option(
        False, "--set fused_loss", switch(),
        "a language model's cross entropy is computed in chunks, without its logits, as by "
        "Liger-Kernel",
        suits=MODELS, in_training=True, stated=True,
        words=lambda on: "fused loss" if on else "",
    )
    fused_kernels: bool = option(
        False, "--set fused_kernels", switch(),
        "norms and gated activations of a model of transformers in one kernel each, as by "
        "Liger-Kernel",
        suits=MODELS, in_training=True, stated=True,
        words=lambda on: "fused norms and activations" if on else "",
    )
    clip_gradients: bool = option(
        False, "--set clip_gradients", switch(), "the norm of a model's gradients is clipped",
        suits=MODELS, in_training=True, stated=True,
        words=lambda on: "gradients clipped" if on else "",
    )
    task: str = option(
        "train", "--set task", choice(TASKS),
        "forward: one forward pass of a model in eval mode, as for inference, in place of training",
        suits=MODELS, stated=True,
    )
    channels_last: bool = option(
        False, "--set channels_last", switch(),
        "a model and its images are put in PyTorch's channels_last",
        suits=MODELS, stated=True, words=lambda on: "channels last" if on else "",
    )
    library: str = option(
        "torch2", "--set library", choice(LIBRARIES),
        "PyTorch that runs a model: "
        + ", ".join(f"{name} ({versions})" for name, versions in LIBRARIES.items()),
        suits=MODELS, stated=True,
        words=lambda name: f"PyTorch {name.removeprefix('torch')}" if name else "",
    )
    data: str | None = option(
        None, "--data", text(),
        "builds the data set, data loader or one batch of your own model; it is executed",
        suits=_OWN, metavar="FILE.py:FUNCTION",
    )
    loss: str | None = option(
        None, "--loss", text(),
        "loss of your model's outputs and labels; default: its own, or cross entropy; of an ONNX "
        "file: cross-entropy, bce or mse, of each sample, pixel or token",
        suits=_OWN | {"onnx"}, metavar="FILE.py:FUNCTION", in_training=True,
    )
    trace: str = option(
        "meta", "--set trace", choice(TRACE_MODES),
        "meta follows a model of your own by shapes alone, real runs it once, on the CPU",
        suits=_OWN,
    )
    own_code_s: float = option(
        600.0, "--set time_limit_s", number(above=0, most=1e6),
        "seconds that your FILE.py may take",
        suits=_OWN, for_all=True,
    )
    own_code_gib: float = option(
        8.0, "--set memory_gib", number(above=0, most=1e6),
        "memory that your FILE.py may take, in GiB",
        suits=_OWN, for_all=True,
    )
    config: TrainingConfig = option(  # noqa: RUF009  # a field
        TrainingConfig(), "--training-config", training_config(),
        "training arguments (Accelerate, DeepSpeed, Trainer, TRL, axolotl, torchtune, torchtitan, "
        "LLaMA-Factory) that stand for the options that are not given, the scheme among them",
        suits=ANY, metavar="FILE", for_all=True,
    )
    # fmt: on

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", self.read.inputs)  # `read` checks its values
        for row in JOB_OPTIONS:
            object.__setattr__(self, row.name, row.checked(getattr(self, row.name)))
        if self.task == "forward":
            odd = [row.flag for row in self.changed if row.in_training]
            if odd:
                raise ConfigError(
                    f"{' and '.join(odd)}: of training, and --set task=forward asks for a forward "
                    f"pass; leave {'it' if len(odd) == 1 else 'them'} out"
                )

    @property
    def read(self) -> ReadOptions:
        """What the reader of a graph file takes of these options."""
        return ReadOptions(
            batch_size=self.batch_size,
            inputs=self.inputs,
            target=self.target,
            loop_turns=self.loop_turns,
        )

    @property
    def given(self) -> tuple[str, ...]:
        """Flags that were given, but those that every job takes."""
        return tuple(row.flag for row in self.changed if not row.for_all)

    @property
    def changed(self) -> tuple[JobOption, ...]:
        """Rows of the options that have another value than usual."""
        return tuple(row for row in JOB_OPTIONS if getattr(self, row.name) != row.default)

    def with_config(self, setting: Setting | None = None) -> JobOptions:
        """These options, with what the training config says where a flag was not given.

        Args:
            setting: cluster that the job is for, whose devices share the samples of an update out;
                one device if None.

        Raises:
            ConfigError: the config's samples of an update cannot be shared out, or its batch and
                passes contradict them.
        """
        config, replicas = self.config, 1 if setting is None else setting.num_replicas
        if setting is not None and setting.states_scheme:
            config = config.without_scheme(setting.scheme.suffix)
        if setting is not None and self.agreed_replicas is not None:
            config.check_batches(replicas)
        batch_size = self.batch_size or config.device_batch(replicas)
        alone = setting is None or setting.num_workers == 1
        config = replace(
            config,
            batch_size=batch_size,
            grad_accumulation=config.passes(batch_size, replicas),
            precision=config.precision_alone if alone and config.precision_alone
            else config.precision,
        )  # fmt: skip
        values = {
            row.name: stated
            for row in JOB_OPTIONS
            if (stated := getattr(config, row.name, None)) is not None
            and getattr(self, row.name) == row.default
            and not (row.in_training and self.task == "forward")
        }
        if self.input_shape is not None:  # of numbers, which have no tokens
            values.pop("seq_len", None)
        return replace(self, **values)

    @property
    def agreed_replicas(self) -> float | None:
        """See `TrainingConfig.agreed_replicas`; None too where a flag replaces one of the three."""
        own = self.batch_size is None and self.grad_accumulation is None
        return self.config.agreed_replicas if own else None

    def decided_by(self, setting: Setting) -> Hashable:
        """What the training config takes of a setting: jobs of settings with the same are alike."""
        if not self.config.file:
            return None
        return self.with_config(setting).changed_values, self.undecided(setting)

    @property
    def changed_values(self) -> tuple[tuple[str, Hashable], ...]:
        """Names and values of the options that have another value than usual, but the config."""
        return tuple(
            (row.name, repr(getattr(self, row.name)))
            for row in self.changed
            if row.name != "config"
        )

    def undecided(self, setting: Setting | None = None) -> tuple[Undecided, ...]:
        """Decisive fields of the training config that nobody read, and no option settles.

        Args:
            setting: cluster that the job is for.
        """
        config = self.config
        if setting is not None and setting.states_scheme:
            config = config.without_scheme(setting.scheme.suffix)
        given = {row.name for row in self.changed}
        undecided = [one for one in config.undecided if one.settled_by not in given]
        if config.replicas and setting is not None and setting.num_workers > 1:
            cluster = setting.described
            machines = 0 if isinstance(cluster, UnknownCluster) else len(cluster.machines)
            if machines != config.replicas:
                undecided.append(
                    Undecided.of(
                        config.file, "replicas of shards", config.replicas, BOTH,
                        settled_by="scheme",
                    )
                )  # fmt: skip
        return tuple(undecided)

    def step_options(
        self, optimizer: str, compute_capability: tuple[int, int] | None
    ) -> StepOptions:
        """How a PyTorch model is trained.

        Args:
            optimizer: that is assumed if none was given.
            compute_capability: of the device, see `StepOptions`.
        """
        values: dict[str, Any] = {"optimizer": optimizer}
        for name in _STEP_NAMES & {row.name for row in JOB_OPTIONS}:
            if getattr(self, name) is not None:
                values[name] = getattr(self, name)
        values["compiled"] |= self.cuda_graphs
        return StepOptions(
            **values,
            compute_capability=compute_capability,
            fused_attention=self.library != "torch1",
        )


JOB_OPTIONS: tuple[JobOption, ...] = tuple(
    replace(column.metadata[ROW], name=column.name) for column in fields(JobOptions)
)
"""The rows of the table, in the order in which help and JSON have them."""

JobOptions.__doc__ = "\n        ".join(
    [
        f"{JobOptions.__doc__}\n    Attributes:",
        *(f"{row.name}: {row.help} (`{row.flag}`)." for row in JOB_OPTIONS),
    ]
)


def flags_for(kind: str) -> frozenset[str]:
    """Flags that a kind of job takes, as `JobOptions.given` names them.

    Args:
        kind: a `JobOrigin.name`, or `MODULE`.
    """
    return frozenset(row.flag for row in JOB_OPTIONS if kind in row.suits and not row.for_all)


@cache
def _usual_options() -> JobOptions:
    """Those of a job without any; checked once, as each answer asks for them several times."""
    return JobOptions()


def options_of(given: JobOptions | None) -> JobOptions:
    """The options that were given, or the usual ones.

    Raises:
        ConfigError: something else than options.
    """
    if given is None:
        return _usual_options()
    if not isinstance(given, JobOptions):
        raise ConfigError(
            f"options is a {type(given).__name__}, and driple.JobOptions is needed; give "
            "options=driple.JobOptions(batch_size=32)"
        )
    return given
