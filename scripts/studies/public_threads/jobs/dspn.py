# ruff: noqa: N812  # imports of a clone
"""Deep Set Prediction Network of scripts/clevr.sh clevr-box; beside ./deep_sets.

Bounding boxes of CLEVR: images of 128 x 128 pixels, at most ten boxes, ten inner updates.
"""

import sys
import types

sys.path.insert(0, "deep_sets/dspn")

import torch
import torch.nn.functional as F
import utils
from model import build_net

ARGUMENTS = types.SimpleNamespace(
    dataset="clevr-box", dim=512, latent=512, inner_lr=800, iters=10,
    encoder="RNFSEncoder", decoder="DSPN",
)  # fmt: skip


class Pool:
    """One process in place of ten."""

    map = staticmethod(lambda function, samples: [function(sample) for sample in samples])


class WithLoss(torch.nn.Module):
    """The model with its loss, as train.py has it with --supervised --mask-feature."""

    def __init__(self):
        super().__init__()
        self.net = build_net(ARGUMENTS)

    def forward(self, images, boxes, mask):
        """Loss of a batch."""
        (progress, masks, _, _), (y_enc, y_label) = self.net(images, boxes, mask)
        target = torch.cat([boxes, mask.unsqueeze(1)], 1)
        progress = [torch.cat([p, m.unsqueeze(1)], 1) for p, m in zip(progress, masks, strict=True)]
        set_loss = utils.hungarian_loss(progress[-1], target, thread_pool=Pool())
        return set_loss + 0.1 * F.smooth_l1_loss(y_enc, y_label)


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    return WithLoss(), {
        "images": torch.zeros(32, 3, 128, 128),
        "boxes": torch.rand(32, 4, 10),
        "mask": torch.ones(32, 10),
    }
