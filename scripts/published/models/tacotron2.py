"""Tacotron 2 of NVIDIA's DeepLearningExamples (PyTorch/SpeechSynthesis/Tacotron2).

    text -> convolutions, two-way LSTM -> for each frame: two LSTM cells and attention -> postnet

The decoder takes some 40 small kernels for each frame. Assumed: a batch of LJSpeech is padded to
860 frames and 180 symbols; a clip has 562 frames on the mean (lambda's logs), which the source
counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["TACOTRON2"]

_SYMBOLS, _MELS, _TEXT, _CELL, _SCORE = 148, 80, 512, 1024, 128
_TOKENS, _FRAMES, _MEAN_FRAMES = 180, 860, 562


def _convolution(inner: int, outer: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv1d(inner, outer, 5, padding=2), nn.BatchNorm1d(outer))


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query_layer = nn.Linear(_CELL, _SCORE, bias=False)
        self.memory_layer = nn.Linear(_TEXT, _SCORE, bias=False)
        self.v = nn.Linear(_SCORE, 1, bias=False)
        self.location_conv = nn.Conv1d(2, 32, 31, padding=15, bias=False)
        self.location_dense = nn.Linear(32, _SCORE, bias=False)

    def forward(self, state: Tensor, memory: Tensor, keys: Tensor, weights: Tensor,
                mask: Tensor) -> tuple[Tensor, Tensor]:  # fmt: skip
        asked = self.query_layer(state.unsqueeze(1))
        places = self.location_dense(self.location_conv(weights).transpose(1, 2))
        scores = self.v(torch.tanh(asked + places + keys)).squeeze(2)
        chances = functional.softmax(scores.masked_fill(mask, -float("inf")), dim=1)
        return torch.bmm(chances.unsqueeze(1), memory).squeeze(1), chances


class _Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.prenet = nn.ModuleList(
            [nn.Linear(_MELS, 256, bias=False), nn.Linear(256, 256, bias=False)]
        )
        self.attention_rnn = nn.LSTMCell(256 + _TEXT, _CELL)
        self.attention = _Attention()
        self.decoder_rnn = nn.LSTMCell(_CELL + _TEXT, _CELL)
        self.linear_projection = nn.Linear(_CELL + _TEXT, _MELS)
        self.gate_layer = nn.Linear(_CELL + _TEXT, 1)

    def forward(self, memory: Tensor, frames: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        batch, length, _ = memory.shape
        x = frames.permute(2, 0, 1)
        x = torch.cat((memory.new_zeros(1, batch, _MELS), x), dim=0)
        for layer in self.prenet:
            x = functional.dropout(functional.relu(layer(x)), 0.5, True)
        places = torch.arange(length, device=memory.device)
        mask = places >= lengths.unsqueeze(1)
        first = (memory.new_zeros(batch, _CELL), memory.new_zeros(batch, _CELL))
        second = (memory.new_zeros(batch, _CELL), memory.new_zeros(batch, _CELL))
        chances, total = memory.new_zeros(batch, length), memory.new_zeros(batch, length)
        seen, keys = memory.new_zeros(batch, _TEXT), self.attention.memory_layer(memory)
        frames_out, gates, aligned = [], [], []
        for step in range(x.shape[0] - 1):
            state, cell = self.attention_rnn(torch.cat((x[step], seen), -1), first)
            first = (functional.dropout(state, 0.1, self.training), cell)
            weights = torch.cat((chances.unsqueeze(1), total.unsqueeze(1)), dim=1)
            seen, chances = self.attention(first[0], memory, keys, weights, mask)
            total = total + chances
            state, cell = self.decoder_rnn(torch.cat((first[0], seen), -1), second)
            second = (functional.dropout(state, 0.1, self.training), cell)
            both = torch.cat((second[0], seen), dim=1)
            frames_out.append(self.linear_projection(both))
            gates.append(self.gate_layer(both).squeeze())
            aligned.append(chances)
        mels = torch.stack(frames_out).transpose(0, 1).contiguous().transpose(1, 2)
        return mels, torch.stack(gates).transpose(0, 1).contiguous(), torch.stack(aligned)


class Tacotron2(nn.Module):
    """Text [n, tokens] and frames [n, 80, length] to frames, twice, and where a clip ends."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_SYMBOLS, _TEXT)
        self.encoder = nn.ModuleList(_convolution(_TEXT, _TEXT) for _ in range(3))
        self.lstm = nn.LSTM(_TEXT, _TEXT // 2, batch_first=True, bidirectional=True)
        self.decoder = _Decoder()
        widths = (_MELS, _TEXT, _TEXT, _TEXT, _TEXT, _MELS)
        self.postnet = nn.ModuleList(map(_convolution, widths[:-1], widths[1:]))

    def forward(self, text: Tensor, lengths: Tensor, frames: Tensor) -> tuple[Tensor, ...]:
        """Frames before and behind the postnet, and the gate."""
        x = self.embedding(text).transpose(1, 2)
        for layer in self.encoder:
            x = functional.dropout(functional.relu(layer(x)), 0.5, self.training)
        packed = pack_padded_sequence(x.transpose(1, 2), lengths, batch_first=True)
        memory, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mels, gates, _ = self.decoder(memory, frames, lengths)
        x = mels
        for number, layer in enumerate(self.postnet):
            x = layer(x)
            x = torch.tanh(x) if number < len(self.postnet) - 1 else x
            x = functional.dropout(x, 0.5, self.training)
        return mels, mels + x, gates


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = Tacotron2()
        frames = torch.zeros(batch_size, _MELS, size)
        ends = torch.zeros(batch_size, size)

    def loss(outputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        before, after, gates = outputs
        error = functional.mse_loss(before, frames) + functional.mse_loss(after, frames)
        return error + functional.binary_cross_entropy_with_logits(
            gates.reshape(-1, 1), ends.view(-1, 1)
        )

    tokens = max(round(size * _TOKENS / _FRAMES), 1)
    batch = (meta_tokens(batch_size, tokens), meta_tokens(batch_size), frames)
    return Built(model=model, batch=batch, loss=loss)


TACOTRON2: Mapping[str, Definition] = {
    "tacotron2": Definition(
        build=_built,
        size=_FRAMES,
        optimizer="adam",
        half="amp-fp16",
        clip_gradients=True,
        parameters=28_193_153,
        units=_MEAN_FRAMES,
        assumed="860 frames and 180 symbols with padding, 562 frames counted",
    )
}
