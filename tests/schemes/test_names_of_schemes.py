"""No module outside `schemes/` compares names of schemes: what depends on one is in its file.

module -> comparisons, keys and lists (ast) with a scheme's name, or with a constant that is one
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from driple.schemes.registry import scheme_names

PACKAGE = Path(__file__).resolve().parents[2] / "driple"
HOME = "driple.cluster.schemes"  # of the constants
# `split` is a word of many tables as well: it is looked for under its constant alone.
NAMES = set(scheme_names()) - {"split"}
ALLOWED = {
    ("cluster/schemes.py", "PS"): "servers go with the P of the paper's names",
    ("cluster/schemes.py", "SPLIT"): "degrees go with tp and pp",
    ("cluster/schemes.py", "DDP"): "a name without a scheme",
    **{
        ("cluster/schemes.py", name): "what may stand beside degrees, in the grammar of names"
        for name in ("fsdp", "zero1", "zero2")
    },
    ("jobs/training_config/config.py", "DDP"): "FSDP's precision is another without shards",
    ("jobs/training_config/trainer.py", "fsdp"): "field of a file of Hugging Face's Trainer",
    ("jobs/training_config/axolotl.py", "fsdp"): "field of a file of axolotl",
    **{
        ("jobs/training_config/precision.py", name): "what a tool calls its way of sharding"
        for name in ("fsdp", "hsdp", "zero1", "zero2")
    },
    ("measure/testbed/cluster.py", "ps"): "TensorFlow's name of a kind of task",
    ("measure/testbed/worker_process.py", "ps"): "TensorFlow's name of a kind of task",
    ("jobs/tensorflow/training.py", "ps"): "TensorFlow's name of a kind of task",
    ("web/field_names.py", "ps"): "the option --ps, the number of servers",
}


def compared_names(source: str, module: str) -> set[str]:
    """Names of schemes that a module compares, looks up, or lists with others to look in."""
    tree = ast.parse(source)
    constants = set(_constants(tree)) | ({"PS", "DDP", "SPLIT"} & _assigned(tree, module))
    names: set[str] = set()
    for node in ast.walk(tree):
        for part in _looked_at(node):
            if isinstance(part, ast.Constant) and part.value in NAMES:
                names.add(str(part.value))
            elif isinstance(part, ast.Name) and part.id in constants:
                names.add(part.id)
    return names


def _constants(tree: ast.Module) -> Iterator[str]:
    """Names that a module imports from where the constants are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == HOME:
            yield from (alias.asname or alias.name for alias in node.names if alias.name.isupper())


def _assigned(tree: ast.Module, module: str) -> set[str]:
    """Constants of the module where they are."""
    if module != "cluster/schemes.py":
        return set()
    targets = [
        target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _looked_at(node: ast.AST) -> list[ast.expr]:
    """Operands of a comparison, keys of a mapping, cases, and members of a list of several."""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        inside = [operand.elts for operand in operands
                  if isinstance(operand, ast.Tuple | ast.List | ast.Set)]  # fmt: skip
        return [*operands, *(part for parts in inside for part in parts)]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.MatchValue):
        return [node.value]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        listed = [part for part in node.elts if isinstance(part, ast.Constant | ast.Name)]
        names = [part for part in listed if isinstance(part, ast.Name) or part.value in NAMES]
        return list(names) if len(names) > 1 else []
    return []


def test_no_module_outside_schemes_compares_their_names() -> None:
    compared = {
        (module, name)
        for path in sorted(PACKAGE.rglob("*.py"))
        if (module := path.relative_to(PACKAGE).as_posix()).partition("/")[0] != "schemes"
        for name in compared_names(path.read_text(encoding="utf-8"), module)
    }
    assert compared - ALLOWED.keys() == set(), "make it a property of the scheme, in its own file"
    assert ALLOWED.keys() - compared == set(), "these exceptions are needed no more"


@pytest.mark.parametrize(
    "line",
    [
        "is_sharded = setting.scheme.name == 'fsdp'",
        "is_sharded = setting.scheme.name in ('zero1', 'fsdp')",
        "is_sharded = setting.scheme.name not in {'zero2'}",
        "SHARDED = ('zero1', 'zero2')",
        "crossings = {'ddp': 2.0}[name]",
        "match name:\n    case 'hsdp':\n        pass",
        "from driple.cluster.schemes import DDP\nif name != DDP:\n    pass",
        "from driple.cluster.schemes import PS as SERVERS\nkinds = {SERVERS: 1}",
    ],
)
def test_comparisons_of_names_are_found(line: str) -> None:
    assert compared_names(line, "planning/places.py")


@pytest.mark.parametrize(
    "line",
    [
        "scheme = 'fsdp'",
        "sharding = scheme_named('fsdp').sharding",
        "from driple.cluster.schemes import DDP\nscheme: str = DDP",
        "words = {3: 'fsdp', 'FSDP': 'fsdp'}",
    ],
)
def test_choosing_a_scheme_is_no_comparison(line: str) -> None:
    assert not compared_names(line, "planning/places.py")
