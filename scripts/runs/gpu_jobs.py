"""Jobs that `scripts/runs/measure_gpu.py` runs: models, batches, and how each is run.

    NAME = LIBRARY:MODEL --built--> model, arguments of its call, loss

Models of torchvision (`tv`), timm, and transformers (`hf`) by a configuration, with random weights,
so that nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.runs.gpu_survey import SURVEY

__all__ = ["JOBS", "GpuJob", "configured", "hugging_face"]

_HALF, _CAST = "bf16", "amp-bf16"


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuJob:
    """One job.

    Attributes:
        name: library and model, such as `timm:resnet50`.
        batch: samples.
        size: side of an image, or tokens of a sample.
        precision: as `--precision`.
        task: `train` or `forward`.
        optimizer: as `--optimizer`; empty for a forward pass.
        channels_last: whether model and images are in PyTorch's channels-last format.
        checkpointing: whether transformers' own activation checkpointing is on.
        compiled: whether the model is compiled by `torch.compile`.
    """

    name: str
    batch: int
    size: int = 224
    precision: str = _CAST
    task: str = "train"
    optimizer: str = "momentum"
    channels_last: bool = False
    checkpointing: bool = False
    compiled: bool = False

    def __post_init__(self) -> None:
        if self.task == "forward":
            object.__setattr__(self, "optimizer", "")


def hugging_face() -> Mapping[str, tuple[str, Mapping[str, Any], str]]:
    """Model type, what differs from its usual configuration, and class, by name."""
    base = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "intermediate_size": 3072}  # fmt: skip
    large = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    return {
        "bert-base": ("bert", {}, "BertForMaskedLM"),
        "bert-large": ("bert", {**large, "intermediate_size": 4096},
                       "BertForSequenceClassification"),
        "gpt2": ("gpt2", {}, "GPT2LMHeadModel"),
        "gpt2-medium": ("gpt2", {"n_embd": 1024, "n_layer": 24, "n_head": 16}, "GPT2LMHeadModel"),
        "opt-350m": ("opt", {**large, "ffn_dim": 4096, "word_embed_proj_dim": 512,
                             "do_layer_norm_before": False}, "OPTForCausalLM"),
        "llama-1b": ("llama", {
            "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
            "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
            "max_position_embeddings": 8192, "tie_word_embeddings": True}, "LlamaForCausalLM"),
        "qwen2-0.5b": ("qwen2", {
            "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
            "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
            "tie_word_embeddings": True}, "Qwen2ForCausalLM"),
        "deberta-v2-base": ("deberta-v2", {
            **base, "vocab_size": 128100, "relative_attention": True, "position_buckets": 256,
            "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"]},
            "DebertaV2ForSequenceClassification"),
        "distilbert": ("distilbert", {}, "DistilBertForMaskedLM"),
        "pythia-410m": ("gpt_neox", {
            **large, "vocab_size": 50304, "intermediate_size": 4096,
            "max_position_embeddings": 2048}, "GPTNeoXForCausalLM"),
        "electra-base": ("electra", {**base, "embedding_size": 768},
                         "ElectraForSequenceClassification"),
        "albert-base": ("albert", {"hidden_size": 768, "num_attention_heads": 12,
                                   "intermediate_size": 3072}, "AlbertForMaskedLM"),
    }  # fmt: skip


def configured(name: str) -> Any:
    """The configuration of a model of transformers, with its class.

    Args:
        name: one of `hugging_face()`.
    """
    import transformers

    kind, values, architecture = hugging_face()[name]
    config = transformers.AutoConfig.for_model(kind, **values)
    config.architectures = [architecture]
    return config


def _jobs() -> Sequence[GpuJob]:
    """All of them, the commonest first: what is left when time is up is the least."""
    jobs: list[GpuJob] = []

    def add(name: str, batches: Sequence[int], **values: Any) -> None:
        jobs.extend(GpuJob(name=name, batch=one, **values) for one in batches)

    _common(add)
    _vision(add)
    _language(add)
    _forward(add)
    _survey(add)
    _limits(add)
    return jobs


Add = Callable[..., None]


def _common(add: Add) -> None:
    add("tv:resnet50", (8, 64), precision="fp32")
    add("tv:resnet50", (32, 256))
    add("tv:resnet50", (256,), precision=_HALF, channels_last=True)
    add("tv:resnet50", (1, 64), precision="fp32", task="forward")
    add("tv:resnet50", (256,), precision=_HALF, task="forward", channels_last=True)
    add("hf:gpt2", (4, 16), size=1024, optimizer="adamw")
    add("hf:bert-base", (8, 64), size=128, precision="fp32", optimizer="adamw")
    add("hf:bert-large", (8, 32), size=512, optimizer="adamw")
    add("hf:llama-1b", (1, 4), size=2048, precision=_HALF, optimizer="adamw")
    add("hf:llama-1b", (4,), size=2048, precision=_HALF, optimizer="adamw", checkpointing=True)
    add("hf:qwen2-0.5b", (4,), size=1024, optimizer="adamw")


def _vision(add: Add) -> None:
    """Training of models of images."""
    add("timm:vit_base_patch16_224", (16, 128))
    add("timm:convnext_base", (64,))
    add("timm:efficientnet_b0", (32, 256), channels_last=True)
    add("tv:mobilenet_v3_large", (32, 256), precision="fp32")
    for name in ("convnext_base", "coatnet_0_rw_224", "rexnet_150", "resnest50d", "repvgg_b0"):
        add(f"timm:{name}", (64,), channels_last=True)
    for name in ("regnety_080", "ghostnetv2_100"):
        add(f"timm:{name}", (128,), channels_last=True)
    for name in ("swin_base_patch4_window7_224", "nf_resnet50", "deit3_large_patch16_224",
                 "xcit_small_12_p16_224", "inception_next_tiny", "poolformer_s24"):  # fmt: skip
        add(f"timm:{name}", (64,))
    for name in ("sequencer2d_s", "hrnet_w32", "maxvit_tiny_tf_224", "eva02_base_patch14_224",
                 "convmixer_768_32", "volo_d1_224"):  # fmt: skip
        add(f"timm:{name}", (32,))
    for name in ("mobilevit_s", "edgenext_small", "fastvit_sa12"):
        add(f"timm:{name}", (64,), size=256)
    for name in ("resnext50_32x4d", "dla60"):
        add(f"timm:{name}", (64,), precision="fp32")
    add("timm:levit_256", (128,))
    add("timm:tresnet_m", (128,), precision=_HALF, channels_last=True)
    add("timm:mixer_b16_224", (128,), precision=_HALF)
    add("timm:gmlp_s16_224", (64,), precision=_HALF)
    for name in ("vgg16", "densenet121", "swin_t", "vit_b_16", "squeezenet1_1"):
        add(f"tv:{name}", (64,), precision="fp32")
    add("tv:inception_v3", (64,), size=299, precision="fp32")
    add("tv:shufflenet_v2_x1_0", (128,), precision="fp32")
    add("tv:wide_resnet50_2", (64,), precision="tf32")
    add("tv:resnet152", (64,), channels_last=True)
    add("tv:efficientnet_b4", (32,), size=380, channels_last=True)
    add("tv:regnet_y_16gf", (32,))


def _language(add: Add) -> None:
    """Training of models of text."""
    half = {"precision": _HALF, "optimizer": "adamw"}
    add("hf:gpt2-medium", (8,), size=1024, **half)
    add("hf:gpt2-medium", (8,), size=1024, checkpointing=True, **half)
    add("hf:opt-350m", (8,), size=1024, optimizer="adamw")
    add("hf:pythia-410m", (4,), size=2048, **half)
    add("hf:deberta-v2-base", (16,), size=512, optimizer="adamw")
    add("hf:distilbert", (32,), size=128, optimizer="adamw")
    add("hf:electra-base", (32,), size=256, precision="tf32", optimizer="adamw")
    add("hf:albert-base", (32,), size=256, optimizer="adam")


def _forward(add: Add) -> None:
    for name, batch, channels_last in (
        ("timm:vit_base_patch16_224", 64, False), ("timm:convnext_base", 64, True),
        ("timm:swin_base_patch4_window7_224", 64, False),
        ("timm:vit_large_patch14_clip_224", 128, False),
    ):  # fmt: skip
        add(name, (batch,), precision=_HALF, task="forward", channels_last=channels_last)
    add("timm:efficientnet_b0", (64,), task="forward", channels_last=True)
    add("tv:mobilenet_v3_large", (1,), precision="fp32", task="forward")


def _limits(add: Add) -> None:
    """Near the limit of 80 GB, other batches, and compiled models."""
    add("timm:vit_large_patch16_224", (256, 384, 512), optimizer="adamw")
    add("timm:convnext_base", (384, 512, 640), optimizer="adamw")
    add("hf:bert-large", (64, 96, 128), size=512, optimizer="adamw")
    add("hf:llama-1b", (8, 12), size=2048, precision="fp32", optimizer="adamw")
    add("hf:llama-1b", (16, 24), size=2048, precision=_HALF, optimizer="adamw")
    add("hf:gpt2", (48, 64, 1, 2, 8, 32), size=1024, optimizer="adamw")
    add("tv:resnet50", (1024, 1280, 16, 64, 128), channels_last=True)
    add("tv:resnet50", (256,), channels_last=True, compiled=True)
    add("timm:vit_base_patch16_224", (64,), precision=_HALF, task="forward", compiled=True)
    add("hf:gpt2", (16,), size=1024, optimizer="adamw", compiled=True)


def _survey(add: Add) -> None:
    """Each family of models of images: the first model's training and forward pass, the second's.

    Precision and format of memory go in turns, so that each occurs with many families.
    """
    trained = (_CAST, _CAST, "amp-fp16", _CAST, "fp32")
    run = (_HALF, "fp32", "amp-fp16")
    families = list(SURVEY.values())
    for turn, models in enumerate(families):
        _one(add, models[0], trained[turn % 5], channels_last=turn % 4 > 1)
    for turn, models in enumerate(families):
        _one(add, models[0], run[turn % 3], channels_last=turn % 4 < 2, task="forward")
    for turn, models in enumerate(one for one in families if len(one) > 1):
        _one(add, models[1], trained[turn % 5], channels_last=turn % 4 > 1)


def _one(add: Add, model: tuple[str, int], precision: str, **values: Any) -> None:
    name, side = model
    batch = next(batch for least, batch in ((512, 8), (320, 24), (0, 64)) if side >= least)
    add(f"timm:{name}", (batch,), size=side, precision=precision, **values)


JOBS: Sequence[GpuJob] = _jobs()
