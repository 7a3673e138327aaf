"""SSD300 of NVIDIA's DeepLearningExamples (PyTorch/Detection/SSD; ResNet-50) and MLPerf (34).

image of 300 x 300 -> ResNet without its last stage -> five smaller maps -> boxes and classes
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["SSD300"]

_CLASSES, _BOXES = 81, 8732
_CHANNELS = {
    "resnet50": (1024, 512, 512, 256, 256, 256),
    "resnet34": (256, 512, 512, 256, 256, 256),
}
_BETWEEN, _DEFAULTS = (256, 256, 128, 128, 128), (4, 6, 6, 6, 4, 4)


def _normed(inner: int, outer: int, **how: Any) -> list[nn.Module]:
    norm = nn.BatchNorm2d(outer)
    return [nn.Conv2d(inner, outer, bias=False, **how), norm, nn.ReLU(inplace=True)]


class Ssd300(nn.Module):
    """Images [n, 3, 300, 300] to boxes [n, 4, 8732] and classes [n, 81, 8732].

    Args:
        body: `resnet50` or `resnet34`.
    """

    def __init__(self, body: str) -> None:
        super().__init__()
        from torchvision.models import resnet

        channels = _CHANNELS[body]
        whole = getattr(resnet, body)(weights=None)
        self.feature_extractor = nn.Sequential(*list(whole.children())[:7])
        first: Any = next(self.feature_extractor[-1].children())
        for layer in (first.conv1, first.conv2, first.downsample[0]):
            layer.stride = (1, 1)
        self.additional_blocks = nn.ModuleList()
        for number, between in enumerate(_BETWEEN):
            inner, outer = channels[number : number + 2]
            how = {"padding": 1, "stride": 2} if number < 3 else {}
            self.additional_blocks.append(
                nn.Sequential(
                    *_normed(inner, between, kernel_size=1),
                    *_normed(between, outer, kernel_size=3, **how),
                )
            )
        sides = list(zip(channels, _DEFAULTS, strict=True))
        self.loc = nn.ModuleList(nn.Conv2d(one, 4 * many, 3, padding=1) for one, many in sides)
        self.conf = nn.ModuleList(
            nn.Conv2d(one, _CLASSES * many, 3, padding=1) for one, many in sides
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes and classes of all default boxes."""
        x = self.feature_extractor(images)
        maps = [x]
        for block in self.additional_blocks:
            x = block(x)
            maps.append(x)
        samples = images.shape[0]
        boxes = [
            layer(one).reshape(samples, 4, -1) for layer, one in zip(self.loc, maps, strict=True)
        ]
        classes = [
            layer(one).reshape(samples, _CLASSES, -1)
            for layer, one in zip(self.conf, maps, strict=True)
        ]
        return torch.cat(boxes, 2).contiguous(), torch.cat(classes, 2).contiguous()


def _loss(outputs: tuple[Tensor, Tensor], boxes: Tensor, labels: Tensor, known: Tensor) -> Tensor:
    """Boxes and classes of found objects, and of the hardest of the rest (Liu et al., 2016)."""
    placed, classes = outputs
    mask = labels > 0
    many = mask.sum(dim=1)
    centre = 10.0 * (boxes[:, :2] - known[:, :2]) / known[:, 2:]
    extent = 5.0 * (boxes[:, 2:] / known[:, 2:]).log()
    wanted = torch.cat((centre, extent), dim=1).contiguous()
    smooth = nn.functional.smooth_l1_loss(placed, wanted, reduction="none").sum(dim=1)
    smooth = (mask.float() * smooth).sum(dim=1)
    entropy = nn.functional.cross_entropy(classes, labels, reduction="none")
    rest = entropy.clone().masked_fill_(mask, 0)
    _, order = rest.sort(dim=1, descending=True)
    _, rank = order.sort(dim=1)
    hard = rank < torch.clamp(3 * many, max=mask.shape[1]).unsqueeze(-1)
    total = smooth + (entropy * (mask + hard).float()).sum(dim=1)
    return (total * (many > 0).float() / many.float().clamp(min=1e-6)).mean(dim=0)


def _built(body: str, batch_size: int, size: int) -> Built:
    with torch.device("meta"):
        model = Ssd300(body)
        images = torch.zeros(batch_size, 3, size, size)
        boxes, known = torch.zeros(batch_size, 4, _BOXES), torch.zeros(1, 4, _BOXES)
    labels = meta_tokens(batch_size, _BOXES)

    def loss(outputs: tuple[Tensor, Tensor]) -> Tensor:
        return _loss((outputs[0].float(), outputs[1].float()), boxes, labels, known)

    return Built(model=model, batch=images, loss=loss)


SSD300: Mapping[str, Definition] = {
    "ssd300": Definition(
        build=partial(_built, "resnet50"),
        size=300,
        optimizer="momentum",
        half="amp-fp16",
        parameters=None,
        assumed="autocast and channels last in half precision, as the README of 2022 says",
    ),
    "ssd300-resnet34": Definition(
        build=partial(_built, "resnet34"),
        size=300,
        optimizer="momentum",
        half="fp16",
        compiled=True,
        assumed="MLPerf v1.1 in MXNet: norms fused with ReLU and addition",
    ),
}
