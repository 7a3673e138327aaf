"""DLRM, Wide & Deep and VAE-CF of NVIDIA's DeepLearningExamples.

Rows of the embedding tables are updated where a batch has touched them, right in the backward
pass: tables are no parameters of the optimizer.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["RECOMMENDERS"]

# Criteo with a frequency threshold of 15: rows of the tables.
_CRITEO = (
    7912889, 33823, 17139, 7339, 20046, 4, 7105, 1382, 63, 5554114, 582469, 245828, 11, 2209,
    10667, 104, 4, 968, 15, 8165896, 2675940, 7156453, 302516, 12022, 97, 35,
)  # fmt: skip
# Outbrain: rows, width, and values of a sample (data/outbrain/features.py).
_OUTBRAIN = (
    (250000, 128, 1), (300000, 128, 1), (4, 19, 1), (100000, 128, 1), (5000, 128, 1),
    (2500, 64, 1), (4000, 64, 1), (2500, 64, 1), (300, 64, 1), (2000, 64, 1), (1000, 64, 1),
    (4000, 64, 1), (1000, 64, 1), (350, 64, 3), (10000, 64, 3), (100, 64, 3),
)  # fmt: skip
_NUMBERS = 13


class _Rows(torch.autograd.Function):
    """Rows of a table, and their update in the backward pass."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, places: Tensor, anchor: Tensor) -> Tensor:
        ctx.save_for_backward(table, places)
        return table.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        table, places = ctx.saved_tensors
        table.index_add_(0, places, gradient.to(table.dtype))
        return None, None, None


class Table(nn.Module):
    """Embeddings whose touched rows alone are updated: [n] to [n, width]."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.empty(rows, width))
        self.anchor = nn.Parameter(torch.empty(1))  # lets autograd reach the table

    def forward(self, places: Tensor) -> Tensor:
        """The rows."""
        rows: Tensor = _Rows.apply(  # type: ignore[no-untyped-call]  # of torch
            self.table, places, self.anchor
        )
        return rows


def _layers(widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inner, outer in itertools.pairwise(widths):
        layers += [nn.Linear(inner, outer), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    """Numbers [n, 13] and categories [26, n] to a score [n, 1] (Naumov et al., 2019)."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(Table(rows, 128) for rows in _CRITEO)
        self.bottom = _layers((_NUMBERS, 512, 256, 128))
        pairs = (len(_CRITEO) + 1) * len(_CRITEO) // 2
        self.top = _layers((128 + pairs + 1, 1024, 1024, 512, 256))
        self.last = nn.Linear(256, 1)

    def forward(self, numbers: Tensor, places: Tensor) -> Tensor:
        """Scores."""
        dense = self.bottom(numbers)
        rows = [table(places[one]).to(dense.dtype) for one, table in enumerate(self.tables)]
        whole = torch.stack([dense, *rows], dim=1)
        products = torch.bmm(whole, whole.transpose(1, 2))
        first, second = torch.tril_indices(
            whole.shape[1], whole.shape[1], -1, device=whole.device
        ).unbind(0)
        pairs = products[:, first, second]
        zero = dense.new_zeros(dense.shape[0], 1)
        scores: Tensor = self.last(self.top(torch.cat([dense, pairs, zero], dim=1)))
        return scores


class WideAndDeep(nn.Module):
    """Numbers [n, 13] and categories [22, n] to a score [n, 1] (Cheng et al., 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.deep_tables = nn.ModuleList(Table(rows, width) for rows, width, _ in _OUTBRAIN)
        self.wide_tables = nn.ModuleList(Table(rows, 1) for rows, _, _ in _OUTBRAIN)
        self.wide = nn.Linear(_NUMBERS, 1)
        width = sum(width for _, width, _ in _OUTBRAIN) + _NUMBERS
        self.layers = nn.ModuleList(
            nn.Linear(inner, 1024) for inner in (width, 1024, 1024, 1024, 1024)
        )
        self.last = nn.Linear(1024, 1)

    def forward(self, numbers: Tensor, places: Tensor) -> Tensor:
        """Scores."""
        deep, wide, start = [numbers], self.wide(numbers), 0
        for (_, _, values), table, narrow in zip(
            _OUTBRAIN, self.deep_tables, self.wide_tables, strict=True
        ):
            which = places[start : start + values].reshape(-1)
            start += values
            samples = numbers.shape[0]
            deep.append(table(which).view(values, samples, -1).mean(0))
            wide = wide + narrow(which).view(values, samples, 1).sum(0)
        x = torch.cat(deep, dim=1)
        for layer in self.layers:
            x = nn.functional.dropout(nn.functional.relu(layer(x)), 0.1, self.training)
        scores: Tensor = self.last(x) + wide
        return scores


def _scored(model_class: type[nn.Module], values: int) -> Any:
    def build(batch_size: int, size: int) -> Built:
        with torch.device("meta"):
            model = model_class()
            numbers, labels = torch.zeros(batch_size, _NUMBERS), torch.zeros(batch_size, 1)
        places = meta_tokens(values, batch_size)

        def loss(scores: Tensor) -> Tensor:
            return nn.functional.binary_cross_entropy_with_logits(scores.float(), labels)

        return Built(model=model, batch=(numbers, places), loss=loss)

    return build


class VaeCf(nn.Module):
    """Items of a user [n, 20,108] to scores of items, by a latent vector (Liang et al., 2018)."""

    def __init__(self, items: int = 20_108) -> None:
        super().__init__()
        self.encoder = nn.ModuleList([nn.Linear(items, 600), nn.Linear(600, 400)])
        self.decoder = nn.ModuleList([nn.Linear(200, 600), nn.Linear(600, items)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, means and logarithms of variances."""
        x = nn.functional.dropout(nn.functional.normalize(x), 0.5, self.training)
        mean, spread = self.encoder[1](torch.tanh(self.encoder[0](x))).chunk(2, dim=1)
        latent = mean + torch.exp(0.5 * spread) * torch.randn_like(spread)
        return self.decoder[1](torch.tanh(self.decoder[0](latent))), mean, spread


def _vae(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model, items = VaeCf(), torch.zeros(batch_size, 20_108)

    def loss(outputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        scores, mean, spread = outputs
        known = -(nn.functional.log_softmax(scores.float(), 1) * items).sum(1).mean()
        far = -0.5 * (1 + spread - mean * mean - spread.exp()).sum(1).mean()
        return known + 0.2 * far.float()

    return Built(model=model, batch=items, loss=loss)


RECOMMENDERS: Mapping[str, Definition] = {
    "dlrm": Definition(
        build=_scored(Dlrm, len(_CRITEO)), optimizer="sgd",
        assumed="tables of Criteo with threshold 15 on one device, updated in the backward pass",
    ),
    "wide-and-deep": Definition(
        build=_scored(WideAndDeep, sum(values for _, _, values in _OUTBRAIN)), optimizer="rmsprop",
        assumed="16 columns of Outbrain, touched rows updated; FTRL and RMSprop alike",
    ),
    "vae-cf": Definition(
        build=_vae, optimizer="adam",
        assumed="MovieLens 20M; the first layer reads items as a dense matrix",
    ),
}  # fmt: skip
