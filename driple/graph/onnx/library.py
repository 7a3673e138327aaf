"""Calls of the onnx package on what a file holds: whatever it raises becomes a `GraphError`.

    NodeProto, TensorProto --onnx--> schema, attributes, array, shapes of the outputs

The package expects checked models, and raises errors of any kind on damaged ones (a `KeyError` for
an unknown element type, an `InferenceError`, an `IndexError` ...). No other module of this folder
hands it content of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError

__all__ = [
    "array_of",
    "attributes_of",
    "checked_attributes",
    "inlined_functions",
    "name_of",
    "outputs_of",
    "schema_of",
]

# What onnx raises on content that no exporter writes; its own errors are subclasses of these.
_RAISED = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RuntimeError,
    MemoryError,
)  # fmt: skip
_LONGEST_REASON, _LONGEST_NAME = 160, 60


@contextmanager
def _library_errors(place: str, advice: str = "the file is corrupt") -> Iterator[None]:
    """Turn what onnx raises within the block into a `GraphError`: PLACE (REASON); ADVICE."""
    from onnx.checker import ValidationError
    from onnx.defs import SchemaError
    from onnx.shape_inference import InferenceError

    try:
        yield
    except (*_RAISED, ValidationError, SchemaError, InferenceError) as error:
        words = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise GraphError(f"{place} ({words[:_LONGEST_REASON]}); {advice}") from error


def name_of(node: Any) -> str:
    """A node as messages call it."""
    return repr((node.name or (node.output[0] if node.output else ""))[:_LONGEST_NAME])


def array_of(tensor: Any, place: str) -> npt.NDArray[Any]:
    """The values of a `TensorProto` that lie in the file.

    Args:
        tensor: its sizes were checked (`parse_model`).
        place: what it is, as messages call it.

    Raises:
        GraphError: the values are not those of its shape and type.
    """
    from onnx import numpy_helper

    with _library_errors(f"{place} holds other values than its shape says"):
        return np.asarray(numpy_helper.to_array(tensor))


def inlined_functions(model: Any) -> Any:
    """The model without functions of its own: each call becomes the nodes of its function.

    Raises:
        GraphError: they cannot be inlined.
    """
    import onnx.inliner

    with _library_errors("functions of the model cannot be inlined", "export it without them"):
        return onnx.inliner.inline_local_functions(model)


@cache
def _schema(op_type: str, version: int) -> Any:
    import onnx

    return onnx.defs.get_schema(op_type, version, "")


def schema_of(node: Any, version: int) -> Any:
    """How an opset defines a node's operator.

    Raises:
        GraphError: the opset does not have it, or allows another number of inputs or outputs.
    """
    place = f"node {name_of(node)} is a {node.op_type[:40]}, which opset {version} does not have"
    with _library_errors(place, "export the model again"):
        schema = _schema(node.op_type, version)
    for count, least, most, kind in (
        (len(node.input), schema.min_input, schema.max_input, "inputs"),
        (len(node.output), schema.min_output, schema.max_output, "outputs"),
    ):
        if not least <= count <= most:
            raise GraphError(
                f"node {name_of(node)}, a {node.op_type}, has {count} {kind}, and ONNX allows "
                f"{least} to {most}; the file is corrupt"
            )
    return schema


def attributes_of(node: Any) -> Mapping[str, Any]:
    """Attributes by name; texts as the bytes that the file holds.

    Raises:
        GraphError: an attribute without a type, or of one that ONNX does not have.
    """
    from onnx import helper

    with _library_errors(f"node {name_of(node)}, a {node.op_type}, has a damaged attribute"):
        return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def checked_attributes(node: Any, schema: Any) -> Mapping[str, Any]:
    """Attributes by name, each of the type that ONNX states, and texts in UTF-8.

    Args:
        node: of the operator of this schema.
        schema: see `schema_of`.

    Raises:
        GraphError: one of another type, or a text that is not UTF-8.
    """
    attributes = attributes_of(node)
    for each in node.attribute:
        known = schema.attributes.get(each.name)
        if known is not None and int(known.type) != each.type:
            raise GraphError(
                f"node {name_of(node)}, a {node.op_type}: attribute {each.name[:40]} is of type "
                f"{each.type}, and ONNX says {int(known.type)}; the file is corrupt"
            )
        for text in (each.s, *each.strings):
            if not _is_text(text):
                raise GraphError(
                    f"node {name_of(node)}, a {node.op_type}: attribute {each.name[:40]} is "
                    f"{text[:40]!r}, which is no UTF-8; the file is corrupt"
                )
    return attributes


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def outputs_of(
    schema: Any,
    node: Any,
    types: Mapping[str, Any],
    values: Mapping[str, npt.NDArray[Any]],
    opsets: Sequence[Any],
) -> Mapping[str, Any]:
    """`TypeProto` of each output, as far as ONNX's own rules give one.

    Args:
        schema: see `schema_of`.
        node: whose outputs are wanted.
        types: `TypeProto` of its inputs by name.
        values: elements of inputs that are known.
        opsets: those that the model imports.

    Raises:
        GraphError: its inputs contradict the rules.
    """
    from onnx import numpy_helper, shape_inference

    with _library_errors(
        f"node {name_of(node)}, a {node.op_type}, does not follow ONNX's rules",
        "if you gave sizes of inputs, give those that the model was exported for, or else export "
        "it again",
    ):
        data = {
            name: numpy_helper.from_array(np.array(value, order="C"), name)
            for name, value in values.items()
        }
        outputs: Mapping[str, Any] = shape_inference.infer_node_outputs(
            schema, node, dict(types), data, opset_imports=list(opsets)
        )
        return outputs
