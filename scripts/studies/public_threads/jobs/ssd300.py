"""SSD300 with VGG-16 on Pascal VOC: 21 classes, 32 images of 300x300, three boxes each."""

import torch
import torchvision


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    model = torchvision.models.detection.ssd300_vgg16(
        weights=None, weights_backbone=None, num_classes=21
    )
    images = [torch.rand(3, 300, 300) for _ in range(32)]
    boxes = torch.tensor(
        [[10.0, 10.0, 80.0, 90.0], [50.0, 40.0, 200.0, 220.0], [5.0, 5.0, 30.0, 30.0]]
    )
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 5, 9])} for _ in range(32)]
    return model, (images, targets)
