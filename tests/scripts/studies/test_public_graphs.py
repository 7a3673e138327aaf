"""Study public_graphs: the truth by TensorFlow on graphs whose figures are known by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow")

BATCH, INPUTS, HIDDEN = 8, 300, 200
# The gradient of the input is not computed: one product forward, one for the weights.
PRODUCT = 2 * BATCH * INPUTS * HIDDEN


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def _layer(server: str, worker: str, *, two_optimizers: bool = False) -> Any:
    """A fully connected layer with squared loss and SGD, as a GraphDef."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        with v1.device(server):
            weights = v1.get_variable("w", [INPUTS, HIDDEN], use_resource=False)
        with v1.device(worker):
            images = v1.placeholder(tf.float32, [None, INPUTS], name="images")
            loss = tf.reduce_mean(tf.square(tf.matmul(images, weights)))
            v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
            if two_optimizers:
                with v1.device(server):
                    other = v1.get_variable("other", [HIDDEN], use_resource=False)
                v1.train.AdamOptimizer().minimize(
                    loss + tf.reduce_sum(other), var_list=[other], name="small"
                )
        return graph.as_graph_def(add_shapes=True)


def _run(graph: Any, **options: Any) -> Any:
    from scripts.studies.public_graphs.truth import run_step, train_ops

    return run_step(graph, train_ops(graph)[0], batch=BATCH, **options)


def test_gradients_are_sent_and_weights_received() -> None:
    """One server: the gradient and the learning rate go there, the weights come."""
    truth = _run(_layer("/job:ps/task:0", "/job:worker/task:0"))
    assert truth.sent_bytes == pytest.approx(INPUTS * HIDDEN * 4, abs=16)
    assert truth.received_bytes == INPUTS * HIDDEN * 4
    assert truth.parameters == INPUTS * HIDDEN
    assert truth.worker_flops == pytest.approx(2 * PRODUCT, rel=0.02)
    assert truth.flops - truth.worker_flops == 2 * INPUTS * HIDDEN  # SGD, on the server


def test_variables_of_a_graph_without_devices_are_put_on_a_server() -> None:
    """A graph without servers has the traffic that it would have with one."""
    with_server = _run(_layer("/job:ps/task:0", "/job:worker/task:0"))
    without = _run(_layer("", ""))
    assert without.received_bytes == with_server.received_bytes
    assert without.sent_bytes == pytest.approx(with_server.sent_bytes, abs=16)
    assert without.flops == with_server.flops


def test_a_loop_counts_as_often_as_it_turns() -> None:
    """Five turns of a product in a while loop."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        weights = v1.get_variable("w", [HIDDEN, HIDDEN], use_resource=False)
        _, state = tf.while_loop(
            lambda turn, _: turn < 5,
            lambda turn, state: (turn + 1, tf.matmul(state, weights)),
            (tf.constant(0), tf.zeros([BATCH, HIDDEN])),
        )
        v1.assign_add(weights, tf.zeros([HIDDEN, HIDDEN]) + tf.reduce_sum(state), name="train")
    from scripts.studies.public_graphs.truth import run_step

    truth = run_step(graph.as_graph_def(), "train")
    assert truth.by_op["MatMul"] == 5 * 2 * BATCH * HIDDEN * HIDDEN


def test_channels_first_runs_on_the_cpu_with_the_same_flops() -> None:
    """A convolution with channels first has the FLOPs of its formula, in all three products."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        images = v1.placeholder(tf.float32, [BATCH, 3, 16, 16], name="images")
        filters = [
            v1.get_variable(f"w{i}", shape, use_resource=False)
            for i, shape in enumerate([[3, 3, 3, 4], [3, 3, 4, 4]])
        ]
        hidden = images
        for filter_ in filters:
            hidden = tf.nn.conv2d(hidden, filter_, 1, "SAME", data_format="NCHW")
        hidden = tf.nn.max_pool2d(hidden, 2, 2, "VALID", data_format="NCHW")
        v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(hidden), name="train")
    truth = _run(graph.as_graph_def())
    first, second = (2 * BATCH * 16 * 16 * 9 * channels * 4 for channels in (3, 4))
    assert truth.by_op["Conv2D"] == first + second
    assert truth.by_op["Conv2DBackpropFilter"] == first + second
    assert truth.by_op["Conv2DBackpropInput"] == second


def test_train_ops_come_with_the_largest_first() -> None:
    """Two optimizers are two train ops."""
    from scripts.studies.public_graphs.truth import train_ops

    assert train_ops(_layer("", "", two_optimizers=True)) == ["small", "train"] or train_ops(
        _layer("", "", two_optimizers=True)
    ) == ["train", "small"]


def test_an_input_without_a_shape_is_named() -> None:
    """The user has to give what the graph leaves open."""
    from scripts.studies.public_graphs.inputs import TruthError
    from scripts.studies.public_graphs.truth import run_step

    graph = _layer("", "")
    with pytest.raises(TruthError, match=r"images:0 .*has shape \[-1, 300\]; give one"):
        run_step(graph, "train")


def test_the_table_has_a_row_with_ratios(tmp_path: Path) -> None:
    """From files and choice.json to results and a table."""
    from google.protobuf import text_format

    from scripts.studies.public_graphs.report import data_row, table
    from scripts.studies.public_graphs.run import main, read_rows

    (tmp_path / "layer.pbtxt").write_text(
        text_format.MessageToString(_layer("/job:ps/task:0", "/job:worker/task:0"))
    )
    about = {"project": "a/b", "path": "x", "commit": "c" * 12, "licence": "MIT", "kind": "server"}
    (tmp_path / "choice.json").write_text(
        json.dumps([about | {"id": "layer", "file": "layer.pbtxt", "options": {"batch": BATCH}}])
    )
    results = tmp_path / "results.jsonl"
    assert main([str(tmp_path), "--results", str(results)]) == 0
    row = read_rows(results)["layer"]
    ratios = row.ratios()
    assert ratios is not None
    assert ratios == pytest.approx((1, 1, 1), rel=0.1)
    assert table([row]) == ["All three numbers are within 10 % for 1 of 1 graphs."]
    cells = data_row(row)
    assert (cells["project: file (commit)"], cells["kind"]) == ("a/b: x (ccccccc)", "server")
    assert row.driple is not None
    wrong = replace(row, driple=replace(row.driple, flops=2 * row.driple.flops))
    lines = table([row, wrong])
    assert lines[0] == "All three numbers are within 10 % for 1 of 2 graphs."
    assert lines[-1].startswith("| a/b: x (ccccccc) | server |")
