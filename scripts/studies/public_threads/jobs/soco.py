# ruff: noqa: E402  # imports of a clone
"""SoCo of tools/SoCo_FPN_100ep.sh, 128 images of a GPU in three views; beside ./soco.

mmcv's ConvModule is here as FPN uses it: a convolution and a batch norm.
"""

import sys
import types

import torch

sys.path.insert(0, "soco")


class ConvModule(torch.nn.Module):
    """A convolution and a batch norm."""

    def __init__(self, inputs, outputs, size, padding=0, stride=1, **_):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, size, stride, padding, bias=False)
        self.bn = torch.nn.BatchNorm2d(outputs)

    def forward(self, images):
        """The norm of the convolution."""
        return self.bn(self.conv(images))


mmcv = types.ModuleType("mmcv.cnn")
mmcv.ConvModule, mmcv.xavier_init = ConvModule, None
sys.modules.update({"mmcv": types.ModuleType("mmcv"), "mmcv.cnn": mmcv})

contrast = types.ModuleType("contrast")
contrast.__path__ = ["soco/contrast"]
models = types.ModuleType("contrast.models")
models.__path__ = ["soco/contrast/models"]
sys.modules.update({"contrast": contrast, "contrast.models": models})

from contrast import resnet
from contrast.models import SoCo_FPN

SoCo_FPN.get_world_size = lambda: 4
ARGUMENTS = types.SimpleNamespace(
    contrast_num_negative=65536, contrast_momentum=0.99, contrast_temperature=0.07, output_size=7,
    aligned=True, feature_dim=128, head_type="early_return", in_channels=[256, 512, 1024, 2048],
    out_channels=256, num_outs=4, start_level=0, end_level=-1, add_extra_convs=False,
    extra_convs_on_inputs=0, relu_before_extra_convs=0, num_instances=1281167, batch_size=128,
    epochs=100, start_epoch=1,
)  # fmt: skip


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    images, boxes = torch.zeros(128, 3, 224, 224), torch.rand(128, 4, 5)
    matches = torch.ones(128, 16, 16)
    batch = {"im_1": images, "im_2": images, "im_3": torch.zeros(128, 3, 112, 112)}
    batch |= {"bboxs1_12": boxes, "bboxs1_13": boxes, "bboxs2": boxes, "bboxs3": boxes}
    batch |= {"corres_12": matches, "corres_13": matches}
    return SoCo_FPN.SoCo_FPN(resnet.resnet50, ARGUMENTS), batch
