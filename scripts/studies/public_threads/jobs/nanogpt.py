# imports of a clone
"""GPT-2 small as nanoGPT trained it on 2023-02-02; run beside a clone in ./nanogpt."""

import sys

sys.path.insert(0, "nanogpt")

import torch
from model import GPT, GPTConfig


class WithLoss(torch.nn.Module):
    """The model with its loss."""

    def __init__(self):
        super().__init__()
        self.gpt = GPT(
            GPTConfig(
                block_size=1024,
                vocab_size=50304,
                n_layer=12,
                n_head=12,
                n_embd=768,
                dropout=0.0,
                bias=False,
            )
        )

    def forward(self, tokens, targets):
        """Loss of a batch."""
        return self.gpt(tokens, targets)[1]


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    tokens = torch.zeros(12, 1024, dtype=torch.long)
    return WithLoss(), {"tokens": tokens, "targets": tokens}
