"""Options of every command that takes a JOB, defined once.

@job_options                       adds --batch-size, --input, --seq-len, --precision, ...; passes
def predict(job, options, ...)     one JobOptions
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from driple.cli.numbers import whole_number
from driple.cli.overrides import (
    choice,
    number,
    override,
    set_names,
    set_option,
    switch,
    text,
    whole,
)
from driple.errors import ConfigError
from driple.graph.options import LARGEST_DIMENSION, MOST_LOOP_TURNS, ReadOptions
from driple.graph.torch.options import (
    ACTIVATION_CHECKPOINTING,
    LIBRARIES,
    OPTIMIZERS,
    PRECISIONS,
    TASKS,
)
from driple.jobs.load import JOB_HELP, MAX_MIB, JobOptions
from driple.jobs.options import MOST_ACCUMULATION

__all__ = [
    "BatchSizeOption",
    "CatalogOption",
    "FileValues",
    "InputOption",
    "JobArgument",
    "JobValues",
    "SettingOption",
    "graph_options_of",
    "job_options",
    "options_of",
]

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help=JOB_HELP)]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(help="cluster setting, such as V100-P1w2; may be given several times"),
]
CatalogOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        help="catalogue file (TOML) with devices, links, instances and prices of your own, which "
        "take precedence; may be given several times",
    ),
]

_MIB_BYTES = 2**20
_MOST_MIB = 2**20
_SCALAR = "scalar"
_FIRST_OUTPUT = ":0"  # as TensorFlow names the tensor of an op
_LONGEST_SIZE = len(str(LARGEST_DIMENSION))


@dataclass(frozen=True, kw_only=True, slots=True)
class FileValues:
    """Of a graph file."""

    target: str | None = text(None, "name of the train op; the one with the most ops")
    loop_turns: int | None = whole(
        None, "turns of each loop whose number of turns is not in the graph; 1", 1, MOST_LOOP_TURNS
    )
    max_mib: float = number(
        MAX_MIB, "refuse graph files larger than this, in MiB", above=0, most=_MOST_MIB
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class JobValues(FileValues):
    """Of a JOB."""

    clip_gradients: bool = switch(False, "the norm of a model's gradients is clipped")
    task: str = choice(
        "train",
        "forward: one forward pass of a model in eval mode, as for inference, in place of training",
        TASKS,
    )
    channels_last: bool = switch(False, "a model and its images have PyTorch's channels_last")
    library: str = choice(
        "torch2",
        "generation of PyTorch that runs a model: torch1, torch2.1 (2.0 and 2.1), torch2.7 (2.2 to "
        "2.7) or torch2 (later ones)",
        LIBRARIES,
    )
    trace: str = choice(
        "meta",
        "meta follows a model of your own by shapes alone, real runs it once, on the CPU",
        ("meta", "real"),
    )
    time_limit_s: float = number(600.0, "seconds that your FILE.py may take", above=0, most=1e6)
    memory_gib: float = number(8.0, "memory that your FILE.py may take", above=0, most=1e6)


BatchSizeOption = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help="samples of a device in a step; sets the first dimension of inputs that leave it open",
        callback=whole_number(1, LARGEST_DIMENSION),
    ),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="SHAPE",
        help="shape of an input: of one sample of a model, such as 3x224x224; or NAME=SHAPE in a "
        "graph file, such as images=32x300x300x3 or rate=scalar, with NAME:OUTPUT=SHAPE for a node "
        "with several outputs; may be given several times",
    ),
]
_SeqLenOption = Annotated[
    int | None,
    typer.Option(
        "--seq-len", help="tokens of a sample", callback=whole_number(1, LARGEST_DIMENSION)
    ),
]
_PrecisionOption = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help=f"of a model: {', '.join(PRECISIONS)} (amp: torch.autocast); fp32",
    ),
]
_OptimizerOption = Annotated[
    str | None,
    typer.Option("--optimizer", metavar="NAME", help=f"of a model: {', '.join(OPTIMIZERS)}"),
]
_AccumulationOption = Annotated[
    int | None,
    typer.Option(
        "--grad-accumulation",
        help="forward and backward passes per update of a model; 1",
        callback=whole_number(1, MOST_ACCUMULATION),
    ),
]
_CheckpointingOption = Annotated[
    str | None,
    typer.Option(
        "--activation-checkpointing",
        metavar="NAME",
        help=f"of a model: {', '.join(ACTIVATION_CHECKPOINTING)}; none",
    ),
]
_CompileOption = Annotated[
    bool, typer.Option("--compile", help="the model is compiled by torch.compile")
]
_DataOption = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FILE.py:FUNCTION",
        help="builds the data set, data loader or one batch of your own model; it is executed",
    ),
]
_LossOption = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="FILE.py:FUNCTION",
        help="loss of your model's outputs and labels; default: its own, or cross entropy",
    ),
]
_ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--training-config",
        metavar="FILE",
        help="training arguments (Accelerate, DeepSpeed, TRL, axolotl, torchtune, torchtitan) that "
        "stand for the options above where they are not given",
    ),
]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "batch_size": (BatchSizeOption, None),
    "inputs": (InputOption, None),
    "seq_len": (_SeqLenOption, None),
    "precision": (_PrecisionOption, None),
    "optimizer": (_OptimizerOption, None),
    "grad_accumulation": (_AccumulationOption, None),
    "activation_checkpointing": (_CheckpointingOption, None),
    "compiled": (_CompileOption, False),
    "data": (_DataOption, None),
    "loss": (_LossOption, None),
    "training_config": (_ConfigOption, None),
}
_SET = "set_"


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a JOB in place of its parameter `options`.

    Its `--set`, if it has one, also takes the values of a JOB; the command gets its own. A command
    with a parameter `batch_sizes`, which takes several, has no other `--batch-size`.
    """
    known = inspect.signature(command, eval_str=True)
    own = [one for one in known.parameters.values() if one.name not in ("options", _SET)]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    theirs = known.parameters.get(_SET)
    option = _with_job_values(theirs)
    shadowed = {"batch_size"} if "batch_sizes" in known.parameters else set()
    offered = {name: one for name, one in _OPTIONS.items() if name not in shadowed}
    added = {**offered, _SET: (option, None)}
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    names = set_names(option.__metadata__[0].help)

    @functools.wraps(command)
    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in offered}
        job_texts, other_texts = _parted(values.pop(_SET), names)
        if theirs is not None:
            values[_SET] = other_texts
        command(options=options_of(**given, values=override(JobValues, job_texts)), **values)

    run.__signature__ = known.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *shared)}
    return run


def _with_job_values(theirs: inspect.Parameter | None) -> Any:
    """The option `--set` of a command, with the values of a JOB behind its own."""
    mine = set_option(JobValues)
    if theirs is not None:
        heading = (JobValues.__doc__ or "").rstrip(".")
        _, *lines = mine.help.removeprefix("\b\n").splitlines()
        before: str = theirs.annotation.__metadata__[0].help
        mine.help = "\n".join([before, f"{heading}:", *lines])
    return Annotated[list[str] | None, mine]


def _parted(
    given: Sequence[str] | None, names: Sequence[str]
) -> tuple[list[str], list[str] | None]:
    """The texts of `--set` that are of a JOB, and those of the command.

    Raises:
        ConfigError: one that is neither.
    """
    mine = {one.name for one in fields(JobValues)}
    job_texts: list[str] = []
    others: list[str] = []
    for words in given or ():
        name, equals, _ = words.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or key not in names:
            raise ConfigError(
                f"--set needs NAME=VALUE with one of {', '.join(names)}, got '{words[:40]}'"
            )
        (job_texts if key in mine else others).append(words)
    return job_texts, others or None


def options_of(
    batch_size: int | None = None,
    inputs: Sequence[str] | None = None,
    *,
    seq_len: int | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    grad_accumulation: int | None = None,
    activation_checkpointing: str | None = None,
    compiled: bool = False,
    data: str | None = None,
    loss: str | None = None,
    training_config: Path | None = None,
    values: JobValues | None = None,
) -> JobOptions:
    """Check and collect the options of a job.

    Raises:
        ConfigError: an option out of range, an `--input` that is no shape, is given twice or has a
            name that no node can have.
    """
    from driple.jobs.training_config import TrainingConfig, read_training_config

    chosen = JobValues() if values is None else values
    shapes, shape = _shapes_of(inputs or [])
    read, max_bytes = _read_options(batch_size, shapes, chosen)
    config = TrainingConfig() if training_config is None else read_training_config(training_config)
    return JobOptions(
        batch_size=read.batch_size,
        inputs=read.inputs,
        target=read.target,
        loop_turns=read.loop_turns,
        max_bytes=max_bytes,
        input_shape=shape,
        seq_len=seq_len,
        precision=precision,
        optimizer=optimizer,
        grad_accumulation=grad_accumulation,
        activation_checkpointing=activation_checkpointing,
        compiled=compiled,
        clip_gradients=chosen.clip_gradients,
        task=chosen.task,
        channels_last=chosen.channels_last,
        data=data,
        loss=loss,
        library=chosen.library,
        trace=chosen.trace,
        own_code_s=chosen.time_limit_s,
        own_code_gib=chosen.memory_gib,
        config=config,
    )


def graph_options_of(
    batch_size: int | None, inputs: Sequence[str] | None, values: FileValues
) -> tuple[ReadOptions, int]:
    """Options of a command that takes graph files only, and the most bytes of one.

    Raises:
        ConfigError: an `--input` that is no NAME=SHAPE, has a name that no node can have, or a size
            out of range.
    """
    shapes, shape = _shapes_of(inputs or [])
    if shape is not None:
        raise ConfigError("--input needs NAME=SHAPE, such as images=32x300x300x3")
    return _read_options(batch_size, shapes, values)


def _read_options(
    batch_size: int | None, shapes: dict[str, tuple[int, ...]], values: FileValues
) -> tuple[ReadOptions, int]:
    target = values.target
    read = ReadOptions(
        batch_size=batch_size,
        inputs=shapes,
        target=None if target is None else target.removesuffix(_FIRST_OUTPUT),
        loop_turns=values.loop_turns,
    )
    return read, max(int(values.max_mib * _MIB_BYTES), 1)


def _shapes_of(
    texts: Sequence[str],
) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...] | None]:
    """Shapes of named inputs of a graph, and the shape of one sample of a model."""
    named: dict[str, tuple[int, ...]] = {}
    sample: tuple[int, ...] | None = None
    for given in texts:
        name, shape = _input_of(given)
        if not name:
            if sample is not None:
                raise ConfigError(
                    "--input was given twice for a model; give the shape of one sample"
                )
            sample = shape
            continue
        if name.removesuffix(_FIRST_OUTPUT) in {one.removesuffix(_FIRST_OUTPUT) for one in named}:
            raise ConfigError(f"--input {name[:80]} is given twice; give one shape")
        named[name] = shape
    return named, sample


def _input_of(given: str) -> tuple[str, tuple[int, ...]]:
    """Name and shape from `images=32x300x300x3`; no name from `3x224x224`."""
    name, equals, shape = given.rpartition("=")
    if equals and name and shape == _SCALAR:
        return name, ()
    sizes = shape.lower().split("x")
    fine = all(size.isascii() and size.isdecimal() and len(size) <= _LONGEST_SIZE for size in sizes)
    if not fine or (equals and not name):
        raise ConfigError(
            "--input needs the shape of one sample such as 3x224x224, or NAME=SHAPE of a graph "
            f"file such as images=32x300x300x3, got '{given[:80]}'"
        )
    return name, tuple(int(size) for size in sizes)
