"""Thirty well-known models, as their published configurations state them.

MODELS: name, JOB (a name of timm, or a config.json of Hugging Face), samples and tokens of a step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MODELS", "KnownModel"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownModel:
    """A model and the step that it is trained with.

    Attributes:
        name: as people call it.
        timm: its name in timm; empty for a Hugging Face config.
        config: config.json; empty for timm.
        batch_size: samples of a device.
        seq_len: tokens of a sample; None for images.
    """

    name: str
    timm: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int
    seq_len: int | None = None


def _image(name: str, timm: str) -> KnownModel:
    return KnownModel(name=name, timm=timm, batch_size=32)


def _text(
    name: str, kind: str, architecture: str, batch: int, tokens: int, **sizes: object
) -> KnownModel:
    config = {"model_type": kind, "architectures": [architecture], **sizes}
    return KnownModel(name=name, config=config, batch_size=batch, seq_len=tokens)


def _bert(name: str, layers: int, width: int, heads: int) -> KnownModel:
    return _text(
        name, "bert", "BertForMaskedLM", 16, 512, num_hidden_layers=layers, hidden_size=width,
        num_attention_heads=heads, intermediate_size=4 * width, vocab_size=30522,
    )  # fmt: skip


def _gpt2(name: str, layers: int, width: int, heads: int) -> KnownModel:
    return _text(
        name, "gpt2", "GPT2LMHeadModel", 4, 1024, n_layer=layers, n_embd=width, n_head=heads,
        vocab_size=50257, n_positions=1024,
    )  # fmt: skip


def _llama_like(  # noqa: PLR0917  # columns of a table
    name: str, kind: str, layers: int, width: int, heads: int, groups: int, inner: int,
    words: int, **more: object,
) -> KnownModel:  # fmt: skip
    architecture = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "gemma": "Gemma"}
    return _text(
        name, kind, f"{architecture[kind]}ForCausalLM", 1, 2048, num_hidden_layers=layers,
        hidden_size=width, num_attention_heads=heads, num_key_value_heads=groups,
        intermediate_size=inner, vocab_size=words, max_position_embeddings=4096, **more,
    )  # fmt: skip


def _t5(name: str, layers: int, width: int, inner: int, heads: int) -> KnownModel:
    return _text(
        name, "t5", "T5ForConditionalGeneration", 8, 512, num_layers=layers, d_model=width,
        d_ff=inner, num_heads=heads, d_kv=64, vocab_size=32128,
    )  # fmt: skip


MODELS: tuple[KnownModel, ...] = (
    _image("ResNet-18", "resnet18"),
    _image("ResNet-50", "resnet50"),
    _image("ResNet-152", "resnet152"),
    _image("VGG-16", "vgg16"),
    _image("DenseNet-121", "densenet121"),
    _image("MobileNetV3-Large", "mobilenetv3_large_100"),
    _image("EfficientNet-B0", "efficientnet_b0"),
    _image("RegNetY-4GF", "regnety_040"),
    _image("ConvNeXt-T", "convnext_tiny"),
    _image("ConvNeXt-B", "convnext_base"),
    _image("Swin-T", "swin_tiny_patch4_window7_224"),
    _image("ViT-S/16", "vit_small_patch16_224"),
    _image("ViT-B/16", "vit_base_patch16_224"),
    _image("ViT-L/16", "vit_large_patch16_224"),
    _bert("BERT-base", 12, 768, 12),
    _bert("BERT-large", 24, 1024, 16),
    _text(
        "DistilBERT", "distilbert", "DistilBertForMaskedLM", 16, 512, n_layers=6, dim=768,
        n_heads=12, hidden_dim=3072, vocab_size=30522,
    ),
    _t5("T5-small", 6, 512, 2048, 8),
    _t5("T5-base", 12, 768, 3072, 12),
    _t5("T5-large", 24, 1024, 4096, 16),
    _gpt2("GPT-2", 12, 768, 12),
    _gpt2("GPT-2 medium", 24, 1024, 16),
    _gpt2("GPT-2 XL", 48, 1600, 25),
    _llama_like("Qwen2.5-0.5B", "qwen2", 24, 896, 14, 2, 4864, 151936, tie_word_embeddings=True),
    _llama_like("TinyLlama-1.1B", "llama", 22, 2048, 32, 4, 5632, 32000),
    _llama_like("Llama-3.2-1B", "llama", 16, 2048, 32, 8, 8192, 128256, tie_word_embeddings=True),
    _llama_like("Llama-3.2-3B", "llama", 28, 3072, 24, 8, 8192, 128256, tie_word_embeddings=True),
    _llama_like("Mistral-7B", "mistral", 32, 4096, 32, 8, 14336, 32000),
    _llama_like("Qwen2.5-7B", "qwen2", 28, 3584, 28, 4, 18944, 152064),
    _llama_like("Llama-3.1-8B", "llama", 32, 4096, 32, 8, 14336, 128256),
)  # fmt: skip
