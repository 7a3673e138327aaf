"""Training steps of models of timm, built by name on the meta device; no weights are downloaded."""

from __future__ import annotations

import difflib
import warnings
from typing import Any

import torch
from torch import nn

from driple.errors import ConfigError, DripleError, GraphError
from driple.graph.torch.data_dependence import NeedsValuesError
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.import_path import exception_words
from driple.jobs.pytorch.own_model import REAL_INPUTS, OwnStep
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

__all__ = ["built_model", "timm_step"]

_IMAGE_RANK = 3


def timm_step(
    name: str, *, batch_size: int, input_shape: tuple[int, ...] | None, step: StepOptions
) -> OwnStep:
    """The training step of a model of timm, with cross entropy over its classes.

    Args:
        name: as timm has it, such as `resnet50` or `vit_base_patch16_224.augreg_in21k`.
        batch_size: samples per device.
        input_shape: one image, (3, height, width); as timm's config of the model says if None.
        step: how it is trained.

    Raises:
        ConfigError: no such model, or it cannot be built for these images.
        GraphError: the step cannot be followed by shapes alone.
    """
    model, shape = built_model(name, input_shape)
    with torch.device("meta"):
        images = torch.zeros(batch_size, *shape)
        labels = torch.zeros(batch_size, dtype=torch.int64)

    def loss(outputs: Any) -> torch.Tensor:
        logits = outputs[0] if isinstance(outputs, tuple | list) else outputs  # distilled: a pair
        if logits.dim() != 2:
            raise GraphError(
                f"it has no classes: it returns {'x'.join(map(str, logits.shape))}; build it with "
                "a loss in FILE.py:FUNCTION"
            )
        return nn.functional.cross_entropy(logits, labels)

    try:
        graph = traced_step(model, images, loss, step)
    except DripleError as error:
        needs = isinstance(error, NeedsValuesError)
        other = f"; build it in FILE.py:FUNCTION, and {REAL_INPUTS}" if needs else ""
        raise type(error)(f"timm:{name}: {error}{other}") from error
    except Exception as error:  # the model's code may raise anything
        raise GraphError(
            f"the training step of timm:{name} fails on images of "
            f"{'x'.join(map(str, shape))}: {exception_words(error)}; give another --input, or "
            "build it in FILE.py:FUNCTION"
        ) from error
    return OwnStep(graph=graph, batch_size=batch_size, input_shape=shape)


def built_model(
    name: str, input_shape: tuple[int, ...] | None = None
) -> tuple[nn.Module, tuple[int, ...]]:
    """A model of timm on the meta device, ready to train, and one image that it takes.

    Args:
        name: as timm has it.
        input_shape: one image; the model is built for it if it can be.

    Raises:
        ConfigError: no such model, or it cannot be built for these images.
    """
    declare_torchvision_ops()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import timm

        base = name.partition(".")[0]
        if not timm.is_model(base):
            near = difflib.get_close_matches(base, timm.list_models(), n=3)
            offer = f"did you mean {', '.join(near)}?" if near else "see timm.list_models()"
            raise ConfigError(f"timm {timm.__version__} has no model '{name[:80]}'; {offer}")
        if input_shape is not None and len(input_shape) != _IMAGE_RANK:
            raise ConfigError(
                f"timm:{name} takes images; give --input CHANNELSxHEIGHTxWIDTH, got "
                f"{'x'.join(map(str, input_shape))}"
            )
        try:
            with torch.device("meta"):
                return _model(timm, name, input_shape)
        except Exception as error:  # of timm
            raise ConfigError(
                f"timm:{name} cannot be built: {exception_words(error)}; check the name and --input"
            ) from error


def _model(
    timm: Any, name: str, shape: tuple[int, ...] | None
) -> tuple[nn.Module, tuple[int, ...]]:
    """The model for images of this shape, which some of its kind are built for."""
    model = timm.create_model(name)
    usual = tuple(timm.data.resolve_model_data_config(model)["input_size"])
    if shape is None or shape == usual:
        return model.train(), usual
    for extra in ({"img_size": shape[1:], "in_chans": shape[0]}, {"in_chans": shape[0]}, {}):
        try:
            model = timm.create_model(name, **extra)
        except TypeError:  # no such parameter: built for any size
            continue
        break
    return model.train(), shape
