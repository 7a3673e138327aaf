"""What SECURITY.md says about the code holds: nothing downloads, and no file is executed."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from driple.jobs.options import MAX_MIB, JobOptions
from driple.web.limits import Limits

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "driple"
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CLIENTS = {"ftplib", "http", "httpx", "requests", "smtplib", "urllib.request", "urllib3", "xmlrpc"}
SOCKETS = ("measure/", "profiler/machines.py", "web/")
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {("pickle", "load"), ("pickle", "loads"), ("marshal", "loads"), ("joblib", "load")}
LOADS_YAML = {"load", "full_load", "unsafe_load"}


def faults(module: str, source: str) -> list[str]:
    """What of a module SECURITY.md rules out."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name in CLIENTS or name.split(".")[0] in CLIENTS:
                wrong.append(f"{module}:{node.lineno} imports {name}")
            if name == "socket" and not module.startswith(SOCKETS):
                wrong.append(f"{module}:{node.lineno} imports {name}")
        if isinstance(node, ast.Call):
            wrong += [f"{module}:{node.lineno} {words}" for words in _call_faults(node)]
    return wrong


def _call_faults(node: ast.Call) -> list[str]:
    options = {word.arg: word.value for word in node.keywords}
    if isinstance(node.func, ast.Name):
        return [f"calls {node.func.id}"] if node.func.id in RUNS_CODE else []
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
        return []
    owner, name = node.func.value.id, node.func.attr
    if (owner, name) in UNPICKLES or (owner == "yaml" and name in LOADS_YAML):
        return [f"calls {owner}.{name}"]
    if (owner, name) == ("torch", "load") and not _is(options.get("weights_only"), True):
        return ["calls torch.load without weights_only=True"]
    if (owner, name) == ("np", "load") and not _is(options.get("allow_pickle"), False):
        return ["calls np.load without allow_pickle=False"]
    return []


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def test_no_module_downloads_or_executes_a_file() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 500
    wrong = [
        fault
        for file in files
        for fault in faults(file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "import requests",
        "def f():\n    from urllib import request",
        "import urllib.request",
        "import http.client",
        "import socket",
        "import pickle\npickle.load(file)",
        "yaml.load(text)",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "np.load(file, allow_pickle=True)",
        "eval(text)",
        "exec(text)",
    ],
)
def test_what_is_ruled_out_is_seen(source: str) -> None:
    assert len(faults("jobs/some.py", source)) >= 1
    assert faults("jobs/some.py", "import urllib.parse\ntorch.load(file, weights_only=True)") == []


def test_limits_are_those_of_the_page() -> None:
    """Sizes, times and memory that it states."""
    options, limits = JobOptions(), Limits()
    assert f"at most {MAX_MIB:g} MiB" in TEXT
    assert f"{options.own_code_s:g} s (`--set time_limit_s=N`)" in TEXT
    assert re.search(rf"\b{options.own_code_gib:g} GiB \(`--set memory_gib=N`\)", TEXT)
    assert f"{limits.body_bytes // 2**20} MiB and {limits.body_s:g} s" in TEXT
    assert f"{limits.read_s:g} s and {limits.memory_bytes // 2**30} GiB" in TEXT


def test_the_server_listens_on_this_machine_and_reads_no_code() -> None:
    from inspect import signature

    from driple.cli.serve import serve
    from driple.jobs.own_model import OWN_MODEL
    from driple.web import sources

    assert signature(serve).parameters["host"].default == "127.0.0.1"
    assert OWN_MODEL not in sources._READERS
    assert set(sources.KINDS) == {"catalogue", "timm", "config", "graph", "onnx"}


def test_readers_were_tried_with_damaged_files() -> None:
    counts = json.loads((ROOT / "scripts/checks/mutate_files.json").read_text(encoding="utf-8"))
    assert all(each["files"] >= 10_000 and not each["faults"] for each in counts.values())
