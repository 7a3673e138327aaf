"""Let torchvision's models be followed where its compiled ops cannot be loaded.

The torchvision of PyPI is built for CUDA; beside a CPU build of torch its library does not load,
and `import torchvision` fails on an op that it wants to describe. Its ops are then declared here:
torchvision itself has their shapes and gradients. On the CPU, `nms` is computed, and the others
give zeros of the right shape, which is enough for a step that is followed and never learned from.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["declare_torchvision_ops"]

_BOXES = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_IMAGES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_WINDOW = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_DEFORMED = "Tensor weight, Tensor offset, Tensor mask, Tensor bias"
# Signatures of torchvision/csrc/ops, in the order of their arguments there.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, Tensor rois, {_BOXES}, int sampling_ratio, bool aligned) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, "
    f"float rois_scale, int rois_zero_point, {_BOXES}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, Tensor rois, {_BOXES}, {_IMAGES}, int sampling_ratio, "
    "bool aligned) -> Tensor",
    f"roi_pool(Tensor input, Tensor rois, {_BOXES}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_BOXES}, {_IMAGES}) -> Tensor",
    f"ps_roi_align(Tensor input, Tensor rois, {_BOXES}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BOXES}, "
    f"int sampling_ratio, {_IMAGES}) -> Tensor",
    f"ps_roi_pool(Tensor input, Tensor rois, {_BOXES}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BOXES}, {_IMAGES}) "
    "-> Tensor",
    f"deform_conv2d(Tensor input, {_DEFORMED}, {_WINDOW}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, Tensor input, {_DEFORMED}, {_WINDOW}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cuda_version() -> int",
)
_SHAPED = tuple(
    name
    for name in (schema.partition("(")[0] for schema in _SCHEMAS)
    if name not in {"nms", "qnms", "qroi_align", "_cuda_version"}
)
_declared: list[Any] = []  # PyTorch forgets an op when the library that declared it is collected


def declare_torchvision_ops() -> None:
    """Make `import torchvision` possible; do nothing where it is, or is not installed.

    Call it before torchvision, or what imports it (timm, transformers), is imported. It imports
    torch, but not torchvision.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or _declared:
        return
    import torch

    for library in sorted(Path(spec.origin).parent.glob("_C*.so")):
        try:
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
        except OSError:
            continue
        return
    ops = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for schema in _SCHEMAS:
        ops.define(schema)  # type: ignore[no-untyped-call]
    ops.impl("nms", _nms, "CPU")  # type: ignore[no-untyped-call]
    ops.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    for name in _SHAPED:
        ops.impl(name, _zeros_of(name), "CPU")  # type: ignore[no-untyped-call]
    _declared.append(ops)
    torch.ops.load_library = _loaded_unless(Path(spec.origin).parent, torch.ops.load_library)  # type: ignore[method-assign]


def _loaded_unless(folder: Path, load: Any) -> Any:
    """Loading of libraries, except for torchvision's compiled ops, which are declared already."""

    def load_library(path: Any) -> None:
        if Path(path).parent != folder or not Path(path).name.startswith("_C"):
            load(path)

    return load_library


def _zeros_of(name: str) -> Any:
    """A kernel that gives zeros of the shapes that torchvision states for an op."""

    def kernel(*arguments: Any) -> Any:
        import torch
        from torch.utils._pytree import tree_map_only

        shapes = tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), arguments)
        results = getattr(torch.ops.torchvision, name)(*shapes)
        return tree_map_only(
            torch.Tensor, lambda tensor: torch.zeros_like(tensor, device="cpu"), results
        )

    return kernel


def _nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """Boxes that overlap no better one by more than a threshold, the best first."""
    import torch

    order = scores.argsort(descending=True)
    boxes = dets[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keeps = torch.ones(len(order), dtype=torch.bool)
    for position in range(len(order)):
        if keeps[position]:
            later = slice(position + 1, None)
            low = torch.maximum(boxes[position, :2], boxes[later, :2])
            high = torch.minimum(boxes[position, 2:], boxes[later, 2:])
            common = (high - low).clamp(min=0).prod(dim=1)
            joined = areas[position] + areas[later] - common
            keeps[later] &= common <= iou_threshold * joined
    return order[keeps]
