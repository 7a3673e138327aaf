"""Laws that the memory of a training step keeps, on public models of timm and transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from driple.graph.opgraph import OpGraph  # noqa: E402
from driple.graph.torch.step import StepOptions, traced_step  # noqa: E402
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops  # noqa: E402
from driple.memory.timeline import step_timeline  # noqa: E402

declare_torchvision_ops()
pytest.importorskip("timm")
pytest.importorskip("transformers")

_SMALL = {"num_hidden_layers": 3, "hidden_size": 128, "intermediate_size": 512, "vocab_size": 1000}


def _transformer(kind: str, trained: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import transformers

        config = getattr(transformers, kind)(**_SMALL, num_attention_heads=4, use_cache=False)
        module: nn.Module = getattr(transformers, trained)(config)
        return module.train()

    return make


def _timm(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import timm

        module: nn.Module = timm.create_model(name).train()
        return module

    return make


def _tokens(samples: int) -> dict[str, Tensor]:
    tokens = torch.zeros(samples, 64, dtype=torch.int64)
    return {"input_ids": tokens, "labels": tokens}


def _images(side: int) -> Callable[[int], Tensor]:
    return lambda samples: torch.zeros(samples, 3, side, side)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Any]]] = {
    "resnet18": (_timm("resnet18"), _images(96)),
    "mobilenetv3_small_100": (_timm("mobilenetv3_small_100"), _images(96)),
    "vit_tiny": (_timm("vit_tiny_patch16_224"), _images(224)),
    "BERT": (_transformer("BertConfig", "BertForMaskedLM"), _tokens),
    "Llama": (_transformer("LlamaConfig", "LlamaForCausalLM"), _tokens),
}
ALL = pytest.mark.parametrize("name", list(MODELS))


def _loss(outputs: Any) -> Tensor:
    loss = getattr(outputs, "loss", None)
    value: Tensor = outputs.float().square().mean() if loss is None else loss
    return value


def _traced(name: str, samples: int = 8, frozen: str = "", **options: Any) -> OpGraph:
    from driple.jobs.pytorch.whole_sequences import whole_sequences

    make, batch = MODELS[name]
    with torch.device("meta"):
        model, inputs = make(), batch(samples)
    for path, parameter in model.named_parameters():
        parameter.requires_grad_(not frozen or frozen not in path)
    with whole_sequences():
        return traced_step(model, inputs, _loss, StepOptions(**options))


def _peak(name: str, **options: Any) -> int:
    return step_timeline(_traced(name, **options)).peak_bytes


def _elements(name: str) -> list[int]:
    with torch.device("meta"):
        return [one.numel() for one in MODELS[name][0]().parameters()]


@ALL
@pytest.mark.parametrize(
    ("optimizer", "precision", "states", "width"),
    [("adamw", "fp32", 2, 4), ("momentum", "fp32", 1, 4), ("sgd", "fp32", 0, 4),
     ("adamw", "amp-bf16", 2, 4), ("adamw", "bf16", 2, 2), ("lion", "fp32", 1, 4)],
)  # fmt: skip
def test_model_states_by_formula(
    name: str, optimizer: str, precision: str, states: int, width: int
) -> None:
    """Parameters and gradients of `width` bytes an element, and one to two states of as many."""
    graph = _traced(name, optimizer=optimizer, precision=precision)
    elements = sum(_elements(name))
    parameters = graph.parameters
    assert parameters.nbytes.sum() == width * elements
    assert graph.update.state_bytes == states * width * elements
    without = step_timeline(graph, rounding=1).nbytes
    assert without[-1, 1] == width * elements, "gradients at the update"
    assert (without[:, 2] == states * width * elements).all()


@ALL
def test_frozen_parameters_have_neither_gradients_nor_states(name: str) -> None:
    """As with LoRA: only what is trained counts."""
    part = "layer" if name not in ("mobilenetv3_small_100", "vit_tiny") else "blocks"
    graph = _traced(name, frozen=part, optimizer="adamw")
    with torch.device("meta"):
        named = list(MODELS[name][0]().named_parameters())
    trained = sum(one.nbytes for path, one in named if part not in path)
    assert 0 < trained < sum(one.nbytes for _, one in named)
    timeline = step_timeline(graph, rounding=1)
    assert timeline.nbytes[-1, 1] == trained
    assert graph.update.state_bytes == 2 * trained
    assert graph.update.temporary_bytes == trained


@ALL
@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "bf16"])
def test_checkpointing_never_needs_more(name: str, precision: str) -> None:
    """All blocks computed again at most as much as some of their results, and these as none."""
    none, selective, full = (
        _peak(name, activation_checkpointing=mode, precision=precision, optimizer="sgd")
        for mode in ("none", "selective", "full")
    )
    assert full <= selective <= none


@ALL
def test_half_the_batch_never_needs_more(name: str) -> None:
    """From 32 samples down to 2."""
    peaks = [_peak(name, samples=samples) for samples in (2, 4, 8, 16, 32)]
    assert peaks == sorted(peaks)
    assert peaks[-1] > peaks[0]


@ALL
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adamw"])
def test_accumulation_never_needs_less_than_one_pass(name: str, optimizer: str) -> None:
    """Its gradients are there in the forward pass."""
    single, two, eight = (
        _peak(name, grad_accumulation=passes, optimizer=optimizer) for passes in (1, 2, 8)
    )
    assert single <= two == eight


@ALL
def test_a_forward_pass_needs_less_than_training(name: str) -> None:
    """It keeps nothing for a backward pass."""
    assert _peak(name, task="forward") < _peak(name, optimizer="sgd")


@ALL
def test_lower_precision_needs_less(name: str) -> None:
    """The whole model in two bytes an element."""
    assert _peak(name, precision="bf16") < _peak(name)
