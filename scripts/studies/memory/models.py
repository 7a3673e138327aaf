"""Models of torchvision, timm and transformers for the check of allocated bytes: small ones.

    MODELS["resnet50"].make() -> a training step's model; .batch() -> its batch

None of them was made here. Sizes are such that a step on one core of a CPU takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["MODELS", "StudyModel"]

_TOKENS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyModel:
    """One model.

    Attributes:
        library: that defines it.
        make: builds it in training mode.
        batch: makes a batch: images and labels, or arguments by name.
        checkpoint: turns the library's own activation checkpointing on; None if it has none.
    """

    library: str
    make: Callable[[], nn.Module]
    batch: Callable[[], Any]
    checkpoint: Callable[[Any], None] | None = None


def loss_of(outputs: Any) -> Tensor:
    """The model's own loss, or the mean of what it returns."""
    loss = getattr(outputs, "loss", None)
    if isinstance(loss, Tensor):
        return loss
    if isinstance(outputs, Mapping):
        outputs = next(iter(outputs.values()))
    if hasattr(outputs, "logits"):
        outputs = outputs.logits
    output: Tensor = outputs.float()
    if output.dim() == 2:  # scores of classes
        labels = torch.zeros(len(output), dtype=torch.int64, device=output.device)
        return nn.functional.cross_entropy(output, labels)
    return output.square().mean()


def _images(samples: int, side: int) -> Tensor:
    return torch.rand(samples, 3, side, side)


def _vision(name: str, samples: int, side: int = 64, folder: str = "", **values: Any) -> StudyModel:
    def make() -> nn.Module:
        import torchvision

        models = getattr(torchvision.models, folder) if folder else torchvision.models
        model: nn.Module = getattr(models, name)(**values)
        return model.train()

    shape = (3, 8, side, side) if folder == "video" else (3, side, side)
    return StudyModel(library="torchvision", make=make, batch=lambda: torch.rand(samples, *shape))


def _timm(name: str, samples: int, side: int, **values: Any) -> StudyModel:
    def make() -> nn.Module:
        import timm

        model: nn.Module = timm.create_model(name, **values)
        return model.train()

    return StudyModel(
        library="timm",
        make=make,
        batch=partial(_images, samples, side),
        checkpoint=lambda model: model.set_grad_checkpointing(),
    )


def _text(kind: str, trained: str, samples: int, batch: Any = None, **values: Any) -> StudyModel:
    def make() -> nn.Module:
        import transformers

        config = getattr(transformers, kind)(**values)
        if hasattr(config, "use_cache"):
            config.use_cache = False
        model: nn.Module = getattr(transformers, trained)(config)
        return model.train()

    def tokens() -> dict[str, Tensor]:
        ids = torch.randint(3, 500, (samples, _TOKENS))
        return {"input_ids": ids, "labels": ids.clone()}

    def checkpoint(model: Any) -> None:
        model.gradient_checkpointing_enable({"use_reentrant": False})

    return StudyModel(
        library="transformers",
        make=make,
        batch=tokens if batch is None else partial(batch, samples),
        checkpoint=checkpoint,
    )


def _speech(samples: int) -> dict[str, Tensor]:
    return {
        "input_features": torch.rand(samples, 80, 200),
        "labels": torch.randint(3, 500, (samples, 32)),
    }


def _labelled_images(samples: int) -> dict[str, Tensor]:
    return {
        "pixel_values": torch.rand(samples, 3, 64, 64),
        "labels": torch.zeros(samples, dtype=torch.int64),
    }


def _labelled_texts(samples: int) -> dict[str, Tensor]:
    return {
        "input_ids": torch.randint(3, 500, (samples, _TOKENS)),
        "labels": torch.zeros(samples, dtype=torch.int64),
    }


_SMALL = {"num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 1024,
          "num_attention_heads": 4, "vocab_size": 4000}  # fmt: skip
_GROUPED = {**_SMALL, "num_key_value_heads": 2}

MODELS: Mapping[str, StudyModel] = {
    "resnet50": _vision("resnet50", 8),
    "squeezenet1_1": _vision("squeezenet1_1", 16),
    "googlenet": _vision("googlenet", 8, aux_logits=False, init_weights=False),
    "densenet121": _vision("densenet121", 8),
    "mobilenet_v3_large": _vision("mobilenet_v3_large", 16),
    "efficientnet_b0": _vision("efficientnet_b0", 8),
    "convnext_tiny": _vision("convnext_tiny", 8),
    "swin_t": _vision("swin_t", 8),
    "regnet_y_800mf": _vision("regnet_y_800mf", 8),
    "shufflenet_v2_x1_0": _vision("shufflenet_v2_x1_0", 16),
    "fcn_resnet50": _vision(
        "fcn_resnet50", 2, 96, "segmentation", weights=None, weights_backbone=None
    ),
    "r3d_18": _vision("r3d_18", 2, 48, "video"),
    "deit_tiny": _timm("deit_tiny_patch16_224", 4, 224),
    "mixer_s32": _timm("mixer_s32_224", 8, 224),
    "mobilevit_s": _timm("mobilevit_s", 4, 128),
    "poolformer_s12": _timm("poolformer_s12", 8, 96),
    "nfnet_l0": _timm("nfnet_l0", 4, 96),
    "resmlp_12": _timm("resmlp_12_224", 4, 224),
    "BERT": _text("BertConfig", "BertForMaskedLM", 8, **_SMALL),
    "GPT-2": _text("GPT2Config", "GPT2LMHeadModel", 8, n_layer=4, n_embd=256, n_head=4,
                   vocab_size=4000),
    "Llama": _text("LlamaConfig", "LlamaForCausalLM", 8, **_GROUPED),
    "Qwen2": _text("Qwen2Config", "Qwen2ForCausalLM", 8, **_GROUPED),
    "T5": _text("T5Config", "T5ForConditionalGeneration", 8, num_layers=3, d_model=256, d_ff=1024,
                num_heads=4, vocab_size=4000, decoder_start_token_id=0),
    "OPT": _text("OPTConfig", "OPTForCausalLM", 8, num_hidden_layers=4, hidden_size=256,
                 ffn_dim=1024, num_attention_heads=4, vocab_size=4000,
                 word_embed_proj_dim=256),
    "DistilBERT": _text("DistilBertConfig", "DistilBertForSequenceClassification", 8,
                        _labelled_texts, n_layers=4, dim=256, hidden_dim=1024, n_heads=4,
                        vocab_size=4000),
    "ViT": _text("ViTConfig", "ViTForImageClassification", 8, _labelled_images,
                 num_hidden_layers=4, hidden_size=256, intermediate_size=1024,
                 num_attention_heads=4, image_size=64, patch_size=8),
    "Whisper": _text("WhisperConfig", "WhisperForConditionalGeneration", 4, _speech,
                     encoder_layers=2, decoder_layers=2, d_model=256, encoder_ffn_dim=1024,
                     decoder_ffn_dim=1024, encoder_attention_heads=4,
                     decoder_attention_heads=4, vocab_size=4000, max_source_positions=100,
  decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                     suppress_tokens=None, begin_suppress_tokens=None),
}  # fmt: skip
