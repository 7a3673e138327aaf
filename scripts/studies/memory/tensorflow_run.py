"""Compare the peak of TensorFlow's own allocator with lifetimes from graphs: tensorflow.jsonl.

    nice python -m scripts.studies.memory.tensorflow_run

Models of Keras train on the CPU with TensorFlow's BFC allocator, whose peak of the third step is
taken. TensorFlow's profiler tells what was requested of it: a chunk may be up to twice as large.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driple.graph import read_graph
from driple.memory.graph_lifetimes import BFC_ROUNDING
from driple.memory.timeline import step_timeline
from scripts.studies.kit.results import Row, add_result, read_results

RESULTS = Path(__file__).parent / "tensorflow.jsonl"
_LIMIT_MB = "8000"
_WARM_STEPS = 2
_CLASSES = 10


def _dense() -> Any:
    import keras

    layers = [keras.layers.Dense(512, activation="relu") for _ in range(6)]
    return keras.Sequential(
        [keras.Input((256,)), *layers, keras.layers.Dense(_CLASSES, activation="softmax")]
    )


def _recurrent() -> Any:
    import keras

    return keras.Sequential(
        [
            keras.Input((60, 64)),
            keras.layers.LSTM(256),
            keras.layers.Dense(_CLASSES, activation="softmax"),
        ]
    )


def _application(name: str, side: int) -> Callable[[], Any]:
    def make() -> Any:
        import keras

        builder = getattr(keras.applications, name)
        return builder(weights=None, input_shape=(side, side, 3), classes=_CLASSES)

    return make


# Builder, shape of the batch, optimizer.
MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...], str]] = {
    "dense, 7 layers": (_dense, (2048, 256), "SGD"),
    "LSTM of 60 turns": (_recurrent, (256, 60, 64), "SGD"),
    "MobileNetV2": (_application("MobileNetV2", 96), (16, 96, 96, 3), "SGD"),
    "ResNet50": (_application("ResNet50", 64), (16, 64, 64, 3), "Adam"),
    "DenseNet121": (_application("DenseNet121", 64), (16, 64, 64, 3), "SGD"),
    "VGG16": (_application("VGG16", 64), (16, 64, 64, 3), "SGD"),
}


def _optimizer(name: str) -> Any:
    import keras

    optimizer_class = getattr(keras.optimizers, name)
    return optimizer_class(0.01, momentum=0.9) if name == "SGD" else optimizer_class()


def compared(name: str) -> Row:
    """Peak of the allocator, and of the graph's lifetimes."""
    import keras
    import tensorflow as tf

    make, shape, optimizer = MODELS[name]
    keras.backend.clear_session()
    gc.collect()
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    model = make()
    model.compile(optimizer=_optimizer(optimizer), loss="sparse_categorical_crossentropy")
    inputs, labels = tf.random.normal(shape), tf.zeros(shape[:1], tf.int64)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def step(inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(inputs, labels, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for _ in range(_WARM_STEPS):
        step(inputs, labels)
    gc.collect()
    tf.config.experimental.reset_memory_stats("CPU:0")
    step(inputs, labels)
    measured = tf.config.experimental.get_memory_info("CPU:0")["peak"] - before
    graph = step.get_concrete_function(inputs, labels).graph.as_graph_def(add_shapes=True)
    kept = [*model.variables, *model.optimizer.variables, inputs, labels]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "step.pb"
        file.write_bytes(graph.SerializeToString())
        timeline = step_timeline(read_graph(file), rounding=BFC_ROUNDING)
        seen = _profiled(lambda: step(inputs, labels), Path(folder), optimizer.lower())
    before_step = sum(int(tf.size(one)) * one.dtype.size for one in map(tf.convert_to_tensor, kept))
    return {
        "model": name,
        "batch_size": shape[0],
        "optimizer": optimizer,
        "allocator_bytes": measured,
        "requested_bytes": before_step + seen.peak,
        "workspace_bytes": seen.workspace,
        "update_bytes": seen.update,
        "predicted_bytes": timeline.peak_bytes,
    }


@dataclass(frozen=True, slots=True)
class _Peak:
    """Bytes that a step requested at its peak, and of these kernels' workspace and the update's."""

    peak: int
    workspace: int
    update: int


def _profiled(run: Callable[[], Any], folder: Path, optimizer: str) -> _Peak:
    """Requests of one step, by TensorFlow's profiler."""
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
    tf.profiler.experimental.start(str(folder), options)
    run()
    tf.profiler.experimental.stop()
    live: dict[int, _Request] = {}
    now = 0
    peak = _Peak(0, 0, 0)
    for request in _requests(folder):
        if request.nbytes < 0:
            now -= live.pop(request.address).nbytes if request.address in live else 0
            continue
        live[request.address] = request
        now += request.nbytes
        if now > peak.peak:
            workspace = sum(each.nbytes for each in live.values() if each.is_workspace)
            update = sum(
                each.nbytes
                for each in live.values()
                if not each.is_workspace and each.op.startswith(f"{optimizer}/")
            )
            peak = _Peak(now, workspace, update)
    return peak


@dataclass(frozen=True, slots=True, order=True)
class _Request:
    """A request of memory, or one that is freed, whose bytes are negative."""

    time_ns: float
    address: int
    nbytes: int
    op: str
    is_workspace: bool


def _requests(folder: Path) -> list[_Request]:
    """Requests in the order of time."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (file,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace()
    space.ParseFromString(file.read_bytes())
    requests = []
    for plane in space.planes:
        names = {key: one.name for key, one in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                kind = plane.event_metadata[event.metadata_id].name
                if kind not in ("MemoryAllocation", "MemoryDeallocation"):
                    continue
                stats = {
                    names[one.metadata_id]: names.get(one.ref_value)
                    or one.str_value
                    or one.int64_value
                    or one.uint64_value
                    for one in event.stats
                }
                is_made = kind == "MemoryAllocation"
                nbytes = int(stats["requested_bytes"]) if is_made else -1
                requests.append(
                    _Request(
                        line.timestamp_ns + event.offset_ps / 1000,
                        int(stats["addr"]),
                        nbytes,
                        str(stats.get("tf_op") or ""),
                        stats.get("region_type") == "temp",
                    )
                )
    return sorted(requests)


def main() -> None:
    """Compare all models that are not in the results yet."""
    os.environ.update(
        TF_CPU_ALLOCATOR_USE_BFC="true",
        TF_CPU_BFC_MEM_LIMIT_IN_MB=_LIMIT_MB,
        TF_ENABLE_ONEDNN_OPTS="0",
        TF_CPP_MIN_LOG_LEVEL="3",
        CUDA_VISIBLE_DEVICES="",
    )
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    done = {row["model"] for row in read_results(RESULTS)}
    for name in MODELS:
        if name not in done:
            row = compared(name)
            add_result(RESULTS, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
