"""FastPitch 1.1 of NVIDIA's DeepLearningExamples (Łańcucki, 2021): text to frames at once.

text -> 6 blocks -> durations, pitch, energy; aligned with the frames -> 6 blocks -> frames
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["FASTPITCH"]

_SYMBOLS, _WIDTH, _INNER, _HEAD, _MELS = 148, 384, 1536, 64, 80
_FRAMES, _TOKENS, _MEAN_FRAMES = 860, 180, 562


class _Block(nn.Module):
    """Attention with one head and two convolutions, norms behind each."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(_WIDTH, 3 * _HEAD), nn.Linear(_HEAD, _WIDTH, bias=False)
        self.norm1, self.norm2 = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.conv1 = nn.Conv1d(_WIDTH, _INNER, 3, padding=1)
        self.conv2 = nn.Conv1d(_INNER, _WIDTH, 3, padding=1)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, dim=2)
        scores = torch.bmm(query, key.transpose(1, 2)).mul_(_HEAD**-0.5)
        hidden = (~mask.squeeze(2)).unsqueeze(1).to(scores.dtype).repeat(1, scores.shape[1], 1)
        scores = scores.masked_fill_(hidden.to(torch.bool), -float("inf"))
        mixed = torch.bmm(self.drop(functional.softmax(scores, dim=2)), value)
        x = self.norm1(x + self.drop(self.out(mixed))) * mask
        convolved = self.conv2(functional.relu(self.conv1(x.transpose(1, 2))))
        x = x + self.drop(convolved).transpose(1, 2)
        normed: Tensor = self.norm2(x) * mask
        return normed


class _Predictor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ModuleList(nn.Conv1d(one, 256, 3, padding=1) for one in (_WIDTH, 256))
        self.norm = nn.ModuleList(nn.LayerNorm(256) for _ in range(2))
        self.fc = nn.Linear(256, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x * mask
        for layer, norm in zip(self.conv, self.norm, strict=True):
            x = norm(functional.relu(layer(x.transpose(1, 2))).transpose(1, 2))
            x = functional.dropout(x, 0.1, self.training)
        predicted: Tensor = self.fc(x) * mask
        return predicted.squeeze(2)


class FastPitch(nn.Module):
    """Text [n, tokens], frames [n, 80, length], pitch and energy [n, length] to what is scored."""

    def __init__(self) -> None:
        super().__init__()
        self.word_emb = nn.Embedding(_SYMBOLS, _WIDTH, padding_idx=0)
        self.register_buffer("inv_freq", torch.empty(_WIDTH // 2))
        self.encoder = nn.ModuleList(_Block() for _ in range(6))
        self.decoder = nn.ModuleList(_Block() for _ in range(6))
        self.predictors = nn.ModuleList(_Predictor() for _ in range(3))
        self.pitch_emb = nn.Conv1d(1, _WIDTH, 3, padding=1)
        self.energy_emb = nn.Conv1d(1, _WIDTH, 3, padding=1)
        self.proj = nn.Linear(_WIDTH, _MELS)
        self.key_proj = nn.Sequential(
            nn.Conv1d(_WIDTH, 2 * _WIDTH, 3, padding=1), nn.ReLU(), nn.Conv1d(2 * _WIDTH, _MELS, 1)
        )
        self.query_proj = nn.Sequential(
            nn.Conv1d(_MELS, 2 * _MELS, 3, padding=1), nn.ReLU(),
            nn.Conv1d(2 * _MELS, _MELS, 1), nn.ReLU(), nn.Conv1d(_MELS, _MELS, 1),
        )  # fmt: skip

    def forward(
        self, text: Tensor, frames: Tensor, pitch: Tensor, energy: Tensor
    ) -> tuple[Tensor, ...]:
        """Frames, durations, pitch and energy as predicted, and the alignment."""
        mask = (text != 0).unsqueeze(2)
        x = self._through(self.encoder, self.word_emb(text), mask)
        duration, tone = (one(x, mask) for one in list(self.predictors)[:2])
        aligned = self._aligned(self.word_emb(text), frames)
        spans = aligned.detach().sum(1)  # the best path is found on the host
        x = x + self.pitch_emb(_means(pitch, spans).unsqueeze(1)).transpose(1, 2)
        loudness = self.predictors[2](x, mask)
        known = torch.log(1.0 + _means(energy, spans)).unsqueeze(1)
        x = x + self.energy_emb(known).transpose(1, 2)
        long = torch.bmm(aligned.detach(), x.to(aligned.dtype))
        whole = torch.ones_like(long[:, :, :1], dtype=torch.bool)
        mels = self.proj(self._through(self.decoder, long, whole))
        return mels, duration, tone, loudness, aligned

    def _through(self, blocks: nn.ModuleList, x: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        frequencies: Tensor = self.inv_freq  # type: ignore[assignment]  # a buffer
        angles = torch.outer(places, frequencies)
        x = x + torch.cat([angles.sin(), angles.cos()], dim=1)[None] * mask
        for block in blocks:
            x = block(x, mask)
        return x

    def _aligned(self, words: Tensor, frames: Tensor) -> Tensor:
        """How well each frame fits each symbol: [n, length, tokens]."""
        keys = self.key_proj(words.transpose(1, 2))
        queries = self.query_proj(frames)
        far = (queries[:, :, :, None] - keys[:, :, None]) ** 2
        scores = functional.log_softmax(-0.0005 * far.sum(1), dim=2)
        return functional.softmax(scores, dim=2)


def _means(values: Tensor, spans: Tensor) -> Tensor:
    """Means over the frames of each symbol, by sums up to its ends."""
    ends = torch.cumsum(spans, dim=1).long()
    starts = functional.pad(ends[:, :-1], (1, 0))
    sums = functional.pad(torch.cumsum(values, dim=1), (1, 0))
    whole = torch.gather(sums, 1, ends) - torch.gather(sums, 1, starts)
    return torch.where(spans == 0, spans, whole / spans)


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = FastPitch()
        frames, lines = torch.zeros(batch_size, _MELS, size), torch.zeros(batch_size, size)
    tokens = max(round(size * _TOKENS / _FRAMES), 1)

    def loss(outputs: tuple[Tensor, ...]) -> Tensor:
        mels, duration, tone, loudness, aligned = outputs
        error = functional.mse_loss(mels.transpose(1, 2), frames)
        for prediction in (duration, tone, loudness):
            error = error + 0.1 * functional.mse_loss(prediction, torch.zeros_like(prediction))
        return error - aligned.float().clamp(min=1e-8).log().mean()

    batch = (meta_tokens(batch_size, tokens), frames, lines, lines)
    return Built(model=model, batch=batch, loss=loss)


FASTPITCH: Mapping[str, Definition] = {
    "fastpitch": Definition(
        build=_built,
        size=_FRAMES,
        optimizer="adam",
        clip_gradients=True,
        units=_MEAN_FRAMES,
        assumed="LJSpeech as for Tacotron 2; LAMB as Adam; the search of the best path on the host "
        "is not counted; CTC of the alignment as its mean",
    )
}
