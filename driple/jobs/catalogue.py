"""The models of the zoo by name (paper, Table 2).

    MODELS[name] -> Model(family, build)

Importing this module does not import TensorFlow: a model's file is imported when it is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from driple.errors import ConfigError
from driple.jobs.fuzzy_match import alike
from driple.jobs.workload import DATA_SETS, DataSet, Workload

__all__ = ["MODELS", "Model", "model_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """One model of the zoo.

    Attributes:
        family: name of its family; the family split holds out all models of one.
        builder: name of the function, and of its file in `driple.jobs`, that adds it to a graph.
        arguments: what the function takes besides the net, the input and the data set.
        weight_decay: factor of the L2 loss; image models have one, as in tf_cnn_benchmarks.
        imagenet_size: height and width of the ImageNet images that it takes, in pixels.
        reads: `images` or `text`.
    """

    family: str
    builder: tuple[str, str]
    arguments: Mapping[str, int | bool] = field(default_factory=dict)
    weight_decay: float = 0.0
    imagenet_size: int = 224
    reads: str = "images"

    def data_of(self, workload: Workload) -> DataSet:
        """Shapes of the workload's data set as this model takes it."""
        if workload.data_set != "imagenet":
            return workload.data
        return replace(workload.data, image_size=self.imagenet_size)

    def logits(self, net: Any, inputs: Any, data: Any) -> Any:
        """Add the model to the default TensorFlow graph; shape [rows, classes]."""
        module, function = self.builder
        build = getattr(import_module(f"driple.jobs.tensorflow.{module}"), function)
        return build(net, inputs, data, **self.arguments)


def _models() -> dict[str, Model]:
    models = {
        "alexnet": Model(
            family="alexnet",
            builder=("alexnet", "alexnet"),
            weight_decay=1e-4,
            imagenet_size=227,
        ),
        "lenet": Model(family="lenet", builder=("lenet", "lenet"), weight_decay=1e-4),
        "overfeat": Model(
            family="overfeat",
            builder=("overfeat", "overfeat"),
            weight_decay=1e-4,
            imagenet_size=231,
        ),
        "googlenet": Model(
            family="googlenet", builder=("googlenet", "googlenet"), weight_decay=1e-4
        ),
    }
    for name in ("inception3", "inception4"):
        models[name] = Model(
            family="inception", builder=("inception", name), weight_decay=4e-5, imagenet_size=299
        )
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
            reads="text",
        )
    for name, units, layers, both_ways in (
        ("nmt_small", 512, 2, False),
        ("nmt_medium", 512, 4, True),
        ("nmt_big", 1024, 4, True),
    ):
        models[name] = Model(
            family="nmt",
            builder=("nmt", "nmt"),
            arguments={"units": units, "layers": layers, "bidirectional": both_ways},
            reads="text",
        )
    return models


MODELS = _models()


def model_of(workload: Workload) -> Model:
    """The model of a workload.

    Raises:
        ConfigError: no model has this name, and the message offers the nearest ones, or
            all; or it does not read the workload's data set.
    """
    if workload.model not in MODELS:
        near = alike(workload.model, MODELS, most=3)
        offer = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(MODELS)}"
        raise ConfigError(f"no model is called '{workload.model}'; {offer}")
    model = MODELS[workload.model]
    if workload.data.kind != model.reads:
        fit = ", ".join(name for name, data in DATA_SETS.items() if data.kind == model.reads)
        raise ConfigError(
            f"{workload.model} reads {model.reads}, and {workload.data_set} holds "
            f"{workload.data.kind}; choose a data set of {model.reads}: {fit}"
        )
    return model
