"""No module but the TensorFlow reader and its tables matches on TensorFlow's op types.

string literals of driple/  --minus those of ALLOWED-->  none is an op type in the reader's table
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from driple.graph.tf.op_kinds import _TABLE

PACKAGE = Path(__file__).resolve().parents[2] / "driple"
# The reader, the catalogue of TensorFlow models, the writer of Keras' graphs, and the translation
# of kinds into the names that the inspectors' features are made of. ONNX and PyTorch's classes of
# modules have names of their own, some of which are TensorFlow's too.
ALLOWED = ("graph/tf/", "jobs/tensorflow/", "measure/testbed/", "tensorflow.py",
           "features/op_names.py", "graph/onnx/", "api/traced_modules.py")  # fmt: skip
# Op types that are words of other fields too.
WORDS = frozenset({"Abs", "All", "Any", "Max", "Mean", "Min", "Sum", "Case", "Copy", "Diag", "Eig",
                   "Elu", "Empty", "Enter", "Equal", "Exit", "If", "Less", "Log", "Merge", "Mod",
                   "Pack", "Pad", "Placeholder", "Pow", "Print", "Prod", "Range", "Rank", "Recv",
                   "Select", "Send", "Shape", "Sign", "Size", "Split", "Stack", "Stage", "Sub",
                   "Switch", "Tile", "Unique", "Variable", "Where", "While"})  # fmt: skip
OP_TYPES = frozenset(name for names in _TABLE.values() for name in names) - WORDS


def op_types_in(source: str) -> Iterator[tuple[int, str]]:
    """Line and op type of each string literal that is one; docstrings are no literals of code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in OP_TYPES:
            yield node.lineno, node.value


def test_only_the_tensorflow_side_names_op_types() -> None:
    named = [
        f"{file.relative_to(PACKAGE)}:{line}: {op_type}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if not str(file.relative_to(PACKAGE)).startswith(ALLOWED)
        for line, op_type in op_types_in(file.read_text(encoding="utf-8"))
    ]
    assert not named


def test_the_scan_finds_an_op_type_in_code_and_none_in_prose() -> None:
    """The names that this repository matched on before it had kinds of its own."""
    for name in ("Conv2D", "MatMul", "ApplyAdam", "BiasAdd", "FusedBatchNormV3", "NextIteration"):
        assert [found for _, found in op_types_in(f"x = op == '{name}'")] == [name]
    assert not list(op_types_in('"""Such as Conv2D."""\nx = "conv"'))
