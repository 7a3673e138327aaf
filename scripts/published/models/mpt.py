"""MPT of llm-foundry (scripts/train/benchmarking), flash attention, fused norm and loss.

    tokens + learned positions -> blocks of norm, attention, norm, 4 x wide layer -> norm -> logits

Assumed: weights and activations in bfloat16, as FSDP's mixed precision keeps them; the fused cross
entropy of flash-attention reads logits in bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["MPT"]

# Layers, width, heads: scripts/train/yamls/pretrain/mpt-*.yaml.
_SIZES = {
    "mpt-125m": (12, 768, 12), "mpt-350m": (24, 1024, 16), "mpt-760m": (24, 1536, 12),
    "mpt-1b": (24, 2048, 16), "mpt-3b": (32, 2560, 20), "mpt-7b": (32, 4096, 32),
    "mpt-13b": (40, 5120, 40), "mpt-30b": (48, 7168, 56), "mpt-70b": (80, 8192, 64),
}  # fmt: skip
_VOCABULARY = 50_368


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.Wqkv, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up_proj, self.down_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.Wqkv(self.norm_1(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = (one.transpose(1, 2) for one in heads.unbind(2))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out_proj(mixed.transpose(1, 2).reshape(batch, length, width))
        output: Tensor = x + self.down_proj(nn.functional.gelu(self.up_proj(self.norm_2(x))))
        return output


class Mpt(nn.Module):
    """Tokens [n, length] to logits [n, length, vocabulary]; the embedding is the last layer too."""

    def __init__(self, layers: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(_VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm_f = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for block in self.blocks:
            x = block(x)
        return nn.functional.linear(self.norm_f(x), self.wte.weight)


def _built(sizes: tuple[int, int, int], batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = Mpt(*sizes, size)
    tokens = meta_tokens(batch_size, size)

    def loss(logits: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    return Built(model=model, batch=tokens, loss=loss)


MPT: Mapping[str, Definition] = {
    name: Definition(
        build=partial(_built, sizes),
        size=2048,
        optimizer="adamw",
        half="bf16",
        clip_gradients=True,
        units=2048,
        assumed="weights in bfloat16 under FSDP; layers have biases",
    )
    for name, sizes in _SIZES.items()
}
