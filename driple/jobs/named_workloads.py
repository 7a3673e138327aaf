"""Readers of names: workloads of the TensorFlow catalogue, and built-in PyTorch models."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.extras import require_tensorflow, require_torch
from driple.graph import graph_from_graphdef_bytes
from driple.jobs.assumed import assumed_words
from driple.jobs.graph_file import kept_batch
from driple.jobs.job import ON_SERVERS, Job, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, kernels_on, one_at_a_time

__all__ = ["CATALOGUE", "PYTORCH"]

_OPTIMIZER = "momentum"
_IMAGE_RANK = 3


def _is_pytorch_name(text: str) -> bool:
    return "/" not in text and ":" not in text and not Path(text).suffix


def _read_pytorch(request: JobRequest) -> Job:
    from driple.jobs.pytorch.workloads import pytorch_workload_named

    text, options = request.text, request.options
    model = pytorch_workload_named(text)
    tokens = model.kind == "tokens"
    unfit = options.input_shape if tokens else options.seq_len
    if unfit is not None:
        advice = "tokens: give --seq-len N" if tokens else "images: give --input 3xHEIGHTxWIDTH"
        raise ConfigError(f"{text} takes {advice} in place of what was given")
    side = _side(text, options.input_shape, model.least_size) if not tokens else None
    require_torch("a PyTorch model's graph")
    from driple.jobs.pytorch.step_graph import graph_of_workload

    size = options.batch_size or model.batch_size
    length = options.seq_len or model.length if tokens else None
    shape = None if tokens else (3, side or model.image_size, side or model.image_size)
    step = options.step_options(_OPTIMIZER, request.compute_capability)
    graph = graph_of_workload(model, size, image_size=side, length=length, step=step)
    return job_of(
        text,
        "pytorch",
        graph,
        batch_size=size,
        seq_len=length,
        input_shape=shape,
        step=step,
        samples=model.samples,
        assumptions=assumed_words(
            options, batch_size=size, seq_len=length, input_shape=shape, optimizer=_OPTIMIZER
        ),
    )


def _side(text: str, shape: tuple[int, ...] | None, least: int) -> int | None:
    """Side of the images from --input; None without."""
    if shape is None:
        return None
    if len(shape) != _IMAGE_RANK or shape[0] != 3 or shape[1] != shape[2] or shape[1] < least:
        raise ConfigError(
            f"{text} takes square RGB images of {least} pixels or more, such as --input "
            f"3x224x224, got {'x'.join(map(str, shape))}"
        )
    return shape[1]


_FILES = (
    ".pt", ".pth", ".bin", ".safetensors", ".gguf", ".keras", ".h5", ".py", ".json", ".npz", ".zip",
    ".pkl", ".tflite",
)  # fmt: skip


def _servers_of(setting: Setting) -> Hashable:
    """What of a setting decides the graph of a workload: servers, workers, kind of device.

    The zoo builds training on parameter servers. On a setting without any, the graph is that of two
    workers on one server, and the answer says what its exchange is taken for.
    """
    workers = setting.num_workers if setting.num_servers else 0
    return setting.num_servers, workers, setting.on_cpu


def _read_catalogue(request: JobRequest) -> Job:
    from driple.jobs.names import workload_named

    text, options = request.text, request.options
    if Path(text).suffix in _FILES:
        raise ConfigError(f"there is no file {text}; give a graph file, a model or a workload")
    try:
        workload = workload_named(text)
    except ConfigError as error:
        raise ConfigError(f"'{text}' is no file, and as a workload: {error}") from error
    if options.batch_size not in (None, workload.batch_size):
        raise ConfigError(
            f"{text} has batches of {workload.batch_size}, got --batch-size "
            f"{options.batch_size}; give the workload with that batch size in its name"
        )
    require_tensorflow("building a workload's graph")
    from driple.jobs.tensorflow.graphmode import begin_graph_mode

    begin_graph_mode()
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, graphdef_of

    setting = request.setting or Setting.parse(ON_SERVERS)
    shape = ClusterShape(device_type="CPU" if setting.on_cpu else "GPU")
    if setting.num_servers:
        shape = ClusterShape.of(setting)
    step = build_training_step(workload, shape, task=0)
    graph = graph_from_graphdef_bytes(graphdef_of(step))
    data = workload.data
    return job_of(
        text,
        "workload",
        graph,
        batch_size=kept_batch(workload.batch_size, graph),
        seq_len=data.sequence_length or None,
        assumptions=options.config.assumptions,
    )


PYTORCH = JobReader(
    name="a built-in PyTorch model",
    form="a built-in PyTorch model such as mobilenet_v2",
    claims=_is_pytorch_name,
    flags=flags_for("pytorch"),
    read=one_at_a_time(_read_pytorch),
    decided_by=kernels_on,
)
CATALOGUE = JobReader(
    name="a workload of the catalogue",
    form="a workload such as resnet50/imagenet/b32/sgd/sync",
    claims=lambda text: True,
    flags=flags_for("workload"),
    read=one_at_a_time(_read_catalogue),
    decided_by=_servers_of,
)
