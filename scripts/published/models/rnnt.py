"""RNN-T of MLPerf: speech to pieces of words by two stacks of LSTMs and a joint network.

240 filters x frames -> 2 LSTMs, pairs of frames joined, 3 LSTMs -> joint network -> loss
pieces -> embedding, 2 LSTMs -> joint network
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["RNNT"]

_FILTERS, _ENCODER, _PREDICTOR, _JOINT, _PIECES = 240, 1024, 512, 512, 1024
_WRITTEN = 1 / 8  # pieces for each frame of the encoder, on the mean of LibriSpeech


class _Transducer(torch.autograd.Function):
    """Loss over all alignments: forward and backward sums over the lattice, one number a cell."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        total = torch.logsumexp(scores.float(), dim=-1)
        ctx.save_for_backward(scores, total)
        return torch.cumsum(total, dim=1)[:, -1, -1].mean()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        scores, total = ctx.saved_tensors
        result: Tensor = (scores - total.unsqueeze(-1)).exp_().to(scores.dtype)
        return result


class Rnnt(nn.Module):
    """Frames [length, n, 240] and pieces [n, written] to the loss (Graves, 2012)."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.LSTM(_FILTERS, _ENCODER, 2, dropout=0.1)
        self.behind = nn.LSTM(2 * _ENCODER, _ENCODER, 3, dropout=0.1)
        self.embedding = nn.Embedding(_PIECES - 1, _PREDICTOR)
        self.predictor = nn.LSTM(_PREDICTOR, _PREDICTOR, 2, dropout=0.3)
        self.from_encoder = nn.Linear(_ENCODER, _JOINT)
        self.from_predictor = nn.Linear(_PREDICTOR, _JOINT)
        self.joint = nn.Linear(_JOINT, _PIECES)

    def forward(self, frames: Tensor, pieces: Tensor) -> Tensor:
        """The loss."""
        x, _ = self.before(frames)
        pairs = x[: x.shape[0] // 2 * 2].view(x.shape[0] // 2, 2, x.shape[1], -1)
        x, _ = self.behind(pairs.transpose(1, 2).flatten(2))
        heard = self.from_encoder(x).transpose(0, 1)
        said, _ = self.predictor(self.embedding(pieces).transpose(0, 1))
        known = self.from_predictor(said).transpose(0, 1)
        both = torch.relu(heard.unsqueeze(2) + known.unsqueeze(1))
        both = nn.functional.dropout(both, 0.3, self.training)
        loss: Tensor = _Transducer.apply(  # type: ignore[no-untyped-call]  # of torch
            self.joint(both)
        )
        return loss


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model, frames = Rnnt(), torch.zeros(size, batch_size, _FILTERS)
    pieces = meta_tokens(batch_size, max(round(size // 2 * _WRITTEN), 1))
    return Built(model=model, batch=(frames, pieces), loss=None)


RNNT: Mapping[str, Definition] = {
    "rnnt": Definition(
        build=_built,
        size=420,
        optimizer="adamw-fused",
        clip_gradients=True,
        compiled=True,
        parameters=None,
        assumed="LibriSpeech of 12.6 s on the mean, three frames joined; LAMB as AdamW; the fused "
        "transducer's joint and loss priced as compiled, without padding",
    )
}
