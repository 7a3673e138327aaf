"""Binary GraphDef, MetaGraphDef and SavedModel -> RawGraph, by protobuf, without TensorFlow.

Only the fields that Driple needs are described here; protobuf skips the others, tensor contents
among them. Nothing in the file is executed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from driple.errors import GraphError
from driple.graph.datatypes import NUMBER_OF
from driple.graph.tf.constants import LONGEST_CONTENT, VALUE_FIELDS, constant_of
from driple.graph.tf.raw import (
    LETTERS,
    MAX_NODES,
    MAX_VALUES,
    TEXTS,
    Constant,
    RawFunction,
    RawGraph,
    RawNode,
    Shape,
    colocated_with,
    costly_numbers,
    letters_of,
)
from driple.remarks import Remark, remark

__all__ = ["message_class", "raw_from_bytes", "raw_from_message"]

_FRAME = "frame_name"
_TEXT_KEYS = TEXTS | {_FRAME}
_INIT_SIGNATURE = b"__saved_model_init_op"
_PACKAGE = "driple.graph"
_ENUM = "DataType"
_Field = descriptor_pb2.FieldDescriptorProto

# Fields of each message: name, number, type (a scalar's name or a message's), `*` for repeated.
# The numbers are those of TensorFlow's public protos (tensorflow/core/framework/*.proto).
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "GraphDef": (("node", 1, "NodeDef*"), ("library", 2, "FunctionDefLibrary")),
    "NodeDef": (
        ("name", 1, "string"),
        ("op", 2, "string"),
        ("input", 3, "string*"),
        ("device", 4, "string"),
        ("attr", 5, "AttrEntry*"),
    ),
    "AttrEntry": (("key", 1, "string"), ("value", 2, "AttrValue")),
    "AttrValue": (
        ("list", 1, "ListValue"),
        ("s", 2, "string"),
        ("i", 3, "int64"),
        ("b", 5, "bool"),
        ("type", 6, "DataType"),
        ("shape", 7, "TensorShapeProto"),
        ("tensor", 8, "TensorProto"),
        ("func", 10, "NameAttrList"),
    ),
    "TensorProto": (
        ("dtype", 1, "DataType"),
        ("tensor_shape", 2, "TensorShapeProto"),
        ("tensor_content", 4, "string"),
        ("float_val", 5, "float*"),
        ("double_val", 6, "double*"),
        ("int_val", 7, "int32*"),
        ("int64_val", 10, "int64*"),
        ("bool_val", 11, "bool*"),
    ),
    "ListValue": (
        ("s", 2, "string*"),
        ("i", 3, "int64*"),
        ("b", 5, "bool*"),
        ("type", 6, "DataType*"),
        ("shape", 7, "TensorShapeProto*"),
        ("func", 9, "NameAttrList*"),
    ),
    "NameAttrList": (("name", 1, "string"),),
    "TensorShapeProto": (("dim", 2, "Dim*"), ("unknown_rank", 3, "bool")),
    "Dim": (("size", 1, "int64"),),
    "FunctionDefLibrary": (("function", 1, "FunctionDef*"),),
    "FunctionDef": (
        ("signature", 1, "OpDef"),
        ("node_def", 3, "NodeDef*"),
        ("ret", 4, "RetEntry*"),
        ("control_ret", 6, "RetEntry*"),
    ),
    "RetEntry": (("key", 1, "string"), ("value", 2, "string")),
    "OpDef": (("name", 1, "string"), ("input_arg", 2, "ArgDef*"), ("output_arg", 3, "ArgDef*")),
    "ArgDef": (("name", 1, "string"),),
    "SavedModel": (("saved_model_schema_version", 1, "int64"), ("meta_graphs", 2, "MetaGraphDef*")),
    "MetaGraphDef": (
        ("meta_info_def", 1, "MetaInfoDef"),
        ("graph_def", 2, "GraphDef"),
        ("collection_def", 4, "CollectionEntry*"),
        ("signature_def", 5, "SignatureEntry*"),
    ),
    "SignatureEntry": (("key", 1, "string"), ("value", 2, "SignatureDef")),
    "SignatureDef": (("outputs", 2, "TensorInfoEntry*"),),
    "TensorInfoEntry": (("key", 1, "string"), ("value", 2, "TensorInfo")),
    "TensorInfo": (("name", 1, "string"),),
    "CollectionEntry": (("key", 1, "string"), ("value", 2, "CollectionDef")),
    "CollectionDef": (("node_list", 1, "NodeList"),),
    "NodeList": (("value", 1, "string*"),),
    "MetaInfoDef": (("tags", 4, "string*"),),
}
# The message of which one field is set, so that a zero can be told from nothing.
_ONE_OF = "AttrValue"
_SCALARS = {
    "string": _Field.TYPE_BYTES,  # as bytes: decoded by us, so that bad UTF-8 is our error
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "float": _Field.TYPE_FLOAT,
    "double": _Field.TYPE_DOUBLE,
}


@cache
def message_class(name: str) -> Any:
    """The protobuf class of one of our messages, such as `GraphDef`."""
    file = descriptor_pb2.FileDescriptorProto(
        name="driple/graph.proto", package=_PACKAGE, syntax="proto3"
    )
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        if message == _ONE_OF:
            described.oneof_decl.add(name="value")
        for field_name, number, kind in fields:
            field = described.field.add(name=field_name, number=number)
            if message == _ONE_OF:
                field.oneof_index = 0
            base = kind.removesuffix("*")
            field.label = _Field.LABEL_REPEATED if kind.endswith("*") else _Field.LABEL_OPTIONAL
            if base in _SCALARS:
                field.type = _SCALARS[base]
            elif base == _ENUM:
                field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{_ENUM}"
            else:
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{base}"
    types = file.enum_type.add(name=_ENUM)
    types.value.add(name="DT_INVALID", number=0)
    for type_name, number in NUMBER_OF.items():
        types.value.add(name=type_name, number=number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def raw_from_bytes(data: bytes) -> tuple[RawGraph, tuple[Remark, ...]]:
    """Parse a binary GraphDef, a SavedModel's `saved_model.pb` or a `.meta` of TensorFlow 1.

    Returns:
        The graph, and remarks on it.

    Raises:
        GraphError: the bytes are none of them, or are cut off.
    """
    if not data:
        raise GraphError("file is empty; a GraphDef (.pb, .pbtxt, .meta) was expected")
    if data[0] == 0x08:  # field 1 as a number: the version of a SavedModel
        graph, meta, notes = _meta_graph(_parsed("SavedModel", data))
    else:
        graph, meta, notes = _graph_or_meta_graph(data)
    if not graph.node:
        raise GraphError("graph has no nodes; a GraphDef of a training step was expected")
    raw = raw_from_message(graph)
    if meta is not None:
        raw.train_ops, raw.signatures = _train_ops(meta), _signatures(meta)
    return raw, notes


def _signatures(meta: Any) -> dict[str, tuple[str, ...]]:
    """Tensors that each signature of a MetaGraphDef gives, by its name."""
    tensors_of = {
        _text(entry.key): tuple(_text(item.value.name) for item in entry.value.outputs)
        for entry in meta.signature_def
        if entry.key != _INIT_SIGNATURE
    }
    return {name: outputs for name, outputs in tensors_of.items() if any(outputs)}


def _train_ops(meta: Any) -> tuple[str, ...]:
    """Names in the collection `train_op` of a MetaGraphDef."""
    return tuple(
        _text(name)
        for entry in meta.collection_def
        if entry.key == b"train_op"
        for name in entry.value.node_list.value
    )


def _parsed(name: str, data: bytes) -> Any:
    message = message_class(name)()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise GraphError(
            "bytes are no GraphDef or SavedModel, or are cut off; write the graph again "
            "(tf.io.write_graph, or GraphDef.SerializeToString)"
        ) from error
    return message


def _graph_or_meta_graph(data: bytes) -> tuple[Any, Any, tuple[Remark, ...]]:
    """A GraphDef, or a MetaGraphDef's and itself; both begin with field 1, only nodes tell.

    Read as a GraphDef, a MetaGraphDef is no protobuf or has one node, whose op is a list of ops.
    """
    graph, failed = None, None
    try:
        graph = _parsed("GraphDef", data)
    except GraphError as error:
        failed = error
    if graph is not None and _has_nodes(graph):
        return graph, None, ()
    try:
        meta = _parsed("MetaGraphDef", data)
    except GraphError:
        meta = None
    if meta is not None and _has_nodes(meta.graph_def):
        return meta.graph_def, meta, (remark("meta_graph"),)
    if failed is not None:
        raise failed
    return graph, None, ()


def _has_nodes(graph: Any) -> bool:
    """Whether there are nodes, and the first is one: it has a name, and its op a name too."""
    first = graph.node[0] if graph.node else None
    return bool(first and first.name and first.op and min(first.op) > ord(" "))


def _meta_graph(saved_model: Any) -> tuple[Any, Any, tuple[Remark, ...]]:
    """The graph, and the whole, of the meta graph tagged `train`, else the first one's."""
    metas = list(saved_model.meta_graphs)
    if not metas:
        raise GraphError("SavedModel holds no meta graph; save the model again")
    tags = [[_text(tag) for tag in meta.meta_info_def.tags] for meta in metas]
    chosen = next((i for i, mine in enumerate(tags) if "train" in mine), 0)
    named = ", ".join(tags[chosen]) or "no tag"
    notes = (remark("saved_model", num_graphs=len(metas), tags=named),)
    return metas[chosen].graph_def, metas[chosen], notes


def raw_from_message(message: Any) -> RawGraph:
    """The plain form of a parsed GraphDef.

    Raises:
        GraphError: too many nodes, or a name that is no UTF-8.
    """
    if len(message.node) > MAX_NODES:
        raise GraphError(f"graph has {len(message.node)} nodes; at most {MAX_NODES} are read")
    graph = RawGraph(nodes=[_node(node) for node in message.node])
    for function in message.library.function:
        name = _text(function.signature.name)
        graph.functions[name] = RawFunction(
            name=name,
            arguments=[_text(arg.name) for arg in function.signature.input_arg],
            outputs=[_text(arg.name) for arg in function.signature.output_arg],
            nodes=[_node(node) for node in function.node_def],
            returns={_text(entry.key): _text(entry.value) for entry in function.ret},
            control_returns=tuple(_text(entry.value) for entry in function.control_ret),
        )
    return graph


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise GraphError(
            f"name {value[:40]!r} is no UTF-8; the file is corrupt or no GraphDef"
        ) from error


def _node(node: Any) -> RawNode:
    raw = RawNode(
        name=_text(node.name),
        op=_text(node.op),
        device=_text(node.device),
        inputs=[_text(item) for item in node.input],
    )
    types: dict[str, tuple[int, ...]] = {}
    functions: dict[str, tuple[str, ...]] = {}
    letters: dict[str, tuple[int, ...]] = {}
    attributes: dict[str, tuple[int, ...]] = {}
    texts: dict[str, str] = {}
    shapes: dict[str, tuple[Shape, ...]] = {}
    for entry in {entry.key: entry for entry in node.attr}.values():  # the last of a key counts
        value, key = entry.value, _text(entry.key)
        kind, items = value.WhichOneof("value"), value.list
        if key == "_output_shapes":
            raw.shapes = tuple(_shape(shape) for shape in items.shape)
        elif value.type or any(items.type):
            types[key] = (value.type,) if value.type else tuple(items.type)
        elif value.func.name or any(item.name for item in items.func):
            called = [value.func] if value.func.name else items.func
            functions[key] = tuple(_text(item.name) for item in called)
        elif key == "_class":
            raw.colocated = colocated_with([_text(item) for item in items.s])
        elif key in _TEXT_KEYS:
            texts[key] = _text(value.s)
        elif key in LETTERS:
            letters[key] = letters_of(_text(value.s))
        elif kind == "tensor":
            raw.constant = _constant(value.tensor) if key == "value" else raw.constant
        elif kind == "shape" or items.shape:
            shapes[key] = tuple(map(_shape, items.shape or [value.shape]))
        elif kind in {"i", "b"} or items.i or items.b:
            attributes[key] = _numbers(value, kind)
    raw.frame = texts.pop(_FRAME, "")
    raw.types, raw.functions, raw.texts = types, functions, texts
    raw.attributes, raw.shape_attributes = attributes, shapes
    raw.numbers = costly_numbers(letters, attributes)
    return raw


def _numbers(value: Any, kind: str | None) -> tuple[int, ...]:
    """A whole number or bool, or all of a list."""
    if kind == "list":
        return tuple(value.list.i) or tuple(map(int, value.list.b))
    return (value.i if kind == "i" else int(value.b),)


def _constant(tensor: Any) -> Constant:
    """A constant; long contents are left where they are."""
    content = tensor.tensor_content
    values = next((v for name in VALUE_FIELDS if (v := getattr(tensor, name))), ())
    return constant_of(
        tensor.dtype,
        _shape(tensor.tensor_shape),
        [int(v) if isinstance(v, bool) else v for v in values[: MAX_VALUES + 1]],
        content if len(content) <= LONGEST_CONTENT else b"",
        is_long=len(content) > LONGEST_CONTENT,
    )


def _shape(shape: Any) -> Shape:
    return None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)
