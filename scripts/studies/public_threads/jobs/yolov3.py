"""YOLOv3-SPP of train.py of 2019-07-29, 32 images of 416 x 416 of a GPU; beside ./yolo.

Seven boxes an image, the mean of COCO.
"""

import sys
import types

sys.path.insert(0, "yolo")
sys.modules["cv2"] = types.SimpleNamespace(setNumThreads=lambda _: None)

import torch
from models import Darknet
from utils.utils import compute_loss

GAINS = {
    "giou": 1.43, "xy": 4.27, "wh": 0.265, "cls": 11.7, "cls_pw": 4.81, "obj": 11.5,
    "obj_pw": 1.56, "iou_t": 0.281,
}  # fmt: skip
IMAGES, BOXES = 32, 7


class WithLoss(torch.nn.Module):
    """The model with its loss."""

    def __init__(self):
        super().__init__()
        self.net = Darknet("yolo/cfg/yolov3-spp.cfg")
        self.net.hyp = GAINS

    def forward(self, images, targets):
        """Loss of a batch."""
        return compute_loss(self.net(images), targets, self.net)[0]


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    targets = torch.rand(IMAGES * BOXES, 6) * 0.8 + 0.1
    targets[:, 0] = torch.arange(IMAGES).repeat_interleave(BOXES)
    targets[:, 1] = 0
    return WithLoss(), {"images": torch.zeros(IMAGES, 3, 416, 416), "targets": targets}
