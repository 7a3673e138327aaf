"""Jobs typed as a name with parts: workloads of the TensorFlow catalogue."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.extras import require_tensorflow
from driple.graph import graph_from_graphdef_bytes
from driple.jobs.graph_file import kept_batch
from driple.jobs.job import ON_SERVERS, Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, one_at_a_time

__all__ = ["CATALOGUE"]

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


def _read(request: JobRequest) -> Job:
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
        CATALOGUE.origin,
        graph,
        batch_size=kept_batch(workload.batch_size, graph),
        seq_len=data.sequence_length or None,
        assumptions=options.config.remarks,
    )


CATALOGUE = JobReader(
    origin=JobOrigin(name="workload"),
    name="a workload of the catalogue",
    form="a workload such as resnet50/imagenet/b32/sgd/sync",
    claims=lambda text: True,
    is_certain=lambda text: False,
    flags=flags_for("workload"),
    read=one_at_a_time(_read),
    decided_by=_servers_of,
)
