"""Fused recurrent ops and their gradients, built by TensorFlow, against the same layer unrolled.

The unrolled layer is one MatMul of [input, state] for each step; the profiler counts it and its
gradient.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from driple.graph import graph_from_graphdef_bytes
from driple.graph.cost import cost_of_graph
from tests.conftest import RunTensorFlow

BUILD = """
import base64, json
import tensorflow as tf
from tensorflow.python.framework import ops
import tensorflow.python.profiler.internal.flops_registry

v1, raw = tf.compat.v1, tf.raw_ops
STEPS, BATCH, INPUT, HIDDEN = 7, 16, 24, 40

def of(*shape): return v1.placeholder(tf.float32, shape)

def unrolled(gates):
    x, state = [of(BATCH, INPUT) for _ in range(STEPS)], of(BATCH, HIDDEN)
    weights = of(INPUT + HIDDEN, gates * HIDDEN)
    for one in x:
        made = tf.matmul(tf.concat([one, state], 1), weights)
        state = made[:, :HIDDEN]
    return state, [*x, weights]

def block(version):
    x, state, peephole = of(STEPS, BATCH, INPUT), of(BATCH, HIDDEN), of(HIDDEN)
    weights = of(INPUT + HIDDEN, 4 * HIDDEN)
    build = getattr(raw, "BlockLSTM" + version)
    made = build(seq_len_max=tf.constant(STEPS, tf.int64), x=x, cs_prev=state, h_prev=state,
                 w=weights, wci=peephole, wcf=peephole, wco=peephole, b=of(4 * HIDDEN),
                 **({} if version else dict(forget_bias=1.0)))
    return made.h, [x, weights]

def cudnn(version, mode):
    x, state, params = of(STEPS, BATCH, INPUT), of(1, BATCH, HIDDEN), of(None)
    more = dict(sequence_lengths=v1.placeholder(tf.int32, [BATCH])) if version == "V3" else {}
    made = getattr(raw, "CudnnRNN" + version)(
        input=x, input_h=state, input_c=state, params=params, rnn_mode=mode, **more)
    return made.output, [x, params]

def profiled(graph):
    found = [ops.get_stats_for_node_def(graph, op.node_def, "flops").value
             for op in graph.get_operations() if op.type == "MatMul"]
    return float(sum(found))

made = {}
CASES = {
    "unrolled 4": lambda: unrolled(4), "unrolled 3": lambda: unrolled(3),
    "unrolled 1": lambda: unrolled(1), "BlockLSTM": lambda: block(""),
    "BlockLSTMV2": lambda: block("V2"), "CudnnRNN lstm": lambda: cudnn("", "lstm"),
    "CudnnRNNV2 gru": lambda: cudnn("V2", "gru"), "CudnnRNNV3 lstm": lambda: cudnn("V3", "lstm"),
    "CudnnRNNV3 rnn_relu": lambda: cudnn("V3", "rnn_relu"),
}
for name, build in CASES.items():
    with v1.Graph().as_default() as graph:
        output, sources = build()
        tf.gradients(output, sources)
        data = graph.as_graph_def(add_shapes=True).SerializeToString()
        made[name] = [profiled(graph), base64.b64encode(data).decode()]
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def recorded(run_tensorflow: RunTensorFlow) -> Any:
    return run_tensorflow(BUILD)


@pytest.mark.parametrize(
    ("name", "gates"),
    [
        ("BlockLSTM", 4),
        ("BlockLSTMV2", 4),
        ("CudnnRNN lstm", 4),
        ("CudnnRNNV2 gru", 3),
        ("CudnnRNNV3 lstm", 4),
        ("CudnnRNNV3 rnn_relu", 1),
    ],
)
def test_a_fused_layer_costs_its_unrolled_products(
    recorded: dict[str, tuple[float, str]], name: str, gates: int
) -> None:
    """Forward and gradient together; exactly, but for the gradient of the first state."""
    graph = graph_from_graphdef_bytes(base64.b64decode(recorded[name][1]))
    cost = cost_of_graph(graph)
    fused = sum(
        flops
        for op_type, flops in zip(graph.op_types, cost.flops.tolist(), strict=True)
        if "RNN" in op_type or "LSTM" in op_type
    )
    assert not {one for one in cost.unknown if "RNN" in one or "LSTM" in one}
    assert fused == pytest.approx(recorded[f"unrolled {gates}"][0], rel=1e-6)
