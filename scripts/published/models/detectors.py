"""Detectors with a feature pyramid: RetinaNet of MLPerf, Mask R-CNN of DeepLearningExamples.

    image -> ResNet -> five levels of 256 channels -> heads

Numbers of boxes depend on the data; here they are fixed: all anchors take part in RetinaNet's
loss, and Mask R-CNN samples 256 anchors, 512 boxes and 128 masks for each image, its limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from scripts.published.models.definition import Built, Definition, meta_tokens

__all__ = ["DETECTORS"]

_WIDTH = 256


class _Frozen(nn.Module):
    """Batch norm with statistics and weights that stay: a scale and an offset."""

    def __init__(self, width: int) -> None:
        super().__init__()
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        parts: Any = (self.weight, self.bias, self.running_mean, self.running_var)
        weight, bias, mean, var = (one.reshape(1, -1, 1, 1) for one in parts)
        scale = weight * (var + 1e-5).rsqrt()
        result: Tensor = x * scale + (bias - mean * scale)
        return result


class _Pyramid(nn.Module):
    """Levels of 256 channels of a ResNet, with strides of 4 (or 8) and more.

    Args:
        body: name in torchvision.
        least: first stage whose level is given, 1 for a stride of 4.
        more: levels that are made from the last one.
        frozen: whether norms and the first stages stay as they are.
    """

    def __init__(self, body: str, *, least: int, more: int, frozen: bool = True) -> None:
        super().__init__()
        from torchvision.models import resnet

        network = getattr(resnet, body)(
            weights=None, norm_layer=_Frozen if frozen else nn.BatchNorm2d
        )
        children = list(network.children())
        self.stem = nn.Sequential(*children[:4])
        self.stages = nn.ModuleList(children[4:8])
        for fixed in (self.stem, self.stages[0]) if frozen else ():  # three stages are trained
            for parameter in fixed.parameters():
                parameter.requires_grad_(False)
        widths = (256, 512, 1024, 2048)[least - 1 :]
        self.inner = nn.ModuleList(nn.Conv2d(one, _WIDTH, 1) for one in widths)
        self.outer = nn.ModuleList(nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1) for _ in widths)
        self.extra = nn.ModuleList(nn.Conv2d(_WIDTH, _WIDTH, 3, 2, 1) for _ in range(more))
        self.least = least

    def forward(self, images: Tensor) -> list[Tensor]:
        x, kept = self.stem(images), []
        for number, stage in enumerate(self.stages, start=1):
            x = stage(x)
            if number >= self.least:
                kept.append(x)
        x = self.inner[-1](kept[-1])
        levels = [self.outer[-1](x)]
        for number in range(len(kept) - 2, -1, -1):
            larger = functional.interpolate(x, size=kept[number].shape[-2:])
            x = self.inner[number](kept[number]) + larger
            levels.insert(0, self.outer[number](x))
        for number, layer in enumerate(self.extra):
            levels.append(layer(functional.relu(levels[-1]) if number else levels[-1]))
        return levels


def _rows(levels: Sequence[Tensor], width: int) -> Tensor:
    """What a head says of each anchor: [n, anchors, width]."""
    samples = levels[0].shape[0]
    return torch.cat([one.permute(0, 2, 3, 1).reshape(samples, -1, width) for one in levels], dim=1)


class RetinaNet(nn.Module):
    """RetinaNet (Lin et al., 2017).

    Images [n, 3, side, side] to classes [n, anchors, classes] and boxes [n, anchors, 4].

    Args:
        body: name of the ResNet in torchvision.
        classes: how many.
        anchors: of each place.
        frozen: whether norms and the first stages stay as they are.
    """

    def __init__(self, body: str, *, classes: int, anchors: int, frozen: bool) -> None:
        super().__init__()
        self.classes = classes
        self.body = _Pyramid(body, least=2, more=2, frozen=frozen)
        self.to_classes = self._head(classes * anchors)
        self.to_boxes = self._head(4 * anchors)

    @staticmethod
    def _head(outer: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for _ in range(4):
            layers += [nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers, nn.Conv2d(_WIDTH, outer, 3, padding=1))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Classes and boxes of all anchors."""
        levels = self.body(images)
        classes = _rows([self.to_classes(one) for one in levels], self.classes)
        return classes, _rows([self.to_boxes(one) for one in levels], 4)


def _focal(scores: Tensor, wanted: Tensor) -> Tensor:
    """Focal loss of all anchors and classes (Lin et al., 2017)."""
    chances = torch.sigmoid(scores)
    entropy = functional.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
    right = chances * wanted + (1 - chances) * (1 - wanted)
    weight = 0.25 * wanted + 0.75 * (1 - wanted)
    return (weight * entropy * (1 - right) ** 2).sum()


def _retinanet(
    batch_size: int, size: int, *, body: str, classes: int, anchors: int, frozen: bool
) -> Built:
    with torch.device("meta"):
        model = RetinaNet(body, classes=classes, anchors=anchors, frozen=frozen)
        images = torch.zeros(batch_size, 3, size, size)

    def loss(outputs: tuple[Tensor, Tensor]) -> Tensor:
        scores, boxes = outputs[0].float(), outputs[1].float()
        return _focal(scores, torch.zeros_like(scores)) + functional.l1_loss(
            boxes, torch.zeros_like(boxes), reduction="sum"
        )

    return Built(model=model, batch=images, loss=loss)


class MaskRcnn(nn.Module):
    """Mask R-CNN (He et al., 2017) with ResNet-50 and the 81 classes of COCO.

    Images [n, 3, height, width] to what the losses read: scores and boxes of anchors, of boxes,
    and masks.
    """

    classes, boxes, masks, anchors = 81, 512, 128, 3

    def __init__(self) -> None:
        super().__init__()
        self.body = _Pyramid("resnet50", least=1, more=0)
        self.rpn = nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1)
        self.rpn_scores = nn.Conv2d(_WIDTH, self.anchors, 1)
        self.rpn_boxes = nn.Conv2d(_WIDTH, 4 * self.anchors, 1)
        self.fc6, self.fc7 = nn.Linear(_WIDTH * 7 * 7, 1024), nn.Linear(1024, 1024)
        self.scores = nn.Linear(1024, self.classes)
        self.offsets = nn.Linear(1024, 4 * self.classes)
        layers: list[nn.Module] = []
        for _ in range(4):
            layers += [nn.Conv2d(_WIDTH, _WIDTH, 3, padding=1), nn.ReLU(inplace=True)]
        self.mask_layers = nn.Sequential(
            *layers, nn.ConvTranspose2d(_WIDTH, _WIDTH, 2, 2), nn.ReLU(inplace=True),
            nn.Conv2d(_WIDTH, self.classes, 1),
        )  # fmt: skip

    def forward(self, images: Tensor) -> list[Tensor]:
        """Scores and boxes of anchors, scores and boxes of boxes, masks."""
        samples = images.shape[0]
        levels = self.body(images)
        levels.append(functional.max_pool2d(levels[-1], 1, 2))
        shared = [functional.relu(self.rpn(one)) for one in levels]
        anchors = _rows([self.rpn_scores(one) for one in shared], 1)
        places = _rows([self.rpn_boxes(one) for one in shared], 4)
        with torch.no_grad():  # the best anchors become boxes
            best = anchors.squeeze(2).topk(min(2000, anchors.shape[1]), dim=1)[1]
            places.gather(1, best.unsqueeze(2).expand(-1, -1, 4)).exp().clamp(0, 1)
        picked = [_picked(levels, self.boxes, 7), _picked(levels, self.masks, 14)]
        x = functional.relu(self.fc6(picked[0].flatten(1)))
        x = functional.relu(self.fc7(x))
        masks = self.mask_layers(picked[1])
        return [anchors[:, :256], places[:, :256], self.scores(x), self.offsets(x),
                masks[: samples * self.masks]]  # fmt: skip


def _picked(levels: Sequence[Tensor], boxes: int, side: int) -> Tensor:
    """Features of boxes by bilinear samples, four for each of side x side cells.

    Boxes are shared among the four larger levels by their size; here evenly.
    """
    picked = []
    for level in levels[:4]:
        each = boxes // 4
        grid = level.new_zeros(level.shape[0], each * 2 * side, 2 * side, 2)
        samples = functional.grid_sample(level, grid.to(level.dtype), align_corners=False)
        samples = functional.avg_pool2d(samples, 2)
        whole = samples.view(level.shape[0], _WIDTH, each, side, side).transpose(1, 2)
        picked.append(whole.reshape(-1, _WIDTH, side, side))
    return torch.cat(picked)


def _mask_rcnn(batch_size: int, size: int) -> Built:
    width = size * 3 // 2
    with torch.device("meta"):
        model, images = MaskRcnn(), torch.zeros(batch_size, 3, size, width)
    kinds = meta_tokens(batch_size * MaskRcnn.boxes)

    def loss(outputs: list[Tensor]) -> Tensor:
        anchors, places, scores, offsets, masks = (one.float() for one in outputs)
        binary = functional.binary_cross_entropy_with_logits
        known = binary(anchors, torch.zeros_like(anchors))
        known = known + functional.smooth_l1_loss(places, torch.zeros_like(places))
        known = known + functional.cross_entropy(scores, kinds)
        known = known + functional.smooth_l1_loss(offsets[:, :4], torch.zeros_like(offsets[:, :4]))
        mask = masks[:, 0]
        return known + binary(mask, torch.zeros_like(mask))

    return Built(model=model, batch=images, loss=loss)


DETECTORS: Mapping[str, Definition] = {
    "retinanet": Definition(
        build=partial(_retinanet, body="resnext50_32x4d", classes=264, anchors=9, frozen=True),
        size=800,
        optimizer="adam-fused",
        assumed="MLPerf: ResNeXt-50 32x4d, frozen norms and first stages; all anchors in the loss; "
        "matching of anchors is not counted",
    ),
    "ssd320-fpn": Definition(
        build=partial(_retinanet, body="resnet50", classes=90, anchors=6, frozen=False),
        size=320,
        optimizer="momentum",
        compiled=True,
        assumed="DeepLearningExamples' SSD320 in TensorFlow: ResNet-50 with a feature pyramid and "
        "shared heads, whose norms are left out; element-wise ops are fused by XLA",
    ),
    "maskrcnn": Definition(
        build=_mask_rcnn,
        size=800,
        optimizer="momentum",
        assumed="images of 800 x 1200; 256 anchors, 512 boxes, 128 masks of each; non-maximum "
        "suppression and matching are not counted",
    ),
}
