"""Latent attention under tensor parallelism, counted by hand: latents whole, heads shared out."""

from __future__ import annotations

from collections import Counter

import pytest

from driple.graph.cost import cost_of_graph
from driple.step.plan import execution_order
from driple.step.step_flow import StepShard
from driple.step.tensor_shard import tensor_shard
from tests.step.mixtures import (
    HEADS,
    LATENT,
    LAYERS,
    PLAIN,
    ROTARY,
    SAMPLES,
    TOKENS,
    TYPE_BYTES,
    VALUES,
    WIDTH,
    latent,
)

WHOLE = {
    "q_a_proj": WIDTH * LATENT,
    "q_a_layernorm": LATENT,
    "kv_a_proj_with_mqa": WIDTH * (LATENT + ROTARY),
    "kv_a_layernorm": LATENT,
}
"""Elements that every device has."""
BY_HEADS = {
    "q_b_proj": LATENT * HEADS * (PLAIN + ROTARY),
    "kv_b_proj": LATENT * HEADS * (PLAIN + VALUES),
    "o_proj": HEADS * VALUES * WIDTH,
}
"""Elements of which a device has those of its heads."""


def shard_of(degree: int) -> StepShard:
    return tensor_shard(latent(), degree, execution_order(latent()))


@pytest.mark.parametrize("degree", [2, 4])
def test_parameters_of_a_device(degree: int) -> None:
    table = shard_of(degree).graph.parameters
    counted = WHOLE | {name: size // degree for name, size in BY_HEADS.items()}
    for layer in range(LAYERS):
        before = f"model.layers.{layer}.self_attn."
        nbytes_of = {
            name.removeprefix(before).removesuffix(".weight"): nbytes
            for name, nbytes in zip(table.names, table.nbytes.tolist(), strict=True)
            if name.startswith(before)
        }
        assert nbytes_of == {name: TYPE_BYTES * size for name, size in counted.items()}


@pytest.mark.parametrize("degree", [2, 4])
def test_flops_of_a_device(degree: int) -> None:
    """Latents are computed on a share of the tokens, so that all products are shared out."""
    graph = shard_of(degree).graph
    flops = cost_of_graph(graph).flops
    for name in ("q_a_proj", "kv_a_proj_with_mqa", *BY_HEADS):
        size = (WHOLE | BY_HEADS)[name]
        for layer in range(LAYERS):
            module = graph.modules.index(f"model.layers.{layer}.self_attn.{name}")
            products = [
                flops[node]
                for node in range(graph.num_nodes)
                if graph.module_of[node] == module
                and graph.signatures[graph.signature_of[node]].kind == "matmul"
            ]
            # Forward, gradient of the input, gradient of the matrix: 2 FLOPs an element and token.
            assert products == [2 * SAMPLES * TOKENS * size / degree] * 3
    attention = [
        tuple(op.inputs[0].shape or ()) for op in graph.signatures if "attention" in op.kind
    ]
    columns = PLAIN + ROTARY
    assert set(attention) == {(SAMPLES, HEADS // degree, TOKENS, columns)}


@pytest.mark.parametrize("degree", [2, 4])
def test_sums_are_of_latents_in_the_backward_pass(degree: int) -> None:
    """Of hidden width: the embedding, two a layer forward; the head, one a layer backward."""
    token_bytes = SAMPLES * TOKENS * TYPE_BYTES
    summed = Counter(
        exchange.nbytes
        for exchange in shard_of(degree).exchanges
        if exchange.kind == "reduce_scatter"
    )
    assert summed == {
        token_bytes * WIDTH: 3 * LAYERS + 2,
        token_bytes * LATENT: 2 * LAYERS,  # of queries; of keys and values
        token_bytes * ROTARY: LAYERS,  # of the key that all heads share
    }
