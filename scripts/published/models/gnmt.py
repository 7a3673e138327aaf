"""GNMT v2 of NVIDIA's DeepLearningExamples (PyTorch/Translation/GNMT), 4 + 4 layers of LSTM.

    source words -> two-way LSTM, 3 LSTMs -> LSTM with Bahdanau's attention, 3 LSTMs -> words

Sequence first. A pair of sentences has 48 pieces on the mean (lambda's logs), which the source
counts; assumed: 26 on each side with the padding of their bucket.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["GNMT"]

_VOCABULARY, _WIDTH, _DROPOUT, _SMOOTHING = 32_320, 1024, 0.2, 0.1
_PIECES = 48


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear_q = nn.Linear(width, width, bias=False)
        self.linear_k = nn.Linear(width, width, bias=False)
        self.linear_att = nn.Parameter(torch.empty(width))
        self.normalize_scalar = nn.Parameter(torch.empty(1))
        self.normalize_bias = nn.Parameter(torch.empty(width))

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        keys, query = keys.transpose(0, 1), query.transpose(0, 1)
        asked, known = self.linear_q(query), self.linear_k(keys)
        shape = (*query.shape[:2], keys.shape[1], keys.shape[2])
        both = asked.unsqueeze(2).expand(shape) + known.unsqueeze(1).expand(shape)
        both = both + self.normalize_bias
        vector = self.linear_att / self.linear_att.norm() * self.normalize_scalar
        scores = torch.tanh(both).matmul(vector)
        scores = scores.masked_fill_(mask.unsqueeze(1).expand(shape[:3]), -65504.0)
        attended: Tensor = torch.bmm(nn.functional.softmax(scores, dim=-1), keys).transpose(0, 1)
        return attended


class Gnmt(nn.Module):
    """Source [length, n] and target [length, n] to logits [length, n, vocabulary]."""

    def __init__(self, vocabulary: int = _VOCABULARY, width: int = _WIDTH, layers: int = 4) -> None:
        super().__init__()
        self.embedder = nn.Embedding(vocabulary, width, padding_idx=0)
        self.encoder = nn.ModuleList(
            [nn.LSTM(width, width, bidirectional=True), nn.LSTM(2 * width, width)]
            + [nn.LSTM(width, width) for _ in range(layers - 2)]
        )
        self.att_rnn, self.attention = nn.LSTM(width, width), _Attention(width)
        self.decoder = nn.ModuleList(nn.LSTM(2 * width, width) for _ in range(layers - 1))
        self.dropout = nn.Dropout(_DROPOUT)
        self.classifier = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Logits of the target's next words."""
        context = self._encoded(source, lengths)
        places = torch.arange(context.shape[0], device=context.device)
        mask = places >= lengths.unsqueeze(1)
        x, _ = self.att_rnn(self.dropout(self.embedder(target)))
        seen = self.attention(x, context, mask)
        for number, layer in enumerate(self.decoder):
            before = x
            x, _ = layer(self.dropout(torch.cat((x, seen), dim=2)))
            x = x + before if number else x
        logits: Tensor = self.classifier(x)
        return logits

    def _encoded(self, source: Tensor, lengths: Tensor) -> Tensor:
        x = self.dropout(self.embedder(source))
        both, _ = self.encoder[0](pack_padded_sequence(x, lengths))
        x, _ = pad_packed_sequence(both)
        x, _ = self.encoder[1](self.dropout(x))
        for layer in list(self.encoder)[2:]:
            before = x
            x, _ = layer(self.dropout(x))
            x = x + before
        encoded: Tensor = x
        return encoded


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = Gnmt()
    words = meta_tokens(size, batch_size)

    def loss(logits: Tensor) -> Tensor:
        target = words.flatten()
        chances = nn.functional.log_softmax(logits.flatten(0, 1), dim=-1, dtype=torch.float32)
        right = -chances.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        even = -chances.mean(dim=-1)
        return ((1 - _SMOOTHING) * right + _SMOOTHING * even).sum() / logits.shape[1]

    batch = (words, meta_tokens(batch_size), words)
    return Built(model=model, batch=batch, loss=loss)


GNMT: Mapping[str, Definition] = {
    "gnmt": Definition(
        build=_built,
        size=26,
        optimizer="adam",
        half="fp16",
        clip_gradients=True,
        units=_PIECES,
        assumed="26 pieces on each side with padding, 48 counted for a pair",
    )
}
