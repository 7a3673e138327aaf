"""Speed of the graph readers: text against protobuf's own parser, and binary.

    python -m scripts.bench.read [GRAPH.pbtxt] [--nodes 18758]

Without a file it reads the shipped ResNet-50, and a text of `--nodes` nodes made of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from google.protobuf import text_format

from driple.graph import graph_from_graphdef_bytes, graph_from_text
from driple.graph.tf.graphdef import message_class
from driple.graph.tf.pbtxt import raw_from_text
from scripts.bench.timing import median_s

EXAMPLE = Path(__file__).parents[2] / "datasets/examples/resnet50.pbtxt"
ROUNDS = 5


def grown(text: str, num_nodes: int) -> str:
    """Copies of the graph under other names until there are `num_nodes` nodes."""
    blocks = [block + "\n}\n" for block in text.split("\n}\n") if block.startswith("node {")]
    grown_blocks: list[str] = []
    copy = 0
    while len(grown_blocks) < num_nodes:
        grown_blocks += [
            block.replace('name: "', f'name: "copy{copy}/', 1)
            .replace('input: "^', f'input: "^copy{copy}/')
            .replace('input: "', f'input: "copy{copy}/')
            .replace(f'input: "copy{copy}/^copy{copy}/', f'input: "^copy{copy}/')
            for block in blocks
        ]
        copy += 1
    return "".join(grown_blocks[:num_nodes])


def as_library(text: str) -> str:
    """The graph as tf.function writes it: one node that calls a function, which holds the rest."""
    body = [block for block in text.split("\n}\n") if block.startswith("node {")]
    inner = "\n}\n".join(body).replace("\n", "\n    ").replace("    node {", "    node_def {")
    return (
        'node {\n  name: "call"\n  op: "PartitionedCall"\n  attr {\n    key: "f"\n    value {\n'
        '      func {\n        name: "step"\n      }\n    }\n  }\n}\nlibrary {\n  function {\n'
        '    signature {\n      name: "step"\n    }\n    node_def {'
        f"{inner.removeprefix('node {')}\n    }}\n  }}\n}}\n"
    )


def report(name: str, text: str) -> None:
    """One line per reader and layout."""
    size = len(text) / 1e6
    message = text_format.Parse(text, message_class("GraphDef")(), allow_unknown_field=True)
    binary = message.SerializeToString()
    print(f"{name}: {size:.2f} MB of text, {len(binary) / 1e6:.2f} MB binary")
    layouts = {
        "text, as printed": text,
        "text, one odd node": text.replace("\n  op: ", " # by hand\n  op : ", 1),
        "text, a comment in each attribute": text.replace(
            "\n    key:", "\n    # by hand\n    key:"
        ),
        "text, one line": text.replace("\n", " "),
        "text with a function library": as_library(text),
        "text, <> for {}: nothing shared": text_format.MessageToString(
            message, pointy_brackets=True
        ),
    }
    for label, layout in layouts.items():
        row(label, partial(raw_from_text, layout), len(layout))
    row(
        "text, protobuf",
        lambda: text_format.Parse(text, message_class("GraphDef")(), allow_unknown_field=True),
        len(text),
    )
    row("text to OpGraph", lambda: graph_from_text(text), len(text))
    row("binary to OpGraph", lambda: graph_from_graphdef_bytes(binary), len(binary))


def row(label: str, work: Callable[[], object], num_chars: int) -> None:
    """One line of the table."""
    took = median_s(work, ROUNDS, warm_ups=0)
    print(f"  {label:<34} {took:7.3f} s  {num_chars / 1e6 / took:7.1f} MB/s")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--nodes", type=int, default=18_758)
    arguments = parser.parse_args()
    text = arguments.graph.read_text()
    report(arguments.graph.name, text)
    report(f"{arguments.nodes} nodes", grown(text, arguments.nodes))


if __name__ == "__main__":
    main()
