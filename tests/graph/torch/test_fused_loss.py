"""The fused loss of language models: logits are never kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.jobs.pytorch.whole_sequences import whole_sequences

declare_torchvision_ops()  # before transformers, which imports torchvision

import transformers  # noqa: E402

TOKENS, VOCABULARY, HIDDEN, TWO = 512, 4096, 64, 2
SIZES = {
    "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": VOCABULARY,
}  # fmt: skip


def model_of(kind: str, **more: Any) -> Any:
    known = getattr(transformers, kind)
    config = known.config_class(**{**SIZES, **more})
    config.use_cache = False
    with torch.device("meta"):
        return known(config)


def step(model: Any, **options: Any) -> OpGraph:
    tokens = torch.zeros(TWO, TOKENS, dtype=torch.int64, device="meta")
    batch = {"input_ids": tokens, "labels": tokens}
    with whole_sequences():
        return traced_step(model, batch, None, StepOptions(**options))


def largest(graph: OpGraph) -> int:
    """Bytes of the largest tensor that the step makes."""
    return int(graph.lifetimes.nbytes[graph.lifetimes.made_by >= 0].max())


def test_logits_are_never_whole() -> None:
    """A chunk's logits take as much as the inputs of the head, up to a power of two."""
    model = model_of("LlamaForCausalLM")
    assert largest(step(model)) >= 4 * TWO * TOKENS * VOCABULARY
    fused = step(model, fused_loss=True)
    chunk = 16  # 1,024 tokens in 64 parts: the vocabulary over the width
    sizes = [
        graph_input.shape
        for op in fused.signatures
        for graph_input in op.outputs
        if graph_input.shape and graph_input.shape[-1] == VOCABULARY
    ]
    assert sizes and {shape[0] for shape in sizes if shape != (HIDDEN,)} <= {chunk, VOCABULARY}
    assert largest(fused) == 4 * VOCABULARY * HIDDEN  # the gradient of the head


@pytest.mark.parametrize("tied", [True, False])
def test_the_same_parameters_are_trained(tied: bool) -> None:
    usual, fused = (
        step(model_of("LlamaForCausalLM", tie_word_embeddings=tied), fused_loss=on)
        for on in (False, True)
    )
    assert usual.parameters.names == fused.parameters.names
    assert len(usual.parameters.gradients) == len(fused.parameters.gradients)
    assert usual.sent_bytes == fused.sent_bytes


def test_the_model_computes_its_own_loss_afterwards() -> None:
    model = model_of("LlamaForCausalLM")
    before = step(model).num_nodes
    assert step(model, fused_loss=True).num_nodes != before
    assert step(model).num_nodes == before


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertModel"])
def test_other_models_are_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="causal language models of transformers"):
        step(model_of(kind), fused_loss=True)
