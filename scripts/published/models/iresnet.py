"""ArcFace's ResNet-100 (InsightFace; Deng et al., 2019) with a classifier of 85,742 faces."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["IRESNET"]

_FACES, _BLOCKS = 85_742, (3, 13, 30, 3)


class _Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inner), nn.Conv2d(inner, outer, 3, 1, 1, bias=False)
        self.bn2, self.prelu = nn.BatchNorm2d(outer), nn.PReLU(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outer)
        self.downsample = nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
        )
        if stride == 1:
            self.downsample = nn.Sequential()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.prelu(self.bn2(self.conv1(self.bn1(x))))
        result: Tensor = self.bn3(self.conv2(hidden)) + self.downsample(x)
        return result


class IResNet100(nn.Module):
    """Faces [n, 3, 112, 112] to cosines with all classes [n, 85,742]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1, self.prelu = nn.BatchNorm2d(64), nn.PReLU(64)
        layers: list[nn.Module] = []
        inner = 64
        for outer, many in zip((64, 128, 256, 512), _BLOCKS, strict=True):
            layers += [_Block(inner, outer, 2)]
            layers += [_Block(outer, outer, 1) for _ in range(many - 1)]
            inner = outer
        self.layers = nn.Sequential(*layers)
        self.bn2, self.fc = nn.BatchNorm2d(512), nn.Linear(512 * 7 * 7, 512)
        self.features = nn.BatchNorm1d(512)
        self.faces = nn.Parameter(torch.empty(_FACES, 512))

    def forward(self, images: Tensor) -> Tensor:
        """Cosines."""
        x = self.bn2(self.layers(self.prelu(self.bn1(self.conv1(images)))))
        x = self.features(self.fc(x.flatten(1)))
        normal = nn.functional.normalize
        return nn.functional.linear(normal(x), normal(self.faces))


def _built(batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model, images = IResNet100(), torch.zeros(batch_size, 3, size, size)
    labels = meta_tokens(batch_size)

    def loss(cosines: Tensor) -> Tensor:
        wanted = cosines.float().gather(1, labels.unsqueeze(1))
        margin = torch.cos(torch.acos(wanted.clamp(-1, 1)) + 0.5)
        moved = cosines.float().scatter(1, labels.unsqueeze(1), margin)
        return nn.functional.cross_entropy(64.0 * moved, labels)

    return Built(model=model, batch=images, loss=loss)


IRESNET: Mapping[str, Definition] = {
    "insightface-r100": Definition(
        build=_built,
        size=112,
        optimizer="momentum",
        parameters=65_156_160 + _FACES * 512,
        assumed="emore's 85,742 faces, all of them on one device",
    )
}
