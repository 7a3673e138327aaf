"""A BERT-like transformer (Devlin et al., NAACL 2019) that answers questions on a text.

As for SQuAD, the head says of every token whether the answer begins or ends there.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["BERT_SIZES", "Bert", "answer_loss"]

# Layers and width; a head of attention has 64 channels, the inner product is 4 times as wide.
BERT_SIZES = {"tiny": (2, 128), "base": (12, 768), "large": (24, 1024)}
_HEAD, _INNER = 64, 4
_VOCABULARY, _POSITIONS, _SEGMENTS = 30_522, 512, 2


class Bert(nn.Module):
    """Tokens [n, length], length up to 512, to begin and end logits [n, 2, length].

    Args:
        size: tiny, base or large.
        vocabulary: how many tokens there are.
    """

    def __init__(self, size: str = "large", vocabulary: int = _VOCABULARY) -> None:
        super().__init__()
        layers, width = BERT_SIZES[size]
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(_POSITIONS, width)
        self.segments = nn.Embedding(_SEGMENTS, width)
        self.norm = nn.Sequential(nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                width, width // _HEAD, _INNER * width, 0.1, "gelu", batch_first=True
            ),
            layers,
            enable_nested_tensor=False,
        )
        self.pooler = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Begin and end logits; the text has one segment, and its first token sums it up."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        embedded = self.tokens(tokens) + self.positions(places) + self.segments.weight[0]
        encoded = self.encoder(self.norm(embedded))
        summary = torch.tanh(self.pooler(encoded[:, :1]))
        logits: Tensor = self.head(encoded + summary).transpose(1, 2)
        return logits


def answer_loss(logits: Tensor, places: Tensor) -> Tensor:
    """Cross entropy of where an answer begins and ends; logits [n, 2, length], places [n, 2]."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), places.flatten())
