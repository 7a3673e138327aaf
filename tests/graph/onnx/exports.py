"""ONNX files of small PyTorch models, and the steps traced from the same models."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from driple.graph.cost import cost_of_graph
from driple.graph.onnx.reader import read_onnx_step
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.options import ReadOptions
from driple.graph.torch.step import StepOptions, traced_step

__all__ = ["exported", "product_flops", "read_model", "read_onnx", "traced"]


def read_onnx(path: Path, **more: Any) -> OpGraph:
    """The step of an ONNX file, with options of `read_onnx_step`."""
    return read_onnx_step(path, **more)[0]


def exported(
    model: nn.Module,
    inputs: Sequence[torch.Tensor],
    path: Path,
    *,
    dynamo: bool = False,
    **options: Any,
) -> Path:
    """Write the model, with random weights, so that the exporter leaves none of them out."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    names = [f"x{i}" for i in range(len(inputs))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            batch = torch.export.Dim("batch")
            torch.onnx.export(
                model.eval(), tuple(inputs), path, dynamo=True, input_names=names,
                dynamic_shapes=tuple({0: batch} for _ in inputs), optimize=False, verbose=False,
                **options,
            )  # fmt: skip
            return path
        data = io.BytesIO()
        torch.onnx.export(
            model.train(), tuple(inputs), data, dynamo=False, input_names=names,
            training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
            dynamic_axes={name: {0: "batch"} for name in names}, **options,
        )  # fmt: skip
    path.write_bytes(data.getvalue())
    return path


def read_model(path: Path, batch_size: int | None = None, **inputs: tuple[int, ...]) -> OpGraph:
    """The step of an ONNX file."""
    return read_onnx(path, options=ReadOptions(batch_size=batch_size, inputs=inputs))


def traced(model: nn.Module, inputs: Any) -> OpGraph:
    """The traced step, with the cross entropy of its outputs, whose classes are as for ONNX."""

    def loss(outputs: Any) -> torch.Tensor:
        classes = 1 if outputs.dim() > 3 else outputs.dim() - 1
        moved = outputs.movedim(classes, 1)
        labels = torch.zeros(moved.shape[:1] + moved.shape[2:], dtype=torch.int64, device="meta")
        return nn.functional.cross_entropy(moved, labels)

    given = tuple(one.to("meta") for one in inputs)
    return traced_step(model.to("meta").train(), given, loss, StepOptions(compute_capability=None))


def product_flops(graph: OpGraph) -> Mapping[str, float]:
    """FLOPs of the step's convolutions and matrix products, by family."""
    flops_of = dict.fromkeys(PRODUCT_FAMILIES, 0.0)
    for flops, kind in zip(cost_of_graph(graph).per_step[:, 0].tolist(), graph.kinds, strict=True):
        family = family_of(kind)
        if family in flops_of:
            flops_of[family] += flops
    return flops_of
