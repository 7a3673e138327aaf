"""FLOPs of traced steps of transformers' models, against PyTorch's own counter."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.step_facts import Phase, TensorRole
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.options import ActivationCheckpointing
from driple.graph.torch.step import StepOptions, traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.jobs.pytorch.whole_sequences import whole_sequences
from tests.work import num_calls

declare_torchvision_ops()  # before transformers, which imports torchvision

import transformers  # noqa: E402

SMALL = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "vocab_size": 500,
}  # fmt: skip
TWO, LENGTH = 2, 32
MODES: tuple[ActivationCheckpointing, ...] = ("none", "selective", "full")


def language_model() -> dict[str, torch.Tensor]:
    tokens = torch.zeros(TWO, LENGTH, dtype=torch.int64)
    return {"input_ids": tokens, "labels": tokens}


def classes() -> torch.Tensor:
    return torch.zeros(TWO, dtype=torch.int64)


def images() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.zeros(TWO, 3, 64, 64), "labels": classes()}


Case = tuple[str, dict[str, Any], Callable[[], dict[str, torch.Tensor]]]
CASES: list[Case] = [
    ("BertForMaskedLM", SMALL, language_model),
    (
        "RobertaForSequenceClassification",
        SMALL,
        lambda: {"input_ids": torch.zeros(TWO, LENGTH, dtype=torch.int64), "labels": classes()},
    ),
    ("GPT2LMHeadModel", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500},
     language_model),
    ("LlamaForCausalLM", {**SMALL, "num_key_value_heads": 2}, language_model),
    ("MistralForCausalLM", {**SMALL, "num_key_value_heads": 2}, language_model),
    ("MixtralForCausalLM", {**SMALL, "num_key_value_heads": 2, "num_local_experts": 4},
     language_model),
    (
        "T5ForConditionalGeneration",
        {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
         "vocab_size": 500, "decoder_start_token_id": 0},
        language_model,
    ),
    ("ViTForImageClassification", {**SMALL, "image_size": 64}, images),
    (
        "SwinForImageClassification",
        {"image_size": 64, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4],
         "window_size": 4},
        images,
    ),
    (
        "WhisperForConditionalGeneration",
        {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
         "num_mel_bins": 80, "vocab_size": 500, "pad_token_id": 0, "bos_token_id": 0,
         "eos_token_id": 0, "decoder_start_token_id": 0},
        lambda: {"input_features": torch.zeros(TWO, 80, 3000),
                 "labels": torch.zeros(TWO, 16, dtype=torch.int64)},
    ),
]  # fmt: skip
EXPERTS = 2 * TWO * LENGTH * 2 * (64 * 256 + 128 * 64)  # 2 layers, 2 experts a token, 2 products


def built(case: Case) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    name, values, batch = case
    model_class = getattr(transformers, name)
    with torch.device("meta"):
        return model_class(model_class.config_class(**values)).train(), batch()


def products(graph: OpGraph) -> float:
    cost = cost_of_graph(graph)
    kinds = zip(cost.flops.tolist(), graph.kinds, strict=True)
    return sum(flops for flops, kind in kinds if family_of(kind) in PRODUCT_FAMILIES)


@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_flops_of_forward_and_backward_are_those_that_torch_counts(case: Case) -> None:
    """Equal, but for the scores above the diagonal of a causal mask, which flash skips.

    torch does not count products of groups of experts: 2 m n k, forward and twice backward.
    """
    model, batch = built(case)
    graph = traced_step(model, batch, None, StepOptions(precision="amp-bf16"))
    counter = FlopCounterMode(display=False)
    with gpu_autocast(), counter:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
    expected = counter.get_total_flops()
    if case[0].startswith("Mixtral"):
        expected += 3 * 2 * EXPERTS
    ours = products(graph)
    assert 0.95 * expected < ours <= expected
    if not any("causal" in dict(op.numbers) for op in graph.signatures):
        assert ours == expected
    assert not cost_of_graph(graph).unknown
    assert (graph.module_of >= 0).mean() > 0.98
    assert graph.kinds.count("attention") == graph.kinds.count("attention_gradient") > 0
    trained = [one for one in model.parameters() if one.requires_grad]
    assert len(graph.parameters.gradients) == len(trained)


@pytest.mark.parametrize("case", [CASES[2], CASES[3]], ids=["GPT2", "Llama"])
def test_checkpointing_follows_the_blocks_of_the_model(case: Case) -> None:
    """`full` computes each block again, `selective` no product and no attention."""
    model, batch = built(case)
    with whole_sequences():
        plain, selective, full = (
            traced_step(
                model,
                batch,
                None,
                StepOptions(precision="amp-bf16", activation_checkpointing=mode),
            )
            for mode in MODES
        )

    def again(graph: OpGraph, kind: str) -> int:
        return int((graph.nodes_of({kind}) & (graph.phases == Phase.RECOMPUTE)).sum())

    assert again(full, "attention") == 2
    assert again(full, "matmul") > 6
    assert again(selective, "attention") == again(selective, "matmul") == 0
    kept = [
        int(one.lifetimes.nbytes[one.lifetimes.roles == TensorRole.ACTIVATION].sum())
        for one in (plain, selective, full)
    ]
    assert kept[0] > kept[1] > kept[2]
    assert products(plain) == products(selective) < products(full)


def test_a_model_of_70_billion_parameters_is_read_without_its_memory() -> None:
    """The shape of Llama 2 70B with a tenth of its layers; all 80 take ten times as long."""
    config = transformers.LlamaConfig(
        hidden_size=8192, intermediate_size=28672, num_hidden_layers=8, num_attention_heads=64,
        num_key_value_heads=8, vocab_size=32000,
    )  # fmt: skip
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).train()
        tokens = torch.zeros(1, 2048, dtype=torch.int64)
    batch = {"input_ids": tokens, "labels": tokens}
    graph = traced_step(model, batch, None, StepOptions(precision="bf16", optimizer="adamw"))
    count = sum(one.numel() for one in model.parameters())
    assert count == 2 * 32000 * 8192 + 8 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672
                                            + 2 * 8192) + 8192  # fmt: skip
    assert graph.update.state_bytes == 2 * 2 * count
    assert products(graph) == pytest.approx(6 * 2048 * (count - 32000 * 8192), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values", "limit"),
    [
        ("GPT2LMHeadModel", {}, 2_000_000),
        (
            "LlamaForCausalLM",
            {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
             "num_attention_heads": 64, "num_key_value_heads": 8},
            14_000_000,
        ),
    ],
)  # fmt: skip
def test_large_models_are_read_in_seconds_of_one_core(
    name: str, values: dict[str, Any], limit: int
) -> None:
    """Build and trace together, in calls: about a million a second."""
    read_large(name, {**values, "num_hidden_layers": 1})  # what is imported on the way is no work
    assert num_calls(lambda: read_large(name, values)) < limit
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2e6  # KB


def read_large(name: str, values: dict[str, Any]) -> None:
    model_class = getattr(transformers, name)
    with torch.device("meta"):
        model = model_class(model_class.config_class(**values)).train()
        tokens = torch.zeros(1, 1024, dtype=torch.int64)
    batch = {"input_ids": tokens, "labels": tokens}
    traced_step(model, batch, None, StepOptions(precision="amp-bf16", optimizer="adamw"))
