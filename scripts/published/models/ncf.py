"""NeuMF of NVIDIA's DeepLearningExamples (PyTorch/Recommendation/NCF), for MovieLens 20M."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["NCF"]

_USERS, _ITEMS, _FACTORS, _LAYERS, _DROPOUT = 138_493, 26_744, 64, (256, 256, 128, 64), 0.5


class NeuMf(nn.Module):
    """Users [n] and items [n] to one score of each pair, [n, 1] (He et al., 2017)."""

    def __init__(self) -> None:
        super().__init__()
        half = _LAYERS[0] // 2
        self.mf_user_embed = nn.Embedding(_USERS, _FACTORS)
        self.mf_item_embed = nn.Embedding(_ITEMS, _FACTORS)
        self.mlp_user_embed = nn.Embedding(_USERS, half)
        self.mlp_item_embed = nn.Embedding(_ITEMS, half)
        self.mlp = nn.ModuleList(nn.Linear(inner, outer) for inner, outer in pairwise(_LAYERS))
        self.final = nn.Linear(_LAYERS[-1] + _FACTORS, 1)

    def forward(self, user: Tensor, movie: Tensor) -> Tensor:
        """Scores."""
        factors = self.mf_user_embed(user) * self.mf_item_embed(movie)
        x = torch.cat((self.mlp_user_embed(user), self.mlp_item_embed(movie)), dim=1)
        for layer in self.mlp:
            x = nn.functional.dropout(nn.functional.relu(layer(x)), _DROPOUT, self.training)
        scores: Tensor = self.final(torch.cat((factors, x), dim=1))
        return scores


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = NeuMf()
        labels = torch.zeros(batch_size, 1)

    def loss(scores: Tensor) -> Tensor:
        entropy = nn.functional.binary_cross_entropy_with_logits
        return entropy(scores.float(), labels, reduction="none").view(-1).mean(0)

    batch = (meta_tokens(batch_size), meta_tokens(batch_size))
    return Built(model=model, batch=batch, loss=loss)


NCF: Mapping[str, Definition] = {
    "ncf": Definition(
        build=_built,
        optimizer="adam-fused",
        half="amp-fp16",
        parameters=31_832_577,
        assumed="embeddings have dense gradients; lambda's older rows used apex O2",
    )
}
