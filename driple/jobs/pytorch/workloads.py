"""The built-in workloads: the models of the paper's Table II, and those of its section VI by depth.

    name -> Workload(build the model, kind of its data)

Variants of the micro characterization are names too: `resnet50-nores`, `resnet50-nonorm`, ...
Importing this module does not import torch.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from driple.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = [
    "IMAGENET_SAMPLES",
    "MACRO",
    "WORKLOADS",
    "PyTorchWorkload",
    "pytorch_workload_named",
]

# What the paper trains on: images of ImageNet-1k, questions of SQuAD 2.0.
IMAGENET_SAMPLES, SQUAD_SAMPLES = 1_281_167, 130_319


@dataclass(frozen=True, kw_only=True, slots=True)
class PyTorchWorkload:
    """A model to train.

    Attributes:
        name: of the workload.
        builder: file in `driple.jobs.pytorch.models` and class in it.
        arguments: of the class.
        kind: of its data: `images` or `tokens`.
        image_size: height and width of the images that the paper trains it on, pixels.
        least_size: the smallest images it takes.
        length: tokens of a sample.
        batch_size: samples of a device in an iteration, as the paper's figures have it.
        samples: of an epoch of the paper's data set.
    """

    name: str
    builder: tuple[str, str]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "images"
    image_size: int = 224
    least_size: int = 32
    length: int = 128
    batch_size: int = 32
    samples: int = IMAGENET_SAMPLES

    def build(self, num_classes: int = 1000) -> nn.Module:
        """The model; for images with as many classes as asked."""
        module, name = self.builder
        model = getattr(import_module(f"driple.jobs.pytorch.models.{module}"), name)
        arguments = dict(self.arguments)
        if self.kind == "images":
            arguments["num_classes"] = num_classes
        built: nn.Module = model(**arguments)
        return built

    def loss(self) -> Callable[..., Tensor]:
        """Cross entropy of classes, or of where an answer begins and ends."""
        if self.kind == "images":
            from torch.nn.functional import cross_entropy

            return cross_entropy
        from driple.jobs.pytorch.models.bert import answer_loss

        return answer_loss


def _workloads() -> dict[str, PyTorchWorkload]:
    workloads = [
        PyTorchWorkload(name="alexnet", builder=("alexnet", "AlexNet"), least_size=63),
        PyTorchWorkload(name="mobilenet_v2", builder=("mobilenet", "MobileNetV2")),
        PyTorchWorkload(name="squeezenet", builder=("squeezenet", "SqueezeNet")),
        PyTorchWorkload(name="shufflenet", builder=("shufflenet", "ShuffleNetV2")),
    ]
    for depth in (18, 34, 50, 101, 152):
        for ending, options in (("", {}), ("-nores", {"residual": False}),
                                ("-nonorm", {"norm": False})):  # fmt: skip
            workloads.append(
                PyTorchWorkload(
                    name=f"resnet{depth}{ending}",
                    builder=("resnet", "ResNet"),
                    arguments={"depth": depth, **options},
                )
            )
    for depth in (11, 13, 16, 19):
        for ending, options in (("", {}), ("-norm", {"norm": True})):
            workloads.append(
                PyTorchWorkload(
                    name=f"vgg{depth}{ending}",
                    builder=("vgg", "VGG"),
                    arguments={"depth": depth, **options},
                )
            )
    workloads += [
        PyTorchWorkload(
            name=f"bert-{size}",
            builder=("bert", "Bert"),
            arguments={"size": size},
            kind="tokens",
            batch_size=4,
            samples=SQUAD_SAMPLES,
        )
        for size in ("tiny", "base", "large")
    ]
    return {workload.name: workload for workload in workloads}


WORKLOADS: Mapping[str, PyTorchWorkload] = MappingProxyType(_workloads())

# Table II, and the models of figure 16.
MACRO = ("alexnet", "mobilenet_v2", "squeezenet", "shufflenet", "resnet18", "resnet50", "vgg11",
         "bert-large")  # fmt: skip


def pytorch_workload_named(name: str) -> PyTorchWorkload:
    """The workload of this name.

    Raises:
        ConfigError: there is none; the message offers the nearest.
    """
    if name not in WORKLOADS:
        near = difflib.get_close_matches(name, WORKLOADS, n=3, cutoff=0.3) or list(MACRO)
        raise ConfigError(
            f"no workload is called '{name}'; did you mean {', '.join(near)}? A model of Hugging "
            "Face is hf:FOLDER or hf:ORG/NAME, one of timm is timm:NAME"
        )
    return WORKLOADS[name]
