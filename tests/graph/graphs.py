"""Graphs for the tests of the readers: random ones, and ones written by hand."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf import text_format

from driple.graph.tf.graphdef import message_class, raw_from_message
from driple.graph.tf.raw import RawGraph

ODD_NAMES = (
    "a",
    "b/c",
    "caf\u00e9",
    'say "hi"',
    "back\\slash",
    "tab\there",
    "x" * 70,
    "#no",
    "{",
    "}",
)


def random_graphdef(seed: int) -> Any:
    """A GraphDef message with everything that the readers look at, drawn at random."""
    rng = random.Random(seed)
    graph = message_class("GraphDef")()
    for i in range(rng.randint(1, 8)):
        _fill_node(graph.node.add(), rng, f"n{i}")
    for i in range(rng.choice((0, 0, 1, 2))):
        function = graph.library.function.add()
        function.signature.name = f"f{i}".encode()
        for j in range(rng.randint(0, 2)):
            function.signature.input_arg.add(name=f"in{j}".encode())
            function.signature.output_arg.add(name=f"out{j}".encode())
            function.ret.add(key=f"out{j}".encode(), value=f"m{j}:y:0".encode())
        for j in range(rng.randint(0, 3)):
            _fill_node(function.node_def.add(), rng, f"m{j}")
    return graph


def _fill_node(node: Any, rng: random.Random, name: str) -> None:
    node.name = (name + rng.choice(("", *ODD_NAMES))).encode()
    node.op = rng.choice(("Conv2D", "MatMul", "Const", "NoOp", "While")).encode()
    node.device = rng.choice((b"", b"/job:ps/task:0", b"/job:worker/task:0/device:GPU:0"))
    for _ in range(rng.randint(0, 3)):
        node.input.append(rng.choice(("n0", "^n1", "n2:1", "caf\u00e9")).encode())
    keys = rng.sample(
        (
            "T", "dtype", "_output_shapes", "shape", "f", "Tout", "branches", "empty", "ksize",
            "depth_radius", "value", "frame_name", "equation", "_class", "transpose_a", "padding",
            "keep_dims", "shapes", "flags",
        ),
        7,
    )  # fmt: skip
    for key in keys:
        _fill_attr(node.attr.add(key=key.encode()).value, key, rng)


def _fill_attr(value: Any, key: str, rng: random.Random) -> None:
    if key in ("ksize", "depth_radius", "value", "frame_name", "equation"):
        _fill_number(value, key, rng)
    elif key in ("transpose_a", "keep_dims", "flags", "_class", "padding", "shapes"):
        _fill_other(value, key, rng)
    elif key in ("T", "dtype"):
        value.type = rng.choice((1, 3, 9, 10, 101))
    elif key == "_output_shapes":
        value.list.SetInParent()
        for _ in range(rng.randint(0, 3)):
            _fill_shape(value.list.shape.add(), rng)
    elif key == "shape":
        _fill_shape(value.shape, rng)
    elif key == "f":
        value.func.name = rng.choice((b"f0", b"f1", b'odd "name"'))
    elif key == "Tout":
        value.list.type.extend(rng.choice(((1,), (3, 1), (9, 10, 1))))
    elif key == "branches":
        for name in ("f0", "f1")[: rng.randint(1, 2)]:
            value.list.func.add(name=name.encode())


def _fill_other(value: Any, key: str, rng: random.Random) -> None:
    if key in ("transpose_a", "keep_dims"):
        value.b = rng.random() < 0.5
    elif key == "flags":
        value.list.b.extend(rng.choice(((), (True,), (False, True))))
    elif key == "_class":
        value.list.s.extend(rng.choice(((), (b"loc:@n0",), (b"loc:@n1", b"other"))))
    elif key == "padding":
        value.s = rng.choice((b"", b"SAME", b"VALID"))
    elif key == "shapes":
        for _ in range(rng.randint(0, 3)):
            _fill_shape(value.list.shape.add(), rng)


def _fill_number(value: Any, key: str, rng: random.Random) -> None:
    if key == "ksize":
        value.list.i.extend(rng.choice(((), (1, 3, 3, 1), (2,))))
    elif key == "depth_radius":
        value.i = rng.choice((0, 5, -1))
    elif key == "value":
        _fill_tensor(value.tensor, rng)
    elif key == "frame_name":
        value.s = rng.choice((b"", b"while/context", b'odd "frame"'))
    elif key == "equation":
        value.s = rng.choice((b"", b"ab,bc->ac", b"a" * 201))


def _fill_tensor(tensor: Any, rng: random.Random) -> None:
    tensor.dtype = rng.choice((1, 2, 3, 9, 10, 19, 22))
    tensor.int_val.extend(rng.choice(((), (7,), (7, 8))))
    tensor.int64_val.extend(rng.choice(((), (2**40,))))
    tensor.float_val.extend(rng.choice(((), (0.5,), (float("inf"), -1.25))))
    tensor.double_val.extend(rng.choice(((), (0.1,))))
    tensor.bool_val.extend(rng.choice(((), (True,), (False, True))))
    tensor.tensor_content = rng.choice((b"", b"\x01\x00\x00\x00", b'\xff"\n' * 8, b"\x00" * 9000))
    if rng.random() < 0.8:
        tensor.tensor_shape.SetInParent()
        for _ in range(rng.randint(0, 2)):
            tensor.tensor_shape.dim.add(size=rng.choice((1, 2, 3)))


def _fill_shape(shape: Any, rng: random.Random) -> None:
    shape.SetInParent()
    if rng.random() < 0.15:
        shape.unknown_rank = True
    for _ in range(rng.randint(0, 4) * (not shape.unknown_rank)):
        shape.dim.add(size=rng.choice((-1, 0, 1, 32, 2**40)))


def plain(graph: RawGraph) -> Any:
    """Everything in a raw graph as nested tuples, for comparison."""

    def nodes_of(nodes: Any) -> Any:
        return [
            (
                n.name,
                n.op,
                n.device,
                n.inputs,
                n.shapes,
                dict(n.types),
                dict(n.functions),
                dict(n.numbers),
                dict(n.attributes),
                dict(n.texts),
                dict(n.shape_attributes),
                repr(n.constant),  # so that nan equals nan
                n.colocated,
                n.frame,
            )
            for n in nodes
        ]

    functions = {
        name: (f.arguments, f.outputs, nodes_of(f.nodes), f.returns)
        for name, f in graph.functions.items()
    }
    return nodes_of(graph.nodes), functions


def protobuf_reads(text: str) -> Any:
    """What protobuf makes of a text."""
    message = text_format.Parse(text, message_class("GraphDef")(), allow_unknown_field=True)
    return plain(raw_from_message(message))


def node_text(
    name: str, op: str, *inputs: str, device: str = "", shape: str = "", dtype: str = "DT_FLOAT"
) -> str:
    """One node in text format, as protobuf prints it."""
    lines = [f'  name: "{name}"', f'  op: "{op}"', *(f'  input: "{item}"' for item in inputs)]
    if device:
        lines.append(f'  device: "{device}"')
    lines += ["  attr {", '    key: "T"', "    value {", f"      type: {dtype}", "    }", "  }"]
    if shape:
        lines += ["  attr {", '    key: "_output_shapes"', "    value {", "      list {"]
        lines.append("        shape {")
        for size in shape.split("x"):
            lines += ["          dim {", f"            size: {size}", "          }"]
        lines += ["        }", "      }", "    }", "  }"]
    return "node {\n" + "\n".join(lines) + "\n}\n"
