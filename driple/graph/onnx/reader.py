"""READ: an ONNX file -> OpGraph of the training step that follows from it. Nothing is executed.

    file --parse, check--> model --sizes--> forward pass --rules--> loss, backward pass --> OpGraph

Entry point: `read_onnx_step`. External data is never opened: the shapes of weights are in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driple.errors import GraphError
from driple.extras import require_onnx
from driple.graph.filebytes import DEFAULT_MAX_BYTES, unpacked, unpacked_bytes
from driple.graph.onnx.assemble import assembled_graph
from driple.graph.onnx.inputs import BoundInputs, bind_inputs
from driple.graph.onnx.model import parse_model
from driple.graph.onnx.parameters import find_parameters
from driple.graph.onnx.sizes import Sizes, infer_sizes
from driple.graph.onnx.step import LOSSES, DerivedStep, derive_step
from driple.graph.onnx.update import DEFAULT_OPTIMIZER, update_of
from driple.graph.opgraph import OpGraph, ReadReport
from driple.graph.options import ReadOptions
from driple.remarks import Remark, remark

__all__ = ["read_onnx_step"]

_NO_OPTIONS = ReadOptions()
_FEW = 3
_FOLDED = "FuseBatchNormIntoConv"


def read_onnx_step(
    path: str | Path,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    options: ReadOptions = _NO_OPTIONS,
    optimizer: str = DEFAULT_OPTIMIZER,
    loss: str = LOSSES[0],
    precision: str = "fp32",
    content: bytes | None = None,
) -> tuple[OpGraph, int | None]:
    """The training step of an ONNX model: its forward pass, and what follows from it.

    The loss is that of the first output by labels. Floating-point weights are trained;
    batch norms and dropout work as in training. The optimizer is not in the file.

    Args:
        path: the file, gzipped or not.
        max_bytes: largest file that is read, and largest size after gunzip.
        options: batch size, and shapes of inputs by their names.
        optimizer: of the update, such as `adamw`.
        loss: `cross-entropy`, `bce` or `mse`.
        precision: `fp32`, `bf16`, `fp16`, or with `amp-` before it: only products are in half.
        content: what the file holds, where it is read already; `path` is its name in messages.

    Returns:
        The graph, and the samples of a batch, None if open or unknown.

    Raises:
        GraphError: no such file, too large, cut off, no ONNX model, an opset that is too new,
            operators that are not ONNX's own, quantised, loops, or options that contradict it.
        ConfigError: no such optimizer.
        MissingExtraError: the package onnx is not installed.
    """
    try:
        if content is None:
            data = unpacked_bytes(Path(path), max_bytes)
        else:
            data = unpacked(content, max_bytes)
        return _step_of(data, options, optimizer, loss, precision)
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}; give an ONNX file") from error
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def _step_of(
    data: bytes, options: ReadOptions, optimizer: str, loss: str, precision: str
) -> tuple[OpGraph, int | None]:
    require_onnx("reading an ONNX model")
    model = parse_model(data)
    stored = {one.name for one in model.graph.initializer}
    inputs = bind_inputs([one for one in model.graph.input if one.name not in stored], options)
    sizes = infer_sizes(model, inputs)
    parameters = find_parameters(model, sizes)
    step = derive_step(model, sizes, parameters, loss=loss, precision=precision)
    update = update_of([step.parameters[name] for name in step.gradients], optimizer)
    graph = assembled_graph(step, update, _report(model, step, inputs, sizes))
    return graph, inputs.batch_size()


def _report(model: Any, step: DerivedStep, inputs: BoundInputs, sizes: Sizes) -> ReadReport:
    nodes = step.tape.nodes
    num_open = sum(node.is_open for node in nodes)
    shapes = [[read.shape for read in node.outputs] for node in nodes]
    shapeless = sum(bool(each) and all(shape is None for shape in each) for each in shapes)
    by_data = sum(any(shape is None or -1 in shape for shape in each) for each in shapes)
    said: list[Remark] = []
    if num_open:
        said.append(_unknown_sizes(num_open, len(nodes), inputs))
    if by_data:
        said.append(remark("sizes_of_data", num_ops=by_data, num_all=len(nodes), op_type="NonZero"))
    if _has_folded_norms(model):
        said.append(remark("folded_norms"))
    frozen = [name for name in step.parameters if name not in step.gradients]
    if frozen:
        said.append(
            remark(
                "frozen_parameters",
                num_parameters=len(step.parameters),
                num_names=len(frozen),
                names=_few(frozen),
            )
        )
    if sizes.guessed:
        said.append(
            remark("branches_of_data", num_names=len(sizes.guessed), names=_few(sizes.guessed))
        )
    return ReadReport(
        nodes_in_file=len(model.graph.node),
        nodes_without_shape=shapeless,
        unknown_dimensions=num_open,
        unknown_share=num_open / len(nodes) if nodes else 0.0,
        notes=(*said, *step.notes),
    )


def _unknown_sizes(count: int, total: int, inputs: BoundInputs) -> Remark:
    """The open sizes, with the inputs that set them."""
    forms = inputs.open_forms()
    names = [form.partition("=")[0] for form in forms]
    return remark(
        "unknown_sizes",
        num_unknown=count,
        num_ops=total,
        source="model",
        names=_few(names),
        num_names=len(names),
        open_inputs=tuple(forms[:_FEW]),
        num_open_inputs=len(forms),
        has_open_batch=any(inputs.is_batch_open(name) for name in names),
        unsized="",
    )


def _few(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name[:60] for name in names[:_FEW])


def _has_folded_norms(model: Any) -> bool:
    """Whether PyTorch's exporter says that it merged batch norms into other ops."""
    return any(_FOLDED in entry.value for node in model.graph.node for entry in node.metadata_props)
