"""Let torchvision be imported where its compiled ops cannot be loaded.

The torchvision of PyPI is built for CUDA; beside a CPU build of torch its library does not load,
and `import torchvision` fails on an op that it wants to describe. Declaring these ops is all that
the import needs; they have no kernels, so calling one still fails, with its name.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["declare_torchvision_ops"]

# Signatures of torchvision/csrc/ops/nms.cpp and quantized/cpu/qnms_kernel.cpp.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
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
    ops = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for schema in _SCHEMAS:
        ops.define(schema)  # type: ignore[no-untyped-call]
    _declared.append(ops)
