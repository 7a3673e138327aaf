"""The training step of a workload as a TensorFlow graph, placed on parameter servers and a worker.

    Workload, ClusterShape, task -> build_training_step -> TrainingStep (graph, step, start-up ops)
                                                        -> graphdef_of  -> bytes of a GraphDef

The graph is what the worker of that task runs: forward and backward pass on the worker, variables
and optimizer on the parameter servers (`replica_device_setter`), and for synchronous training the
accumulators and token queue of `SyncReplicasOptimizer`.

Image models are built like those of tf_cnn_benchmarks: inputs in the precision of the layers,
weight decay on all variables but those of normalisations, and gradients that do not wait for each
other.
The gradient of the images is in the graph, as TensorFlow adds it, but nothing needs it, so that no
step computes it.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.jobs.catalogue import Model, model_of
from driple.jobs.tensorflow.nn import Net, image_loss, text_loss
from driple.jobs.workload import DataSet, Workload

__all__ = [
    "ClusterShape",
    "TrainingStep",
    "build_training_step",
    "graphdef_of",
    "use_graph_mode",
    "write_graph",
]

_SEED = 1
# What the loss is multiplied with in half precision, and the gradients divided by, so that small
# gradients do not vanish; the usual value of tf_cnn_benchmarks.
_LOSS_SCALE = 128.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterShape:
    """How many parameter servers and workers, and the device type of a worker (`CPU`, `GPU`)."""

    num_servers: int = 1
    num_workers: int = 2
    device_type: str = "CPU"

    @classmethod
    def of(cls, setting: Setting) -> ClusterShape:
        """The shape of a setting's cluster; every device that is no CPU counts as a GPU.

        Raises:
            ConfigError: the setting has no parameter server.
        """
        if setting.num_servers < 1:
            raise ConfigError(
                f"{setting.name} has no parameter server, and the zoo builds parameter-server "
                "training; choose a setting such as V100-P1w2"
            )
        return cls(
            num_servers=setting.num_servers,
            num_workers=setting.num_workers,
            device_type="CPU" if setting.on_cpu else "GPU",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingStep:
    """One worker's training step and what must run before it.

    Attributes:
        graph: the TensorFlow graph.
        step: tensor to fetch: the loss, after the update was sent.
        init_shared: run by the chief alone, first: variables on the parameter servers.
        init_local: run by each worker.
        start_tokens: for synchronous training, run by the chief alone, after its queue runner.
        queue_runner: for synchronous training, started by the chief.
        num_parameters: trainable parameters.
    """

    graph: Any
    step: Any
    init_shared: Any
    init_local: Any
    start_tokens: Any
    queue_runner: Any
    num_parameters: int


def use_graph_mode() -> None:
    """Turn TensorFlow 2 behaviour off in this process: graphs, reference variables, v1 loops."""
    tf.disable_v2_behavior()


def build_training_step(workload: Workload, shape: ClusterShape, task: int) -> TrainingStep:
    """The graph that the worker `task` of this cluster runs.

    Raises:
        ConfigError: the zoo has no such model.
    """
    model = model_of(workload)
    data = model.data_of(workload)
    worker = f"/job:worker/task:{task}"
    cluster = {
        "ps": [f"ps{i}:1" for i in range(shape.num_servers)],
        "worker": [f"worker{i}:1" for i in range(shape.num_workers)],
    }
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(_SEED)
        place = tf.train.replica_device_setter(
            worker_device=f"{worker}/device:{shape.device_type}:0",
            ps_device="/job:ps/device:CPU:0",
            cluster=tf.train.ClusterSpec(cluster),
        )
        with tf.device(place):
            global_step = tf.train.get_or_create_global_step()
            inputs, labels = _synthetic_batch(
                workload, data, f"{worker}/device:{shape.device_type}:0"
            )
            net = Net(
                width=workload.width,
                channels_first=workload.data_format == "nchw",
                half=workload.precision == "fp16",
            )
            with tf.variable_scope("model", use_resource=False):
                logits = model.logits(net, net.images(inputs) if data.image_size else inputs, data)
            loss = (
                image_loss(logits, labels, model.weight_decay, net.decayed)
                if data.image_size
                else text_loss(logits, labels)
            )
            optimizer = _optimizer(workload.optimizer)
            if workload.sync:
                optimizer = tf.train.SyncReplicasOptimizer(
                    optimizer,
                    replicas_to_aggregate=shape.num_workers,
                    total_num_replicas=shape.num_workers,
                )
            gradients = _gradients(model, optimizer, loss, scaled=net.half)
            update = optimizer.apply_gradients(gradients, global_step=global_step)
            averages = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            with tf.control_dependencies([update, *averages]):
                step = tf.identity(loss, name="step")
            init_shared = tf.global_variables_initializer()
            init_local, start_tokens, queue_runner = tf.local_variables_initializer(), None, None
            if workload.sync:
                chief = task == 0
                init_local = tf.group(
                    init_local, optimizer.chief_init_op if chief else optimizer.local_step_init_op
                )
                if chief:
                    queue_runner = optimizer.get_chief_queue_runner()
                    start_tokens = optimizer.get_init_tokens_op(0)
        sizes = [int(v.shape.num_elements()) for v in tf.trainable_variables()]
    return TrainingStep(
        graph=graph,
        step=step,
        init_shared=init_shared,
        init_local=init_local,
        start_tokens=start_tokens,
        queue_runner=queue_runner,
        num_parameters=sum(sizes),
    )


def graphdef_of(step: TrainingStep) -> bytes:
    """The graph as a serialised GraphDef with `_output_shapes`."""
    return bytes(step.graph.as_graph_def(add_shapes=True).SerializeToString(deterministic=True))


def _gradients(model: Model, optimizer: Any, loss: Any, *, scaled: bool) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable, in single precision; the loss may be scaled meanwhile.

    The optimizer's default gate makes both gradients of a layer wait for each other, and thus
    computes the gradient of the images. tf_cnn_benchmarks has no gate; OpenNMT-tf has it.
    """
    default, none = tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_NONE
    gate = default if model.reads == "text" else none
    if not scaled:
        return list(optimizer.compute_gradients(loss, gate_gradients=gate))
    scale = tf.get_variable(
        "loss_scale", initializer=_LOSS_SCALE, trainable=False, use_resource=False
    )
    pairs = optimizer.compute_gradients(loss * scale, gate_gradients=gate)
    return [(_divided(gradient, scale), variable) for gradient, variable in pairs]


def _divided(gradient: Any, by: Any) -> Any:
    """A dense or sparse gradient divided by a scalar."""
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values * (1.0 / by)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient * (1.0 / by)


def _synthetic_batch(workload: Workload, data: DataSet, device: str) -> tuple[Any, Any]:
    """Inputs and labels that live on the worker, so that no input crosses the network."""
    batch = workload.batch_size
    with tf.device(device), tf.variable_scope("data", use_resource=False):
        if data.image_size:
            channels = 1 if workload.data_set == "mnist" else 3
            shape: tuple[int, ...] = (batch, data.image_size, data.image_size, channels)
            dtype = tf.float16 if workload.precision == "fp16" else tf.float32
            images = _local("images", tf.truncated_normal(shape, stddev=0.5, dtype=dtype))
            labels = _random_ints((batch,), data.num_classes)
            return tf.reshape(images, shape), tf.reshape(labels, (batch,))
        shape = (batch, data.sequence_length)
        tokens = _local("tokens", _random_ints(shape, data.num_classes))
        label_shape = (batch * data.sequence_length,)
        return tokens, _local("labels", _random_ints(label_shape, data.num_classes))


def _random_ints(shape: tuple[int, ...], below: int) -> Any:
    return tf.random_uniform(shape, minval=0, maxval=below, dtype=tf.int32)


def _local(name: str, value: Any) -> Any:
    """The value of a variable of the worker."""
    variable = tf.Variable(
        value,
        name=name,
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        use_resource=False,
    )
    return tf.convert_to_tensor(variable)


def _optimizer(name: str) -> Any:
    """Optimizers with learning rates that keep synthetic training finite."""
    if name == "sgd":
        return tf.train.GradientDescentOptimizer(1e-3)
    if name == "momentum":
        return tf.train.MomentumOptimizer(1e-3, 0.9)
    if name == "rmsprop":
        return tf.train.RMSPropOptimizer(1e-4, decay=0.9, momentum=0.9, epsilon=1.0)
    return tf.train.AdamOptimizer(1e-4)


def write_graph(step: TrainingStep, path: Path) -> None:
    """Write the graph to a file: text for `.pbtxt`, binary else; gzipped for `.gz`.

    Raises:
        ConfigError: it cannot be written; nothing is left half-written.
    """
    definition = step.graph.as_graph_def(add_shapes=True)
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix == ".pbtxt":
        content = text_format.MessageToString(definition).encode()
    else:
        content = definition.SerializeToString(deterministic=True)
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    atomic_write(path, content, error=ConfigError)
