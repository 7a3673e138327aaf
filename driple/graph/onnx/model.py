"""An ONNX file as a checked `ModelProto`: bounded, of known operators, with the weights left out.

    bytes --parse--> ModelProto --refuse what no training step follows from--> functions inlined,
    values of large tensors dropped

Nothing is executed, and external data is never opened: shapes and types of weights are in the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError

from driple.errors import GraphError
from driple.graph.onnx.library import inlined_functions
from driple.graph.onnx.lists import without_split_lists
from driple.storedfiles import is_lfs_pointer, lfs_advice

__all__ = ["DEFAULT_DOMAINS", "MOST_VALUES", "parse_model", "tensors_of"]

DEFAULT_DOMAINS = ("", "ai.onnx")
# Values of a tensor are kept up to this number: sizes, axes, permutations.
MOST_VALUES = 4096
_MOST_NODES, _MOST_TENSORS = 500_000, 200_000
_FIRST_WITH_OPSETS = 3  # IR version
_LARGEST_OPSET = 2**31 - 1
_MOST_RANK, _LARGEST_SIZE = 64, 2**31 - 1
_SNIFFED_BYTES = 4096
_FEW = 4
_QUANTISED = frozenset(
    {
        "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv",
        "QLinearMatMul", "ConvInteger", "MatMulInteger",
    }
)  # fmt: skip
_TEXT_CONTROLS = frozenset(b"\t\n\f\r")
# Indices of each input, and of the output if it is given; at most one ellipsis in each.
_TERM = rb"[A-Za-z ]*(\.\.\.)?[A-Za-z ]*"
_EQUATION = re.compile(rb"%b(,%b)*(->%b)?" % (_TERM, _TERM, _TERM))
_LOOPS = frozenset({"Loop", "Scan", "SequenceMap"})
_EXPORT = "export the float model that it was made from"


def parse_model(data: bytes) -> Any:
    """The model in a file's bytes.

    Raises:
        GraphError: no ONNX file, cut off, an operator set that is too new, operators of other
            domains, quantised, or more of anything than the bounds allow.
    """
    import onnx

    if not data.strip():
        raise GraphError("file is empty; an ONNX model was expected")
    if is_lfs_pointer(data):
        raise GraphError(lfs_advice("model"))
    if all(byte >= 32 or byte in _TEXT_CONTROLS for byte in data[:_SNIFFED_BYTES]):
        raise GraphError(
            "file is text, and an ONNX model is binary; give the file that torch.onnx.export or "
            "onnx.save wrote"
        )
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise GraphError(
            "file is cut off, or no ONNX model; copy it again, or export it again"
        ) from error
    if not model.HasField("graph") or not model.graph.node:
        raise GraphError("file holds no ONNX graph with nodes; export the model again")
    _check_names(model)
    _check_versions(model)
    _check_size(model)
    if model.functions:
        model = inlined_functions(model)
        _check_size(model)
    without_split_lists(model)
    _check_operators(model)
    _drop_values(model)
    return model


def tensors_of(graph: Any) -> Iterator[Any]:
    """All tensors stored in a graph: initializers, and attributes of its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _check_names(model: Any) -> None:
    """Raise GraphError if a name is no text: protobuf hands such bytes over as they are."""
    for name in _all_names(model):
        if not isinstance(name, str):
            raise GraphError(f"the name {bytes(name)[:40]!r} is no UTF-8; the file is corrupt")


def _all_names(model: Any) -> Iterator[Any]:
    yield from (one.domain for one in model.opset_import)
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        yield from (one.name for one in graph.initializer)
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
            yield from (text for entry in value.metadata_props for text in (entry.key, entry.value))
        for node in graph.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
            yield from (text for entry in node.metadata_props for text in (entry.key, entry.value))
            for attribute in node.attribute:
                yield attribute.name
                graphs += [attribute.g] if attribute.HasField("g") else []
                graphs += attribute.graphs


def _check_versions(model: Any) -> None:
    import onnx

    for imported in model.opset_import:
        if not 0 <= imported.version <= _LARGEST_OPSET:
            raise GraphError(
                f"file names version {imported.version} of the operators of "
                f"{imported.domain[:60] or 'ONNX'!r}; the file is corrupt"
            )
    newest = onnx.defs.onnx_opset_version()
    version = max((one.version for one in model.opset_import if one.domain in DEFAULT_DOMAINS),
                  default=0)  # fmt: skip
    if not version and model.ir_version < _FIRST_WITH_OPSETS:
        model.opset_import.add(version=1)
        return
    if not version:
        _check_operators(model)  # of other domains alone, most likely
        raise GraphError("file names no version of ONNX's operators; export the model again")
    if version > newest:
        raise GraphError(
            f"file uses opset {version}, and the installed onnx {onnx.__version__} knows up to "
            f"{newest}; export with opset_version={newest}, or install a newer onnx"
        )
    if model.ir_version > onnx.IR_VERSION:
        raise GraphError(
            f"file has IR version {model.ir_version}, and the installed onnx {onnx.__version__} "
            f"knows up to {onnx.IR_VERSION}; install a newer onnx"
        )


def _check_size(model: Any) -> None:
    from onnx import TensorProto

    graph, known = model.graph, frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    num_nodes = len(graph.node) + sum(len(function.node) for function in model.functions)
    if num_nodes > _MOST_NODES or len(graph.initializer) > _MOST_TENSORS:
        raise GraphError(
            f"model has {num_nodes} nodes and {len(graph.initializer)} tensors, at most "
            f"{_MOST_NODES} and {_MOST_TENSORS} are read"
        )
    for tensor in tensors_of(graph):
        if len(tensor.dims) > _MOST_RANK or any(
            not 0 <= size <= _LARGEST_SIZE for size in tensor.dims
        ):
            raise GraphError(
                f"tensor {tensor.name[:60]!r} has the shape {str(list(tensor.dims[:9]))[:80]}; "
                "the file is corrupt"
            )
        if tensor.data_type not in known:
            raise GraphError(
                f"tensor {tensor.name[:60]!r} has the element type {tensor.data_type}, which ONNX "
                "does not have; the file is corrupt"
            )
    seen: set[str] = set()
    for node in graph.node:
        for name in node.output:
            if name and name in seen:
                raise GraphError(f"two nodes give {name[:60]!r}; the file is corrupt")
            seen.add(name)


def _check_operators(model: Any) -> None:
    """Raise GraphError for operators that Driple has no rule for, with their names."""
    import onnx

    loops: Counter[str] = Counter()
    lists: Counter[str] = Counter()
    foreign: Counter[str] = Counter()
    quantised: Counter[str] = Counter()
    for node in _all_nodes(model.graph):
        if node.op_type == "Einsum":
            _check_equation(node)
        if node.domain not in DEFAULT_DOMAINS:
            foreign[f"{node.domain}.{node.op_type}"] += 1
            if _is_quantised(node.op_type):
                quantised[node.op_type] += 1
        elif node.op_type in _QUANTISED:
            quantised[node.op_type] += 1
        elif node.op_type in _LOOPS:
            loops[node.op_type] += 1
        elif not onnx.defs.has(node.op_type):
            (quantised if _is_quantised(node.op_type) else foreign)[node.op_type] += 1
        elif "Sequence" in node.op_type and node.op_type != "ReverseSequence":
            lists[node.op_type] += 1
    if quantised:
        raise GraphError(
            f"model is quantised ({_counted(quantised)}), which is for inference; {_EXPORT}"
        )
    if any(name.startswith("com.microsoft") for name in foreign):
        raise GraphError(
            f"model is optimised for inference by ONNX Runtime ({_counted(foreign)}); {_EXPORT}"
        )
    if foreign:
        raise GraphError(
            f"model has operators that are not ONNX's own ({_counted(foreign)}), and Driple does "
            "not know what they compute; export it without them"
        )
    _refuse_structure(loops, lists)


def _is_quantised(op_type: str) -> bool:
    return any(part in op_type for part in ("QLinear", "Quantize", "Integer", "Bnb4", "NBits"))


def _check_equation(node: Any) -> None:
    """Refuse an Einsum whose equation is none: onnx 1.23 does not return from some of them."""
    texts = [one.s for one in node.attribute if one.name == "equation"]
    if len(texts) != 1 or not _EQUATION.fullmatch(texts[0]):
        raise GraphError(
            f"Einsum {node.name[:60]!r} has the equation {str(texts[:1])[:80]}, which is none; the "
            "file is corrupt"
        )
    num_terms = texts[0].partition(b"->")[0].count(b",") + 1
    if num_terms != len(node.input):
        raise GraphError(
            f"Einsum {node.name[:60]!r} has {num_terms} terms in its equation {str(texts[0])[:80]} "
            f"and {len(node.input)} inputs; the file is corrupt"
        )


def _refuse_structure(loops: Counter[str], lists: Counter[str]) -> None:
    if loops:
        raise GraphError(
            f"model has loops ({_counted(loops)}), whose bodies run as often as the data decide; "
            "export it with fixed sizes (torch.onnx.export with dynamo=True unrolls loops)"
        )
    if lists:
        raise GraphError(
            f"model works on lists of tensors ({_counted(lists)}); export it with "
            "torch.onnx.export(..., dynamo=True) and without optimize=False, which uses tensors "
            "alone"
        )


def _all_nodes(graph: Any) -> Iterator[Any]:
    """Nodes of a graph and of the bodies of its loops and branches."""
    todo = [graph]
    while todo:
        for node in todo.pop().node:
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    todo.append(attribute.g)
                todo.extend(attribute.graphs)


def _counted(counts: Counter[str]) -> str:
    listed = [f"{count} {name[:40]}" for name, count in counts.most_common(_FEW)]
    return ", ".join(listed) + (", ..." if len(counts) > _FEW else "")


def _drop_values(model: Any) -> None:
    """Forget the values of large tensors, which nothing depends on."""
    for tensor in _large(tensors_of(model.graph)):
        for field in ("raw_data", "float_data", "int32_data", "string_data", "int64_data",
                      "double_data", "uint64_data"):  # fmt: skip
            tensor.ClearField(field)


def _large(tensors: Iterable[Any]) -> Iterator[Any]:
    for tensor in tensors:
        count = 1
        for size in tensor.dims:
            count *= size
        if count > MOST_VALUES:
            yield tensor
