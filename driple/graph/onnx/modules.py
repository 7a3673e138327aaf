"""Paths of a model's modules from what exporters write beside their nodes.

PyTorch's name scopes            ['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_5']
PyTorch's older node names       /layer1/layer1.0/conv1/Conv
Keras and TensorFlow node names  model/block1/conv1/Conv2D
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

__all__ = ["module_of"]

_SCOPES = "pkg.torch.onnx.name_scopes"
_LONGEST, _MOST_PARTS = 2000, 40
_WITHOUT_STACK = "_empty_nn_module_stack"


def module_of(node: Any, weights: Sequence[str]) -> str:
    """Path of the module that a node belongs to, dotted as in PyTorch; empty if unknown.

    Args:
        node: `NodeProto`.
        weights: names of the parameters that it reads, whose module it is in if nothing else says.
    """
    for entry in node.metadata_props:
        if entry.key == _SCOPES and len(entry.value) <= _LONGEST:
            return _from_scopes(entry.value)
    if "/" in node.name:
        return _from_path(node.name)
    owners = {name.rpartition(".")[0] for name in weights}
    return owners.pop() if len(owners) == 1 else ""


def _from_scopes(text: str) -> str:
    """The last module of a list of scopes, which ends in the op itself."""
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        return ""
    modules = [each for each in scopes[:-1] if each and not each.startswith(_WITHOUT_STACK)]
    return modules[-1] if modules else ""


def _from_path(name: str) -> str:
    """Parts of a path joined by dots; a part that begins with the one before takes its place."""
    parts = [part for part in name[:_LONGEST].split("/") if part][:-1][:_MOST_PARTS]
    kept: list[str] = []
    for part in parts:
        if kept and part.startswith(f"{kept[-1]}."):
            kept[-1] = part
        else:
            kept.append(part)
    return ".".join(kept)
