"""Norms and gated activations in one kernel each, as Liger-Kernel has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.jobs.pytorch.whole_sequences import whole_sequences

declare_torchvision_ops()  # before transformers, which imports torchvision

import transformers  # noqa: E402

TWO, TOKENS, HIDDEN, WIDE, LAYERS = 2, 256, 64, 192, 3
SIZES = {
    "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": WIDE, "vocab_size": 32, "pad_token_id": 0,
}  # fmt: skip


def step(kind: str, **options: Any) -> OpGraph:
    known = getattr(transformers, kind)
    config = known.config_class(**SIZES)
    config.use_cache = False
    with torch.device("meta"):
        model = known(config)
    tokens = torch.zeros(TWO, TOKENS, dtype=torch.int64, device="meta")
    with whole_sequences():
        return traced_step(
            model, {"input_ids": tokens, "labels": tokens}, None, StepOptions(**options)
        )


def kept_in_the_middle(graph: OpGraph) -> int:
    """Bytes of the tensors of the forward pass that the backward pass reads."""
    lives = graph.lifetimes
    turn = int(np.flatnonzero(graph.phases == Phase.BACKWARD)[0])
    alive = (lives.made_by >= 0) & (lives.made_by < turn) & (lives.freed_after > turn)
    return int(lives.nbytes[alive & (lives.freed_after < graph.num_nodes)].sum())


@pytest.mark.parametrize("kind", ["LlamaForCausalLM", "Phi3ForCausalLM", "GemmaForCausalLM"])
def test_each_norm_is_one_kernel_forward_and_one_backward(kind: str) -> None:
    graph = step(kind, fused_kernels=True)
    kinds = Counter(graph.signatures[i].kind for i in graph.signature_of.tolist())
    assert kinds["rms_norm"] == kinds["rms_norm_gradient"] == 2 * LAYERS + 1
    assert not kinds["rsqrt"]
    assert not kinds["silu"] + kinds["gelu"]
    assert graph.num_nodes < step(kind).num_nodes


def test_fewer_tensors_are_kept() -> None:
    """Normalized values before their scale, and the activation of the gate, are not kept."""
    kept = 4 * TWO * TOKENS * ((2 * LAYERS + 1) * HIDDEN + LAYERS * WIDE)
    saved = kept_in_the_middle(step("LlamaForCausalLM"))
    saved -= kept_in_the_middle(step("LlamaForCausalLM", fused_kernels=True))
    assert saved == pytest.approx(kept, rel=0.05)


def test_the_model_is_as_it_was() -> None:
    config = transformers.LlamaConfig(**SIZES)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    tokens = torch.zeros(TWO, TOKENS, dtype=torch.int64, device="meta")
    with whole_sequences():
        traced_step(
            model, {"input_ids": tokens, "labels": tokens}, None, StepOptions(fused_kernels=True)
        )
    assert not any("forward" in vars(module) for module in model.modules())


def test_a_model_without_such_kernels_is_refused() -> None:
    model = torch.nn.Linear(2, 2, device="meta")
    batch = torch.empty(2, 2, device="meta")
    with pytest.raises(ConfigError, match="no RMSNorm"):
        traced_step(model, batch, torch.sum, StepOptions(fused_kernels=True))
