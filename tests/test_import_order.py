"""The layers of `design.md` hold: whoever imports from a lower row, or an extra elsewhere, fails.

module  ->  its imports (ast, anywhere in the file)  ->  sentences about those that break a rule
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "driple"

# A module imports only from rows above its own, or from its own package. Only the first row, whose
# modules are small and self-contained, may import within itself.
ROWS = (
    (
        "data_folders",
        "errors",
        "estimate",
        "extras",
        "files",
        "checks",
        "units",
        "quantities",
        "codec",
        "processes",
        "rules",
        "storedfiles",
        "plaintoml",
        "plainyaml",
        "versioned",
        "locks",
        "remarks",
        "garbage",
        "marks",
        "plugins",
    ),
    ("engine",),
    ("catalog",),
    ("trace",),
    ("graph",),
    ("cluster",),
    ("jobs",),
    ("tensorflow",),
    ("step",),
    ("schemes",),
    ("simulate",),
    ("analytic",),
    ("memory",),
    ("features",),
    ("dataset",),
    ("inspector",),
    ("training",),
    ("evaluation",),
    ("async_sgd",),
    ("measure",),
    ("runs",),
    ("answers",),
    ("profiler",),
    ("planning",),
    ("api",),
    ("render",),
    ("plot",),
    ("agents",),
    ("web",),
    ("cli", "integrations", "__main__"),
)
ROW_OF = {name: number for number, row in enumerate(ROWS) for name in row}
FACES = ROW_OF[
    "web"
]  # only `driple serve`, of cli, imports web; else nobody imports from this row on

# Above their row, and still not theirs to import: training learns from labels, however made.
FORBIDDEN = {
    "training": {"measure", "jobs", "simulate"},
}
# What an answer is made of may import of `runs` the records and the stored steps alone.
RECORDS_ALONE = ("answers", "planning", "plot")
RECORDS = ("measured_run", "step_key", "step_pack", "step_store", "steps", "stored_steps")

# Optional extras, and the modules (by prefix) that alone may import them.
EXTRAS = {
    "torch": (
        "dataset.released.",
        "evaluation.",
        "graph.torch.",
        "inspector.",
        "integrations.",
        "jobs.pytorch.",
        "measure.machine.",
        "profiler.",
        "training.",
    ),
    "ray": ("engine.",),
    "torch_geometric": ("inspector.", "training."),
    "tensorflow": ("jobs.tensorflow.", "measure.testbed.", "tensorflow."),
    "keras": ("tensorflow.",),
    "onnx": ("graph.onnx.",),
    "timm": ("jobs.pytorch.",),
    "torchvision": ("jobs.pytorch.",),
    "transformers": ("integrations.hugging_face.", "jobs.pytorch."),
    "lightning": ("integrations.lightning.",),
    "mcp": ("agents.",),
    "mcp_types": ("agents.",),
    "pynvml": ("measure.counters.nvml.",),
    "fastapi": ("web.",),
    "starlette": ("web.",),
    "uvicorn": ("web.",),
    "jinja2": ("web.",),
}


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name, and how it is imported."""

    target: str
    line: int
    eager: bool  # runs when the importing module is imported


def violations(package: Path) -> list[str]:
    """One sentence for every import under `package` that breaks a rule, in order of files."""
    sentences = []
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for imported in _imports(file, package):
            reason = _reason(module, imported, package.name)
            if reason:
                sentences.append(f"{file.relative_to(package.parent)}:{imported.line}: {reason}")
    return sentences


def _reason(module: str, imported: Import, package: str) -> str:  # noqa: PLR0911  # one return per rule
    """Why the import breaks a rule; empty if it breaks none. The front door's `module` is ''."""
    top, _, rest = imported.target.partition(".")
    if top != package:
        allowed = EXTRAS.get(top)
        if allowed is None or f"{module}.".startswith(allowed):
            return ""
        return f"{module or package} imports {top}, which belongs in {' and '.join(allowed)}"
    own, other = module.partition(".")[0], rest.partition(".")[0]
    if not other:
        return f"{module} imports the package's front door; import the module itself"
    if other not in ROW_OF:
        return f"{module or package} imports {other}, which is in no row of the layers"
    if not module:
        return _front_door_reason(other, imported)
    if own not in ROW_OF:
        return f"{own} is in no row of the layers"
    if other in FORBIDDEN.get(own, ()):
        return f"{module} must not import {other}"
    if (
        own in RECORDS_ALONE
        and other == "runs"
        and rest.split(".")[1:2] not in [[name] for name in RECORDS]
    ):
        return f"{module} may import of runs only {', '.join(RECORDS)}"
    below = ROW_OF[other] > ROW_OF[own]
    beside = ROW_OF[other] == ROW_OF[own] != 0 and other != own != "__main__"
    if below or beside:
        return f"{module} (row {ROW_OF[own]}) imports {other} (row {ROW_OF[other]})"
    return ""


def _front_door_reason(other: str, imported: Import) -> str:
    if ROW_OF[other] >= FACES:
        return f"the front door imports {other}"
    if imported.eager and ROW_OF[other] > 0:
        return f"the front door imports {other} at once; import it when it is asked for"
    return ""


def _imports(file: Path, package: Path) -> Iterator[Import]:
    """All imports of a file: statements at any depth, and importlib with a constant name."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    lazy = _lazy_nodes(tree)
    for node in ast.walk(tree):
        eager = id(node) not in lazy
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, eager)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, package)
            for alias in node.names:
                yield Import(_module_of(base, alias.name, package), node.lineno, eager)
        elif isinstance(node, ast.Call) and _calls_import(node):
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield Import(argument.value, node.lineno, eager)


def _absolute(node: ast.ImportFrom, file: Path, package: Path) -> str:
    """Full name of the module that an import-from names, relative ones resolved."""
    if not node.level:
        return node.module or ""
    folder = file.relative_to(package.parent).parts[: -node.level]
    return ".".join([*folder, node.module] if node.module else folder)


def _module_of(base: str, name: str, package: Path) -> str:
    """`from package import graph` imports the module `graph`, if there is one of that name."""
    path = package.parent.joinpath(*base.split("."), name)
    if base == package.name and (path.is_dir() or path.with_suffix(".py").exists()):
        return f"{base}.{name}"
    return base


def _calls_import(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else None
    name = node.func.id if isinstance(node.func, ast.Name) else name
    return name in {"import_module", "__import__"}


def _lazy_nodes(tree: ast.Module) -> set[int]:
    """Nodes inside functions and under `if TYPE_CHECKING`: importing the module runs none."""
    lazy: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            lazy |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
    return lazy


def test_every_import_of_the_package_keeps_to_the_layers() -> None:
    """No module of Driple imports from its own row or a lower one, nor an extra out of place."""
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "source", "reason"),
    [
        ("graph/reader.py", "from driple.dataset import store", "imports dataset"),
        ("graph/reader.py", "import driple.training.train", "imports training"),
        (
            "graph/reader.py",
            "def f():\n    from driple.features import builder",
            "imports features",
        ),
        ("graph/reader.py", "from ..dataset.store import read_dataset", "imports dataset"),
        ("graph/reader.py", "from driple import inspector", "imports inspector"),
        ("graph/reader.py", "from driple import read_graph", "front door"),
        ("graph/reader.py", "from driple.bogus import x", "in no row"),
        ("bogus.py", "from driple.errors import DripleError", "in no row"),
        ("errors.py", "from driple.graph import OpGraph", "imports graph"),
        ("features/builder.py", "import importlib\nimportlib.import_module('driple.cli')", "cli"),
        ("training/loop.py", "from driple.jobs import workload", "must not import jobs"),
        ("training/loop.py", "def f():\n    import driple.measure.run", "must not import measure"),
        ("training/loop.py", "from driple.simulate import engine", "must not import simulate"),
        ("web/app.py", "from driple.cli import main", "imports cli"),
        ("answers/error.py", "from driple.runs.tuning import tune", "only measured_run"),
        ("planning/search.py", "from driple.runs import tuning", "only measured_run"),
        ("features/builder.py", "if True:\n    import torch", "imports torch"),
        ("dataset/store.py", "def f():\n    import torch.nn as nn", "imports torch"),
        ("training/loop.py", "import tensorflow as tf", "imports tensorflow"),
        ("measure/run.py", "import pynvml", "imports pynvml"),
        ("__init__.py", "from driple.cli import main", "imports cli"),
        ("__init__.py", "def f():\n    from driple.cli import main", "imports cli"),
        ("__init__.py", "from driple.inspector import predict", "at once"),
        ("__init__.py", "import torch", "imports torch"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, source: str, reason: str) -> None:
    """Each kind of broken rule is reported, with its file, and nothing else is."""
    package = _tree(tmp_path, {file: source})
    (violation,) = violations(package)
    assert violation.startswith(f"driple/{file}:")
    assert reason in violation


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("graph/reader.py", "from driple.errors import GraphError\nimport numpy"),
        ("graph/reader.py", "from driple.graph.opgraph import OpGraph\nfrom . import opgraph"),
        ("cluster/setting.py", "from driple.errors import SettingError"),
        ("training/loop.py", "import torch\nfrom driple.inspector.model import Inspector"),
        ("measure/counters/nvml.py", "def f():\n    import pynvml"),
        ("jobs/tensorflow/vgg.py", "import tensorflow.compat.v1 as tf"),
        ("cli/main.py", "from driple.measure import run\nfrom driple.training import loop"),
        ("__init__.py", "def f():\n    from driple.inspector import predict"),
        ("__init__.py", "if TYPE_CHECKING:\n    from driple.graph import read_graph"),
        ("__init__.py", "from driple.errors import DripleError"),
        ("answers/error.py", "from driple.runs.measured_run import MeasuredRun"),
        ("api/validating.py", "def f():\n    from driple.runs.validation import contest"),
    ],
)
def test_what_the_layers_allow_is_not_reported(tmp_path: Path, file: str, source: str) -> None:
    """Imports from above, from the own package and of extras in their place are fine."""
    assert violations(_tree(tmp_path, {file: source})) == []


def _tree(folder: Path, files: dict[str, str]) -> Path:
    """A package `driple` with an empty module per row member, and the given files."""
    package = folder / "driple"
    for name in ROW_OF:
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").touch()
    (package / "__init__.py").touch()
    for name, source in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source)
    return package
