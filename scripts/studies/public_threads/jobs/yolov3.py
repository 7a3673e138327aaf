# ruff: noqa: E402  # imports of a clone
"""YOLOv3-SPP of train.py of 2019-07-29, 32 images of 416 x 416 of a GPU; beside ./yolo.

Seven boxes an image, the mean of COCO, each for three anchors: those that fit badly are not left
out, as that depends on values. The loss is written again, as the repository's decides by values.
"""

import sys
import types

sys.path.insert(0, "yolo")
sys.modules["cv2"] = types.SimpleNamespace(setNumThreads=lambda _: None)

import torch
from models import Darknet
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from utils.utils import bbox_iou, wh_iou

GAINS = {"giou": 1.43, "cls": 11.7, "cls_pw": 4.81, "obj": 11.5, "obj_pw": 1.56}
IMAGES, BOXES = 32, 7


def layer_loss(layer, scores, targets):
    """Loss of boxes, classes and objects of a layer."""
    count = len(layer.anchor_vec)
    sizes = targets[:, 4:6] * layer.ng
    torch.stack([wh_iou(each, sizes) for each in layer.anchor_vec], 0)
    anchor = torch.arange(count, device=scores.device).repeat_interleave(len(targets))
    targets, sizes = targets.repeat([count, 1]), sizes.repeat([count, 1])
    image, kind = targets[:, :2].long().t()
    places = targets[:, 2:4] * layer.ng
    column, row = places.long().t()
    chosen = scores[image, anchor, row, column]
    objects = torch.zeros_like(scores[..., 0])
    objects[image, anchor, row, column] = 1.0
    boxes = torch.cat(
        (torch.sigmoid(chosen[:, :2]), torch.exp(chosen[:, 2:4]) * layer.anchor_vec[anchor]), 1
    )
    wanted = torch.cat((places - places.floor(), sizes), 1)
    giou = bbox_iou(boxes.t(), wanted, x1y1x2y2=False, GIoU=True)
    classes = torch.zeros_like(chosen[:, 5:])
    classes[torch.arange(len(kind), device=scores.device), kind] = 1.0
    weights = [scores.new_full((1,), GAINS[name]) for name in ("cls_pw", "obj_pw")]
    loss = GAINS["giou"] * (1.0 - giou).mean()
    loss = loss + GAINS["cls"] * bce(chosen[:, 5:], classes, pos_weight=weights[0])
    return loss + GAINS["obj"] * bce(scores[..., 4], objects, pos_weight=weights[1])


class WithLoss(torch.nn.Module):
    """The model with its loss."""

    def __init__(self):
        super().__init__()
        self.net = Darknet("yolo/cfg/yolov3-spp.cfg")

    def forward(self, images, targets):
        """Loss of a batch."""
        layers = [self.net.module_list[number][0] for number in self.net.yolo_layers]
        outputs = self.net(images)
        return sum(layer_loss(*each, targets) for each in zip(layers, outputs, strict=True))


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    targets = torch.rand(IMAGES * BOXES, 6) * 0.8 + 0.1
    return WithLoss(), {"images": torch.zeros(IMAGES, 3, 416, 416), "targets": targets}
