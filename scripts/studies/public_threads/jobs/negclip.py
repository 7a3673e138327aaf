# imports of a clone
"""CLIP ViT-B-32 as neg_clip trains it: two images, four captions a sample; beside ./neg_clip."""

import json
import sys
from pathlib import Path

sys.path.insert(0, "neg_clip/src")

import torch
from open_clip.loss import ClipLoss
from open_clip.model import CLIP

SAMPLES = 32


class WithLoss(torch.nn.Module):
    """The model with its loss."""

    def __init__(self):
        super().__init__()
        config = json.loads(Path("neg_clip/src/open_clip/model_configs/ViT-B-32.json").read_text())
        self.clip = CLIP(**config, quick_gelu=True)
        self.loss = ClipLoss(cache_labels=True)

    def forward(self, images, texts):
        """Loss of a batch."""
        return self.loss(*self.clip(images, texts))


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    images = torch.zeros(2 * SAMPLES, 3, 224, 224)
    return WithLoss(), {"images": images, "texts": torch.zeros(4 * SAMPLES, 77, dtype=torch.long)}
