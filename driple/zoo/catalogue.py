"""The models of the zoo by name, and the workloads that are measured on CPU settings.

    MODELS[name] -> Model(family, data sets, build)        cpu_workloads() -> tuple[Workload, ...]

Importing this module does not import TensorFlow: a model's file is imported when it is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from driple.errors import ConfigError
from driple.zoo.workload import OPTIMIZERS, Workload

__all__ = ["MODELS", "Model", "cpu_workloads", "model_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """One model of the zoo.

    Attributes:
        family: name of its family; the family split holds out all models of one.
        builder: name of the function, and of its file in `driple.zoo`, that adds it to a graph.
        arguments: what the function takes besides the net, the input and the data set.
        weight_decay: factor of the L2 loss over all weights.
    """

    family: str
    builder: tuple[str, str]
    arguments: Mapping[str, int | bool] = field(default_factory=dict)
    weight_decay: float = 0.0

    def logits(self, net: Any, inputs: Any, data: Any) -> Any:
        """Add the model to the default TensorFlow graph; shape [rows, classes]."""
        module, function = self.builder
        build = getattr(import_module(f"driple.zoo.{module}"), function)
        return build(net, inputs, data, **self.arguments)


def _models() -> dict[str, Model]:
    models = {
        "alexnet": Model(family="alexnet", builder=("alexnet", "alexnet"), weight_decay=1e-4),
        "lenet": Model(family="lenet", builder=("lenet", "lenet")),
        "overfeat": Model(family="overfeat", builder=("overfeat", "overfeat"), weight_decay=1e-4),
        "googlenet": Model(
            family="googlenet", builder=("googlenet", "googlenet"), weight_decay=1e-4
        ),
    }
    for depth in (11, 16, 19):
        models[f"vgg{depth}"] = Model(
            family="vgg", builder=("vgg", "vgg"), arguments={"depth": depth}, weight_decay=5e-4
        )
    for depth in (20, 32, 44, 56, 110, 50, 101, 152):
        for version, suffix in ((1, ""), (2, "_v2")):
            models[f"resnet{depth}{suffix}"] = Model(
                family=f"resnet{suffix}",
                builder=("resnet", "resnet"),
                arguments={"depth": depth, "version": version},
                weight_decay=1e-4,
            )
    for depth, growth in ((40, 12), (100, 12), (100, 24)):
        models[f"densenet{depth}_k{growth}"] = Model(
            family="densenet",
            builder=("densenet", "densenet"),
            arguments={"depth": depth, "growth": growth},
            weight_decay=1e-4,
        )
    for name, units, heads, averaged in (
        ("transformer", 512, 8, False),
        ("transformer_aan", 512, 8, True),
        ("transformer_big", 1024, 16, False),
    ):
        models[name] = Model(
            family="transformer_aan" if averaged else "transformer",
            builder=("transformer", "transformer"),
            arguments={"units": units, "heads": heads, "averaged": averaged},
        )
    for name, units, layers in (("nmt_small", 512, 2), ("nmt_medium", 1024, 4)):
        models[name] = Model(
            family="nmt", builder=("nmt", "nmt"), arguments={"units": units, "layers": layers}
        )
    return models


MODELS = _models()


def model_of(workload: Workload) -> Model:
    """The model of a workload.

    Raises:
        ConfigError: no model has this name; the message offers the nearest ones.
    """
    if workload.model not in MODELS:
        import difflib

        near = difflib.get_close_matches(workload.model, MODELS, n=3, cutoff=0.3)
        raise ConfigError(
            f"no model is called '{workload.model}'; did you mean {', '.join(near or MODELS)}?"
        )
    return MODELS[workload.model]


# Model, data set, width and batch sizes whose steps take a few tenths of a second on 0.4 of a core
# behind 200 Mbit/s.
_CPU_GRID: tuple[tuple[str, str, float, tuple[int, ...]], ...] = (
    ("alexnet", "cifar10", 0.5, (32, 64, 128)),
    ("alexnet", "cifar10", 0.25, (64, 128, 256)),
    ("lenet", "mnist", 0.5, (64, 128, 256)),
    ("lenet", "cifar10", 0.25, (128, 256, 384)),
    ("vgg11", "imagenet64", 0.125, (32, 64, 128)),
    ("vgg16", "cifar10", 0.125, (64, 128, 192)),
    ("overfeat", "imagenet64", 0.125, (16, 32, 64)),
    ("overfeat", "cifar10", 0.125, (64, 128, 256)),
    ("googlenet", "imagenet64", 0.25, (4, 6, 8)),
    ("googlenet", "cifar10", 0.25, (16, 32, 64)),
    ("resnet20", "cifar10", 1.0, (16, 32, 64)),
    ("resnet32", "cifar10", 1.0, (12, 24)),
    ("resnet56", "cifar10", 0.5, (12, 24, 48)),
    ("resnet20_v2", "cifar10", 1.0, (16, 32, 48)),
    ("resnet44_v2", "cifar10", 0.5, (16, 32, 48)),
    ("densenet40_k12", "cifar10", 1.0, (2, 4, 6)),
    ("densenet40_k12", "cifar10", 0.5, (8, 16)),
    ("transformer", "europarl-short", 0.125, (32, 64, 96)),
    ("transformer_aan", "europarl-short", 0.125, (16, 32, 64)),
    ("nmt_small", "europarl-short", 0.125, (32, 64, 128)),
    ("nmt_medium", "europarl-short", 0.0625, (64, 96, 128)),
)
_PER_MODEL = 8


def cpu_workloads() -> tuple[Workload, ...]:
    """The workloads measured on CPU settings, in an order that mixes families and sizes.

    Each row of the grid takes `_PER_MODEL` of its combinations of batch size, optimizer and
    synchronisation, such that each value of each factor comes up about equally often.
    """
    rounds: list[list[Workload]] = [[] for _ in range(_PER_MODEL)]
    for row, (model, data_set, width, batch_sizes) in enumerate(_CPU_GRID):
        for i in range(_PER_MODEL):
            rounds[i].append(
                Workload(
                    model=model,
                    data_set=data_set,
                    batch_size=batch_sizes[(i + row) % len(batch_sizes)],
                    optimizer=OPTIMIZERS[(i + row) % len(OPTIMIZERS)],
                    sync=(i // len(OPTIMIZERS) + i + row // 2) % 2 == 0,
                    width=width,
                )
            )
    return tuple(workload for part in rounds for workload in part)
