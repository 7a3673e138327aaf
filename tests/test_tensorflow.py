"""Training steps of Keras 3 models, written by `training_graph` and read like any other graph.

TensorFlow runs in a process of its own: other tests use its graph mode, which cannot be undone.
"""

from __future__ import annotations

import gzip
from math import prod
from pathlib import Path
from typing import Any

import pytest

from driple.errors import ConfigError, GraphError
from driple.graph import OpGraph, ReadOptions, read_graph, require_training
from driple.graph.cost import cost_of_graph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.tf.graphdef import raw_from_bytes
from driple.tensorflow import training_graph
from tests.conftest import RunTensorFlow

# Every model and the facts that Keras itself states of it.
BUILD = """
import json, sys
import keras, numpy as np, tensorflow as tf
from driple.errors import DripleError
from driple.tensorflow import training_graph
L, folder, facts = keras.layers, sys.argv[1], {}

def add(name, model, batch, **numbers):
    path = training_graph(model, batch, folder + "/" + name + ".pb.gz")
    sizes = [int(np.prod(v.shape)) for v in model.trainable_variables]
    facts[name] = {"path": str(path), "trainable": sum(sizes), "all": model.count_params(),
                   "names": [v.path for v in model.trainable_variables], **numbers}

logits = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

mobilenet = keras.applications.MobileNetV2(weights=None)
mobilenet.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
add("mobilenet", mobilenet, (np.zeros((4, 224, 224, 3)), np.zeros(4, "int32")))

words = keras.Sequential([L.Input((12,), dtype="int32"), L.Embedding(50, 16),
    L.Bidirectional(L.LSTM(8, return_sequences=True)), L.LSTM(6), L.Dense(5)])
words.compile(keras.optimizers.Adam(), logits)
add("lstm", words, (tf.TensorSpec((4, 12), tf.int32), tf.TensorSpec((4,), tf.int32)))
add("open", words, (tf.TensorSpec((None, 12), tf.int32), tf.TensorSpec((None,), tf.int32)))

def transformer(optimizer, policy):
    keras.mixed_precision.set_global_policy(policy)
    x = tokens = L.Input((16,), dtype="int32")
    x = L.Embedding(40, 32)(x)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True))
    x = L.LayerNormalization()(x + L.Dropout(0.1)(L.Dense(32)(L.Dense(128, "gelu")(x))))
    model = keras.Model(tokens, L.Dense(40)(x))
    model.compile(optimizer, logits)
    keras.mixed_precision.set_global_policy("float32")
    return model

element = tf.data.Dataset.from_tensors((tf.zeros((4, 16), tf.int32), tf.zeros((4, 16), tf.int32)))
add("adamw", transformer("adamw", "float32"), element)
add("half", transformer("adam", "mixed_float16"), element)

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = L.Conv2D(8, 3, activation="relu"), L.Dense(10)

    def call(self, images):
        return self.last(L.Flatten()(self.first(images)))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = logits(data["labels"], self(data["images"]))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}

own = Own()
own.compile(keras.optimizers.SGD(0.1, momentum=0.9))
add("own", own, {"images": np.zeros((4, 32, 32, 3), "float32"), "labels": np.zeros(4, "int64")})

refused = {}
def refuse(name, model, batch):
    try:
        training_graph(model, batch, folder + "/refused.pb")
    except DripleError as error:
        refused[name] = str(error)

plain = keras.Sequential([L.Input((3,)), L.Dense(2)])
refuse("not compiled", plain, (np.zeros((4, 3)), np.zeros((4, 2))))
plain.compile(loss="mse", optimizer=None)
refuse("no optimizer", plain, (np.zeros((4, 3)), np.zeros((4, 2))))
plain.compile("sgd", "mse")
refuse("list", plain, ([1.0, 2.0], np.zeros((4, 2))))
refuse("empty", plain, ())
refuse("no model", len, np.zeros((4, 3)))
plain.export(folder + "/saved", verbose=False)
facts["refused"] = refused
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def built(
    run_tensorflow: RunTensorFlow, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    return run_tensorflow(BUILD, str(tmp_path_factory.mktemp("keras")))


def graph_of(built: dict[str, Any], name: str, batch_size: int | None = None) -> OpGraph:
    return read_graph(built[name]["path"], options=ReadOptions(batch_size=batch_size))


@pytest.mark.parametrize("name", ["mobilenet", "own"])
def test_the_file_holds_named_variables_and_all_shapes(built: dict[str, Any], name: str) -> None:
    raw, _ = raw_from_bytes(gzip.decompress(Path(built[name]["path"]).read_bytes()))
    shapes = {
        node.name: node.shape_attributes["shape"][0]
        for node in raw.nodes
        if node.op == "VarHandleOp"
    }
    assert set(built[name]["names"]) <= set(shapes)
    assert (
        sum(prod(shapes[each] or ()) for each in built[name]["names"]) == built[name]["trainable"]
    )
    assert not [node for node in raw.nodes if node.shapes is None and node.op == "Conv2D"]


def product_flops(graph: OpGraph) -> float:
    cost = cost_of_graph(graph)
    return sum(
        flops
        for flops, kind in zip(cost.per_step[:, 0].tolist(), graph.kinds, strict=True)
        if family_of(kind) in PRODUCT_FAMILIES
    )


MODELS = ["mobilenet", "lstm", "adamw", "half", "own"]


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_gradients_are_those_that_keras_counts(
    built: dict[str, Any], name: str
) -> None:
    """All variables of the model are read, each trained one is sent; the rest are few numbers.

    MobileNet-v2 also sends the moving averages of its batch norms.
    """
    graph = graph_of(built, name)
    require_training(graph)
    counted, few = built[name], 120  # losses, metrics, seeds, scales
    assert 0 <= graph.received_bytes - 4 * counted["all"] < 4 * few
    assert 0 <= graph.sent_bytes - 4 * counted["all"] < 4 * few
    slots = {"adamw": 2, "half": 2, "lstm": 2, "mobilenet": 2, "own": 1}[name]
    assert graph.report.state_bytes == 4 * slots * counted["trainable"]
    assert graph.report.unknown_share == 0
    assert graph.report.nodes_without_shape == 0
    assert not cost_of_graph(graph).unknown
    optimizers = {"adamw": "adamw", "own": "momentum"}
    assert graph.update.optimizer == optimizers.get(name, "adam")
    assert graph.update.state_bytes == 4 * slots * counted["trainable"]
    trained = int(graph.parameters.elements[graph.parameters.is_trained].sum())
    assert 0 <= trained - counted["trainable"] <= 2  # sums of losses
    assert graph.update.moved_bytes == 4 * (3 * trained + 2 * slots * counted["trainable"])


def test_flops_of_mobilenet_are_three_times_its_published_multiply_adds(
    built: dict[str, Any],
) -> None:
    """300 million (Sandler et al. 2018, table 4), less the gradient by the images."""
    flops = product_flops(graph_of(built, "mobilenet"))
    first_layer = 112 * 112 * 32 * 27
    assert flops == pytest.approx(4 * 2 * (3 * 300e6 - first_layer), rel=0.01)


def test_flops_of_recurrent_layers_by_hand(built: dict[str, Any]) -> None:
    """Four gates of both directions, then of the second layer; gradients are twice as much."""
    turn = 2 * (16 + 8) * 4 * 8 + (16 + 6) * 4 * 6
    expected = 3 * 2 * 4 * (12 * turn + 6 * 5)
    assert product_flops(graph_of(built, "lstm")) == expected
    assert product_flops(graph_of(built, "open", batch_size=4)) == expected
    assert graph_of(built, "open").report.unknown_share > 0


@pytest.mark.parametrize("name", ["adamw", "half"])
def test_flops_of_a_transformer_by_hand(built: dict[str, Any], name: str) -> None:
    """Projections, attention and the layers after it; precision changes none of them."""
    tokens, width = 4 * 16, 32
    dense = tokens * (4 * width * width + 2 * width * 128 + width * 40)
    attention = 2 * 4 * 16 * 16 * width
    assert product_flops(graph_of(built, name)) == 3 * 2 * (dense + attention)


def test_mixed_precision_multiplies_halves(built: dict[str, Any]) -> None:
    half_dtype = 19
    graph = graph_of(built, "half")
    products = [op for op in graph.signatures if family_of(op.kind) in PRODUCT_FAMILIES]
    assert products
    assert {op.outputs[0].dtype for op in products} == {half_dtype}


def test_a_models_own_train_step_is_traced(built: dict[str, Any]) -> None:
    """A convolution of 3 channels, 30 x 30 positions, and a layer of 7200 inputs."""
    conv, dense = 30 * 30 * 8 * 27, 7200 * 10
    assert product_flops(graph_of(built, "own")) == 4 * 2 * (2 * conv + 3 * dense)


def test_unusable_models_and_batches_are_one_line_with_the_way_out(built: dict[str, Any]) -> None:
    refused = built["refused"]
    assert "call model.compile(optimizer=..., loss=...) first" in refused["not compiled"]
    assert "compiled without an optimizer" in refused["no optimizer"]
    assert "a value of type float" in refused["list"]
    assert "the batch is empty" in refused["empty"]
    assert "keras.Model of Keras 3, got builtins.builtin_function_or_method" in refused["no model"]
    assert all("\n" not in line for line in refused.values())
    assert not (Path(built["own"]["path"]).parent / "refused.pb").exists()


def test_a_saved_model_is_refused_with_the_function_that_writes_its_step(
    built: dict[str, Any],
) -> None:
    saved = Path(built["own"]["path"]).parent / "saved"
    graph = read_graph(saved)
    with pytest.raises(GraphError, match=r"driple.tensorflow.training_graph\(model, batch\)"):
        require_training(graph)


def test_the_file_name_is_checked_before_tensorflow_is_imported() -> None:
    with pytest.raises(ConfigError, match=r"step.keras must end in .pb or .pb.gz"):
        training_graph(object(), None, "step.keras")
