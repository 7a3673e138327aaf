"""The training step of a Keras 3 model as a graph file, which every command of Driple reads.

    compiled model, one batch --train_step, traced on shapes--> GraphDef with shapes -> step.pb

    path = driple.tensorflow.training_graph(model, (images, labels), "step.pb")
    driple predict step.pb

Entry point: `training_graph`. It runs where the model is built: in the user's own program, with the
TensorFlow that is installed there. TensorFlow is imported by the call, not with this module.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.extras import require_tensorflow
from driple.files import atomic_write

__all__ = ["training_graph"]

_SUFFIXES = (".pb", ".pb.gz")
_DEFAULT_PATH = "step.pb"
_MOST_CONSTANT_ELEMENTS = 1024  # of a captured tensor whose value is written


def training_graph(model: Any, batch: Any, path: str | Path | None = None) -> Path:
    """Write the graph of one `train_step` of a Keras 3 model: forward, gradients and update.

    The step is traced on shapes alone: no batch is computed, and no weight changes. A model that
    overrides `train_step` (with `tf.GradientTape`, say) is traced with its own.

    Args:
        model: a compiled `keras.Model` whose backend is TensorFlow.
        batch: one batch as `train_step` gets it, such as `(images, labels)` or
            `(inputs, labels, sample_weights)`: arrays, tensors or `tf.TensorSpec`, also nested in
            dictionaries; or a `tf.data.Dataset`, whose elements are batches. An open first
            dimension (`None`) is set later, with `--batch-size`.
        path: file to write, `.pb` or `.pb.gz`; `step.pb` in the current folder if None.

    Returns:
        The file, for `driple predict` and all other commands.

    Raises:
        ConfigError: no Keras 3 model, no TensorFlow backend, not compiled, several replicas, a
            batch with something else than arrays, or a file that cannot be written.
        MissingExtraError: TensorFlow is not installed.
    """
    target = _target(path)
    require_tensorflow("tracing a Keras model's training step")
    _check_model(model)
    spec = _spec_of(batch)
    data = _graphdef_of(model, spec).SerializeToString()
    if target.name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    atomic_write(target, data, error=ConfigError)
    return target


def _target(path: str | Path | None) -> Path:
    target = Path(_DEFAULT_PATH if path is None else path)
    if not target.name.endswith(_SUFFIXES):
        raise ConfigError(
            f"{target} must end in {' or '.join(_SUFFIXES)}: a training graph is a binary GraphDef"
        )
    return target


def _check_model(model: Any) -> None:
    """Raise ConfigError if the model has no training step of one replica that can be traced."""
    import keras

    if not isinstance(model, keras.Model):
        kind = f"{type(model).__module__}.{type(model).__name__}"
        raise ConfigError(
            f"training_graph needs a keras.Model of Keras 3, got {kind}; for a step of your own, "
            "write the graph of its tf.function: "
            "step.get_concrete_function(...).graph.as_graph_def(add_shapes=True)"
        )
    if keras.backend.backend() != "tensorflow":
        raise ConfigError(
            f"training_graph needs Keras on TensorFlow, and its backend is "
            f"{keras.backend.backend()}; set KERAS_BACKEND=tensorflow before keras is imported"
        )
    own_step = type(model).train_step is not keras.Model.train_step
    if not (model.compiled or own_step):
        raise ConfigError(
            f"model {model.name} is not compiled, so it has no loss and no optimizer; call "
            "model.compile(optimizer=..., loss=...) first"
        )
    if model.compiled and model.optimizer is None:
        raise ConfigError(
            f"model {model.name} is compiled without an optimizer; call "
            "model.compile(optimizer=..., loss=...)"
        )
    replicas = model.distribute_strategy.num_replicas_in_sync
    if replicas > 1:
        raise ConfigError(
            f"model {model.name} belongs to a distribution strategy of {replicas} replicas; build "
            "it outside of strategy.scope(): the graph is that of one device, and the setting that "
            "you name adds the others"
        )


def _spec_of(batch: Any) -> Any:
    """The batch with a `tf.TensorSpec` in place of each array."""
    import tensorflow as tf

    if isinstance(batch, tf.data.Dataset):
        batch = batch.element_spec

    def spec(value: Any) -> Any:
        if value is None or isinstance(value, tf.TypeSpec):
            return value
        if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
            return tf.type_spec_from_value(value)
        if not (hasattr(value, "shape") and hasattr(value, "dtype")):
            raise ConfigError(
                f"the batch holds a value of type {type(value).__name__}; give arrays, tensors or "
                "tf.TensorSpec, such as (images, labels), or a tf.data.Dataset"
            )
        return tf.TensorSpec(tuple(value.shape), _dtype_as_fit(value))

    specs = tf.nest.map_structure(spec, batch)
    if not any(leaf is not None for leaf in tf.nest.flatten(specs)):
        raise ConfigError("the batch is empty; give arrays or tf.TensorSpec, (images, labels)")
    return specs


def _dtype_as_fit(value: Any) -> Any:
    """Type of an array in the step: `model.fit` casts NumPy's double precision to Keras' own."""
    import keras
    import numpy as np
    import tensorflow as tf

    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return tf.as_dtype(keras.config.floatx())
    name = str(value.dtype).removeprefix("torch.")
    try:
        return tf.as_dtype(name.split("'")[1] if name.startswith("<") else name)
    except TypeError as error:
        raise ConfigError(
            f"the batch holds an array of type {name}, which TensorFlow does not have; give "
            "numbers, strings or tf.TensorSpec"
        ) from error


def _graphdef_of(model: Any, spec: Any) -> Any:
    """GraphDef of the model's `train_step`, with its variables as `VarHandleOp`.

    A concrete function takes its variables as arguments, and its graph holds placeholders without
    their shapes.
    """
    import tensorflow as tf

    if model.compiled and type(model).train_step is _keras_train_step():
        # As `fit` does before its first step: layers, metrics and slots that do not exist yet.
        model._symbolic_build(data_batch=spec)
    step = tf.function(model.train_step, reduce_retracing=True)
    graph = step.get_concrete_function(spec).graph
    graph_def = graph.as_graph_def(add_shapes=True)
    variables = {id(variable.handle): variable for variable in graph.variables}
    paths = _paths_of(model)
    used = {node.name for node in graph_def.node}
    names: dict[str, str] = {}
    nodes = {node.name: node for node in graph_def.node}
    for outer, inner in graph.captures:
        node = nodes[inner.op.name]
        if id(outer) in variables:
            variable = variables[id(outer)]
            wanted = paths.get(id(variable), variable.name.partition(":")[0])
            names[node.name] = _free_name(wanted, used)
            _make_variable(node, variable, names[node.name])
        elif outer.dtype != tf.resource and isinstance(outer, tf.__internal__.EagerTensor):
            _make_constant(node, outer)
    for node in graph_def.node:
        for i, source in enumerate(node.input):
            mark, name, output = _parts(source)
            if name in names:
                node.input[i] = mark + names[name] + output
    return graph_def


def _paths_of(model: Any) -> dict[int, str]:
    """Path of each Keras variable, such as `conv1/kernel`, by the id of TensorFlow's variable."""
    own = [*model.variables, *model.metrics_variables]
    if model.compiled:
        own += model.optimizer.variables
    return {id(variable.value): variable.path for variable in own}


def _keras_train_step() -> Any:
    import keras

    return keras.Model.train_step


def _free_name(wanted: str, used: set[str]) -> str:
    """A name that no node has; variables of Keras may share one."""
    name, number = wanted, 0
    while name in used:
        number += 1
        name = f"{wanted}_{number}"
    used.add(name)
    return name


def _make_variable(node: Any, variable: Any, name: str) -> None:
    """Make a variable's handle of a placeholder."""
    node.op, node.name = "VarHandleOp", name
    node.attr["shape"].shape.CopyFrom(variable.shape.as_proto())
    node.attr["dtype"].type = variable.dtype.as_datatype_enum
    node.attr["shared_name"].s = name.encode()
    node.attr["container"].s = b""


def _make_constant(node: Any, value: Any) -> None:
    """Write a small captured tensor into the graph: its value may be another tensor's shape."""
    import tensorflow as tf

    if value.shape.num_elements() > _MOST_CONSTANT_ELEMENTS:
        return
    node.op = "Const"
    node.attr.pop("shape", None)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value.numpy(), dtype=value.dtype))


def _parts(source: str) -> tuple[str, str, str]:
    """Control mark, name and output number of an input such as `^a` or `a:1`."""
    mark = "^" if source.startswith("^") else ""
    name, colon, output = source.removeprefix("^").partition(":")
    return mark, name, colon + output
