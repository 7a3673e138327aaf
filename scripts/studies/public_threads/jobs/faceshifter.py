# ruff: noqa: N812  # imports of a clone
"""FaceShifter's AEI-Net: losses of generator and discriminators; beside ./faceshifter."""

import sys

sys.path.insert(0, "faceshifter")

import torch
import torch.nn.functional as F
from model.AEINet import ADDGenerator, MultilevelAttributesEncoder
from model.loss import AEI_Loss, GANLoss
from model.MultiScaleDiscriminator import MultiscaleDiscriminator
from torchvision.models import resnet101


class Step(torch.nn.Module):
    """Losses of generator and discriminators."""

    def __init__(self):
        super().__init__()
        self.G = ADDGenerator(256)
        self.E = MultilevelAttributesEncoder()
        self.D = MultiscaleDiscriminator(3)
        self.Z = resnet101(num_classes=256).requires_grad_(False)
        self.gan = GANLoss()
        self.aei = AEI_Loss()

    def identity(self, images):
        """Vector of a face."""
        return F.normalize(self.Z(F.interpolate(images, size=112, mode="bilinear")))

    def forward(self, target, source, same):
        """Loss of a batch."""
        z_id = self.identity(source).detach()
        features = self.E(target)
        output = self.G(z_id, features)
        loss_g = self.gan(self.D(output), True, for_discriminator=False)
        loss_g = (
            loss_g
            + self.aei(target, output, features, self.E(output), z_id, self.identity(output), same)[
                0
            ]
        )
        loss_d = self.gan(self.D(target), True) + self.gan(self.D(output.detach()), False)
        return (loss_g + loss_d).sum()


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    images = torch.zeros(8, 3, 256, 256)
    return Step(), {"target": images, "source": images, "same": torch.zeros(8, 1)}
