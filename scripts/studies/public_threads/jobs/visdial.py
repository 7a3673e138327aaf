"""Late fusion encoder, discriminative decoder of lf_disc_faster_rcnn_x101.yml; beside ./visdial.

32 of the 128 dialogs: ten questions, 100 options of 20 tokens, 36 regions of an image. Vocabulary
of VisDial v1.0 at five occurrences, with four special tokens: 11,322 words.
"""

import sys
from pathlib import Path

sys.path.insert(0, "visdial")

import torch
import yaml
from visdialch.decoders.disc import DiscriminativeDecoder
from visdialch.encoders.lf import LateFusionEncoder
from visdialch.model import EncoderDecoderModel

CONFIG = yaml.safe_load(Path("visdial/configs/lf_disc_faster_rcnn_x101.yml").read_text())["model"]


class Words:
    """Size of the vocabulary."""

    PAD_INDEX = 0

    def __len__(self):
        return 11322


class AllOptions(DiscriminativeDecoder):
    """The decoder without its choice of options that have a length: in training, all have."""

    def forward(self, encoder_output, batch):
        """Score of each option."""
        options = batch["opt"]
        rows = options.size(0) * options.size(1) * options.size(2)
        embedded = self.word_embed(options.view(rows, options.size(3)))
        _, (embedded, _) = self.option_rnn(embedded, batch["opt_len"].view(rows))
        encoded = encoder_output.unsqueeze(2).repeat(1, 1, options.size(2), 1)
        return torch.sum(embedded * encoded.view(rows, -1), 1).view(options.size()[:3])


class WithLoss(torch.nn.Module):
    """The model with its loss."""

    def __init__(self):
        super().__init__()
        encoder, decoder = LateFusionEncoder(CONFIG, Words()), AllOptions(CONFIG, Words())
        decoder.word_embed = encoder.word_embed
        self.model = EncoderDecoderModel(encoder, decoder)

    def forward(self, batch):
        """Loss of a batch."""
        output = self.model(batch)
        return torch.nn.functional.cross_entropy(
            output.view(-1, output.size(-1)), batch["ans_ind"].view(-1)
        )


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    dialogs, rounds, length = 32, 10, 20
    ones = torch.ones
    batch = {
        "img_feat": torch.rand(dialogs, 36, 2048),
        "ques": ones(dialogs, rounds, length, dtype=torch.long),
        "hist": ones(dialogs, rounds, 2 * length * rounds, dtype=torch.long),
        "opt": ones(dialogs, rounds, 100, length, dtype=torch.long),
        "ques_len": torch.full((dialogs, rounds), length),
        "hist_len": torch.full((dialogs, rounds), 2 * length * rounds),
        "opt_len": torch.full((dialogs, rounds, 100), length),
        "ans_ind": torch.zeros(dialogs, rounds, dtype=torch.long),
    }
    return WithLoss(), {"batch": batch}
