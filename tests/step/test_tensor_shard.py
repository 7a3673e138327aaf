"""Megatron's split on models of transformers: two sums in each half of a block, no work left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.step.plan import execution_order
from driple.step.tensor_shard import tensor_shard

LAYERS, WIDTH, HEADS, WORDS = 2, 64, 4, 128
_SIZES = {
    "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "vocab_size": WORDS,
}  # fmt: skip
_OPT = {
    "hidden_size": WIDTH, "ffn_dim": 2 * WIDTH, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "vocab_size": WORDS, "word_embed_proj_dim": WIDTH,
}  # fmt: skip
_BLOOM = {"hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "vocab_size": WORDS}
_EACH = 4 * LAYERS + 2
_PRODUCTS = frozenset({"matmul", "batch_matmul", "attention", "attention_gradient"})


def step_of(config: str, values: dict[str, Any], head: str) -> OpGraph:
    """The training step of a model of transformers, 2 samples of 16 tokens."""
    transformers = pytest.importorskip("transformers")
    import torch

    from driple.jobs.pytorch.modules import job_of_module
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    known = getattr(transformers, config)(**values, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    tokens = torch.zeros(2, 16, dtype=torch.int64)
    batch = {"input_ids": tokens, "labels": tokens}
    if "Question" in head:
        place = tokens[:, 0]
        batch = {"input_ids": tokens, "start_positions": place, "end_positions": place}
    return job_of_module(getattr(transformers, head)(known), batch, precision="bf16").graph


@pytest.mark.parametrize(
    ("config", "values", "head", "sums"),
    [
        # A table of positions larger than that of words.
        ("OPTConfig", _OPT, "OPTForCausalLM", _EACH),
        ("BloomConfig", _BLOOM, "BloomForCausalLM", _EACH),
        # Norms of queries and keys, gated units.
        ("Qwen3Config", {**_SIZES, "num_key_value_heads": HEADS, "head_dim": 16},
         "Qwen3ForCausalLM", _EACH),
        # Attention and the MLP beside each other: their sums travel together.
        ("PhiConfig", _SIZES, "PhiForCausalLM", 2 * LAYERS + 2),
        # No head of words: no sum before it.
        ("BertConfig", {**_SIZES, "max_position_embeddings": 32}, "BertForQuestionAnswering",
         4 * LAYERS + 1),
    ],
)  # fmt: skip
def test_families_of_transformers(
    config: str, values: dict[str, Any], head: str, sums: int
) -> None:
    graph = step_of(config, values, head)
    shard = tensor_shard(graph, HEADS, execution_order(graph))
    summed = [one.nbytes for one in shard.exchanges if one.kind == "reduce_scatter"]
    assert summed == [2.0 * 2 * 16 * WIDTH] * sums
    ops = [graph.signatures[i] for i in graph.signature_of.tolist()]
    heads = {"qa_outputs"}  # of two columns: every device has it whole
    split = [
        op.kind in _PRODUCTS and graph.modules[module] not in heads
        for op, module in zip(ops, graph.module_of.tolist(), strict=True)
    ]
    whole, part = (cost_of_graph(one).flops[split] for one in (graph, shard.graph))
    assert (HEADS * part).tolist() == whole.tolist()
    for whole_or_shard in (graph, shard.graph):
        assert whole_or_shard.sent_bytes == whole_or_shard.parameters.nbytes.sum()
    names = np.array(graph.parameters.names)
    tables = ("word_embeddings.weight", "embed_tokens.weight")
    words = [i for i, name in enumerate(names) if name.endswith(tables)]
    assert words
    assert (HEADS * shard.graph.parameters.nbytes[words]).tolist() == (
        graph.parameters.nbytes[words].tolist()
    )


def test_experts_and_routers_are_computed_on_shares_of_the_tokens() -> None:
    """They are not split by tp (expert_tensor_parallel_size 1): all else is, by columns or rows."""
    experts = step_of(
        "MixtralConfig",
        {**_SIZES, "num_local_experts": 4, "num_key_value_heads": HEADS},
        "MixtralForCausalLM",
    )
    shard = tensor_shard(experts, 2, execution_order(experts))
    table, own = experts.parameters, shard.graph.parameters
    for name, whole, part in zip(table.names, table.elements, own.elements, strict=True):
        is_split = not any(word in name for word in ("experts", "gate", "norm"))
        assert part * (2 if is_split else 1) == whole, name
    products = [experts.signatures[i].kind in _PRODUCTS for i in experts.signature_of.tolist()]
    whole, part = (cost_of_graph(one).flops[products].sum() for one in (experts, shard.graph))
    assert 2 * part == whole


def test_one_device_has_the_whole_step() -> None:
    graph = step_of("PhiConfig", _SIZES, "PhiForCausalLM")
    shard = tensor_shard(graph, 1, execution_order(graph))
    assert shard.graph is graph
    assert not shard.exchanges
