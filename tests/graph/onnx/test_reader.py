"""ONNX files: sizes that are open, what is trained, refusals, and files that nobody here made."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from driple.errors import ConfigError, GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.opkind import KINDS
from driple.graph.options import ReadOptions
from driple.graph.step_facts import Phase, TensorRole
from driple.render.remarks import sentence, sentences
from tests.graph.onnx.exports import read_onnx

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
# Parameters as published: Simonyan and Zisserman 2015 (VGG-19), torchvision's model pages
# (ResNet-50, SqueezeNet 1.1), Krizhevsky et al. 2012 in Caffe's form, Szegedy et al. 2015 in it.
PUBLISHED = {
    "vgg19": 143_667_240,
    "resnet50": 25_557_032,
    "squeezenet": 1_235_496,
    "bvlc_alexnet": 60_965_224,
    "inception_v1": 6_998_552,
}


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def small(**options: object) -> onnx.ModelProto:
    """Y = relu(X W1 + b) W2, X of an open batch and 6 columns."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b"], ["a"], name="one/Gemm"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight("w1", 6, 5), weight("b", 5), weight("w2", 5, 3)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], **options)


def written(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_small_model_by_hand(tmp_path: Path) -> None:
    """Five products: no gradient by the input, two by W2 and its input, one by W1."""
    graph = read_onnx(written(small(), tmp_path), options=ReadOptions(batch_size=4))
    kinds = graph.kinds
    assert kinds.count("matmul") == 5
    assert kinds.count("relu") == kinds.count("relu_gradient") == kinds.count("nll_loss") == 1
    products = cost_of_graph(graph).flops[graph.nodes_of({"matmul"})].sum()
    assert products == 2 * 4 * (2 * 6 * 5 + 3 * 5 * 3)
    assert graph.parameters.names == ("w1", "b", "w2")
    assert graph.parameters.elements.tolist() == [30, 5, 15]
    assert graph.sent_bytes == graph.received_bytes == 4 * 50
    assert graph.op_types[kinds.index("relu_gradient")] == "ReluGrad"
    assert set(kinds) <= KINDS
    phases = graph.phases.tolist()
    assert phases == sorted(phases)
    assert phases.count(Phase.FORWARD) == 5
    assert graph.framework == "onnx"
    assert graph.layout == "one_device"


def test_lifetimes_of_a_small_model(tmp_path: Path) -> None:
    """The input, ReLU's output and the loss's logarithms are kept for the backward pass."""
    graph = read_onnx(written(small(), tmp_path), options=ReadOptions(batch_size=4))
    times = graph.lifetimes
    of = {role: times.nbytes[times.roles == role].tolist() for role in TensorRole}
    assert sorted(of[TensorRole.ACTIVATION]) == [4 * 4 * 3, 4 * 4 * 5]
    assert sorted(of[TensorRole.PARAMETER]) == sorted(of[TensorRole.GRADIENT]) == [20, 60, 120]
    assert sorted(of[TensorRole.INPUT]) == [8 * 4, 4 * 4 * 6]
    assert of[TensorRole.OPTIMIZER_STATE] == [200]  # momentum
    assert (times.freed_after >= times.made_by).all()


@pytest.mark.parametrize(
    ("optimizer", "copies"), [("sgd", 0), ("momentum", 1), ("adamw", 2), ("adam-fused", 2)]
)
def test_the_update_reads_and_writes_parameters_and_states(
    tmp_path: Path, optimizer: str, copies: int
) -> None:
    update = read_onnx(written(small(), tmp_path), optimizer=optimizer).update
    assert update.optimizer == optimizer
    assert update.state_bytes == copies * 200
    assert update.moved_bytes == 3 * 200 + 2 * copies * 200


def test_an_unknown_optimizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="optimizer must be one of sgd"):
        read_onnx(written(small(), tmp_path), optimizer="newton")


def test_an_open_batch_is_set_by_either_option(tmp_path: Path) -> None:
    path = written(small(), tmp_path)
    by_batch = read_onnx(path, options=ReadOptions(batch_size=4))
    by_shape = read_onnx(path, options=ReadOptions(inputs={"x": (4, 6)}))
    assert by_batch.signatures == by_shape.signatures
    assert not by_batch.report.has_unknown
    unset = read_onnx(path)
    assert 0.5 < unset.report.unknown_share <= 1
    assert "--batch-size N or --input x=?x6, with a number for each ?" in sentence(
        unset.report.notes[0]
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ReadOptions(inputs={"z": (4, 6)}), "no such input; it has x"),
        (ReadOptions(inputs={"x": (4, 7)}), "the model has x=batchx6"),
        (ReadOptions(inputs={"x": (4, 6, 1)}), "the model has x=batchx6"),
    ],
)
def test_options_that_the_file_contradicts_are_refused(
    tmp_path: Path, options: ReadOptions, words: str
) -> None:
    with pytest.raises(GraphError, match=words):
        read_onnx(written(small(), tmp_path), options=options)


def test_a_fixed_batch_is_not_changed(tmp_path: Path) -> None:
    model = small()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    path = written(model, tmp_path)
    assert not read_onnx(path).report.has_unknown
    with pytest.raises(GraphError, match="fixes its batch to 2"):
        read_onnx(path, options=ReadOptions(batch_size=4))


def test_external_data_is_never_opened(tmp_path: Path) -> None:
    """The step is the same without the file that holds the weights."""
    inside = read_onnx(written(small(), tmp_path), options=ReadOptions(batch_size=4))
    onnx.save_model(small(), tmp_path / "outside.onnx", save_as_external_data=True,
                    location="weights.bin", size_threshold=0)  # fmt: skip
    (tmp_path / "weights.bin").unlink()
    outside = read_onnx(tmp_path / "outside.onnx", options=ReadOptions(batch_size=4))
    assert outside.signatures == inside.signatures
    assert outside.parameters.names == inside.parameters.names


def test_a_gzipped_file_is_read_and_a_large_one_is_not(tmp_path: Path) -> None:
    data = small().SerializeToString()
    packed = tmp_path / "model.onnx.gz"
    packed.write_bytes(gzip.compress(data))
    assert read_onnx(packed).num_nodes
    with pytest.raises(GraphError, match=r"over 100 bytes when unpacked.*max_mib"):
        packed.write_bytes(gzip.compress(bytes(10_000)))
        read_onnx(packed, max_bytes=100)


def _with(change: Callable[[onnx.ModelProto], None]) -> bytes:
    model = small()
    change(model)
    return bytes(model.SerializeToString())


def _opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 1000


def _custom(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type, model.graph.node[1].domain = "Swirl", "my.ops"
    model.opset_import.append(helper.make_opsetid("my.ops", 1))


def _trees(model: onnx.ModelProto) -> None:
    _custom(model)
    del model.opset_import[0]


def _no_opset(model: onnx.ModelProto) -> None:
    del model.opset_import[:]


def _unknown(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type = "Swirl"


def _microsoft(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type, model.graph.node[1].domain = "FusedGemm", "com.microsoft"


def _quantised(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type = "QLinearConv"


def _loop(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type = "Loop"


def _lists(model: onnx.ModelProto) -> None:
    model.graph.node[1].op_type = "SplitToSequence"


def _dangling(model: onnx.ModelProto) -> None:
    model.graph.node[1].input[0] = "nothing"


def _twice(model: onnx.ModelProto) -> None:
    model.graph.node[1].output[0] = "a"


def _contradiction(model: onnx.ModelProto) -> None:
    model.graph.initializer[2].dims[0] = 4
    model.graph.initializer[2].raw_data = bytes(4 * 4 * 3)


def _wrong_values(model: onnx.ModelProto) -> None:
    model.graph.initializer[1].raw_data = b"abc"


def _untrained(model: onnx.ModelProto) -> None:
    del model.graph.initializer[:]
    for name, shape in (("w1", [6, 5]), ("b", [5]), ("w2", [5, 3])):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))


def _huge(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = 2**40


def _huge_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2**63 - 1


def _no_such_axis(model: onnx.ModelProto) -> None:
    node = helper.make_node("LpNormalization", ["a"], ["r"], axis=2)
    model.graph.node[1].CopyFrom(node)


def _few_terms(model: onnx.ModelProto) -> None:
    node = helper.make_node("Einsum", ["r", "w2"], ["y"], equation="ij")
    model.graph.node[2].CopyFrom(node)


BAD = {
    "empty": (b"", "file is empty"),
    "text": (b"# a model\nconv: 3\n", "file is text, and an ONNX model is binary"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "cut off": (small().SerializeToString()[:-40], "cut off, or no ONNX model"),
    "zeros": (bytes(500), "cut off, or no ONNX model"),
    "opset": (_with(_opset), r"opset 1000, and the installed onnx .* knows up to"),
    "custom": (_with(_custom), r"operators that are not ONNX's own \(1 my.ops.Swirl\)"),
    "no opset": (_with(_no_opset), "names no version of ONNX's operators"),
    "other domain only": (_with(_trees), r"1 my.ops.Swirl"),
    "unknown": (_with(_unknown), r"not ONNX's own \(1 Swirl\)"),
    "microsoft": (_with(_microsoft), r"optimised for inference by ONNX Runtime \(1 com.microsoft"),
    "quantised": (_with(_quantised), r"quantised \(1 QLinearConv\).* export the float model"),
    "loop": (_with(_loop), r"model has loops \(1 Loop\)"),
    "lists": (_with(_lists), "works on lists of tensors"),
    "dangling": (_with(_dangling), "reads 'nothing', which nothing before it gives"),
    "twice": (_with(_twice), "two nodes give 'a'"),
    "contradiction": (_with(_contradiction), "a MatMul, does not follow ONNX's rules"),
    "values": (_with(_wrong_values), "weight 'b' holds other values than its shape says"),
    "untrained": (_with(_untrained), "it has nothing to train"),
    "huge": (_with(_huge), "the file is corrupt"),
    "huge input": (_with(_huge_input), r"input 'x' is a tensor of the shape \[9223372036854775807"),
    "no such axis": (_with(_no_such_axis), r"its axis is 2, and its input has 2 dimensions"),
    "few terms": (_with(_few_terms), "has 1 terms in its equation b'ij' and 2 inputs"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_one_line(tmp_path: Path, name: str) -> None:
    data, words = BAD[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(GraphError, match=words) as raised:
        read_onnx(path)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(f"{path}: ")


def test_an_equation_that_inference_does_not_return_from_is_refused(tmp_path: Path) -> None:
    """Of onnx 1.23: two ellipses in a term."""
    node = helper.make_node("Einsum", ["x", "w1"], ["y"], equation="......ii,...jj->...ij")
    model = small()
    del model.graph.node[:]
    model.graph.node.append(node)
    with pytest.raises(GraphError, match="which is none"):
        read_onnx(written(model, tmp_path))


@pytest.mark.parametrize("window", [3, 5])
def test_open_sizes_that_are_too_small_for_a_window_are_asked_for(
    window: int, tmp_path: Path
) -> None:
    """An open size counts as 1: a window of 3 gave -1, which is also what an unknown size is."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight("w", 8, 3, window, window)],
    )
    file = written(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path)
    with pytest.raises(GraphError, match=r"set them with --input x=\?x3x\?x\?, with a number"):
        read_onnx(file)
    read_onnx(file, options=ReadOptions(inputs={"x": (2, 3, 8, 8)}))
    with pytest.raises(GraphError, match="its inputs are too small for it"):
        read_onnx(file, options=ReadOptions(inputs={"x": (2, 3, 1, 1)}))


def test_a_damaged_file_gives_a_graph_or_our_error(tmp_path: Path) -> None:
    data = bytearray(small().SerializeToString())
    random = np.random.default_rng(1)
    path = tmp_path / "model.onnx"
    for _ in range(150):
        damaged = bytearray(data)
        for at in random.integers(0, len(data), 3).tolist():
            damaged[at] = int(random.integers(0, 256))
        path.write_bytes(damaged)
        try:
            read_onnx(path)
        except GraphError as error:
            assert "\n" not in str(error)


def test_a_branch_with_a_known_condition_is_taken(tmp_path: Path) -> None:
    """As PyTorch's older exporter writes a squeeze."""
    branches = {
        name: helper.make_graph(
            [helper.make_node(op, ["r"], [f"{name}_out"])], name, [],
            [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)],
        )
        for name, op in (("then_branch", "Tanh"), ("else_branch", "Sigmoid"))
    }  # fmt: skip
    model = small()
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(False), "c"))
    model.graph.node[2].input[0] = "chosen"
    model.graph.node.insert(2, helper.make_node("If", ["c"], ["chosen"], **branches))
    kinds = read_onnx(written(model, tmp_path)).kinds
    assert "sigmoid_gradient" in kinds
    assert "tanh" not in kinds


def test_a_loss_in_the_file_is_the_loss(tmp_path: Path) -> None:
    model = small()
    loss = helper.make_node("SoftmaxCrossEntropyLoss", ["y", "t"], ["loss"])
    model.graph.node.append(loss)
    model.graph.input.append(helper.make_tensor_value_info("t", TensorProto.INT64, ["batch"]))
    model.graph.output[0].name = "loss"
    graph = read_onnx(written(model, tmp_path), options=ReadOptions(batch_size=4))
    without = read_onnx(written(small(), tmp_path), options=ReadOptions(batch_size=4))
    assert "the output loss is one number and counts as the loss" in sentences(graph.report.notes)
    assert sorted(graph.kinds) == sorted([*without.kinds, "fill"])


def test_attention_as_one_op(tmp_path: Path) -> None:
    """Two products forward and five backward, of [2 heads, 4 x 4 scores, 3 wide] in 5 samples."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"]),
        helper.make_node("Attention", ["q", "q", "q"], ["y"], q_num_heads=2, kv_num_heads=2),
    ]
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight("w", 6, 6)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    step = read_onnx(written(model, tmp_path), options=ReadOptions(batch_size=5))
    flops = cost_of_graph(step).flops
    scores = 5 * 2 * 4 * 4 * 3
    assert flops[step.nodes_of({"attention"})].tolist() == [2 * 2 * scores]
    assert flops[step.nodes_of({"attention_gradient"})].tolist() == [2 * 5 * scores]
    # The gradients by queries, keys and values are those of one tensor.
    assert step.kinds.count("add") == 2


def test_an_operator_without_a_gradient_is_refused_where_one_must_pass(tmp_path: Path) -> None:
    model = small()
    model.graph.node[1].CopyFrom(helper.make_node("Det", ["square"], ["r"]))
    model.graph.node.insert(1, helper.make_node("MatMul", ["a", "w3"], ["square"]))
    model.graph.initializer.append(weight("w3", 5, 4))
    del model.graph.node[3]
    model.graph.output[0].name = "r"
    with pytest.raises(GraphError, match="no gradient of these operators: 1 Det"):
        read_onnx(written(model, tmp_path), options=ReadOptions(batch_size=4))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_the_models_in_onnx_itself(name: str) -> None:
    """Files of 2017 with opset 9, whose weights are filled by ConstantOfShape."""
    graph = read_onnx(LIGHT / f"light_{name}.onnx")
    assert int(graph.parameters.elements.sum()) == PUBLISHED[name]
    assert graph.parameters.is_trained.all()
    assert not cost_of_graph(graph).unknown
    assert not graph.report.has_unknown


GENERATORS = Path(__file__).resolve().parents[2] / "data" / "generators"


@pytest.fixture(scope="module")
def recurrent_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of one LSTM whose weights are stored in five ways (`onnx_constant_gates.py`)."""
    folder = tmp_path_factory.mktemp("gates")
    subprocess.run([sys.executable, GENERATORS / "onnx_constant_gates.py", folder], check=True)
    return folder


@pytest.mark.parametrize("name", ["constants", "in_if", "gates", "gates_init"])
def test_weights_of_a_recurrent_layer_however_they_are_stored(
    recurrent_files: Path, name: str
) -> None:
    """Constants that are cut, joined and turned are weights; equal branches are no doubt."""
    plain = read_onnx(recurrent_files / "plain.onnx")
    graph = read_onnx(recurrent_files / f"{name}.onnx")
    assert graph.parameters.elements.sum() == 4 * 32 * (16 + 32) + 8 * 32 == 6400
    assert graph.op_types == plain.op_types
    assert graph.signatures == plain.signatures
    assert all(note.code != "branches_of_data" for note in graph.report.notes)


def test_branches_that_differ_are_a_doubt(recurrent_files: Path) -> None:
    """Another attribute in one of them is enough."""
    model = onnx.load(recurrent_files / "in_if.onnx")
    branch = next(each.g for each in model.graph.node[-1].attribute if each.name == "then_branch")
    branch.node[0].attribute.append(onnx.helper.make_attribute("clip", 5.0))
    onnx.save(model, recurrent_files / "other.onnx")
    report = read_onnx(recurrent_files / "other.onnx").report
    assert any(note.code == "branches_of_data" for note in report.notes)
