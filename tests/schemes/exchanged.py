"""A small Transformer and a plain network as jobs, and what a device sends in a step."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import nn

from driple.jobs.pytorch.modules import job_of_module
from driple.schemes.records import WorkerRecord
from driple.simulate.prepared_job import PreparedJob

LAYERS, WIDTH, TOKENS = 6, 256, 1000


class Model(nn.Module):
    """Embedding, numbered layers, head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True) for _ in range(LAYERS)
        )
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):  # type: ignore[no-untyped-def]
        """Mean of the scores: a loss, whose value does not matter."""
        hidden = self.embed(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden).mean()


@cache
def transformer(passes: int = 1, precision: str = "fp32") -> PreparedJob:
    """The small Transformer, 4 samples of 64 tokens."""
    job = job_of_module(
        Model(),
        torch.zeros(4, 64, dtype=torch.int64),
        step=lambda model, tokens: model(tokens),
        grad_accumulation=passes,
        precision=precision,
        optimizer="adamw",
    )
    return PreparedJob(job.graph, cost=job.cost)


def sent_bytes(record: WorkerRecord) -> float:
    """Bytes that the worker sent in a step, by the meter of its link."""
    times = np.array([time for time, _ in record.tx])
    rates = np.array([rate for _, rate in record.tx])
    total = float((np.diff(times) * rates[:-1]).sum())
    return total / len(record.step_ends_s)
