"""How large each extra is, and how soon a small question to it is answered.

    pip install '.[EXTRA]' in an environment of its own -> its size, packages, seconds
    a small question that needs it, five times          -> median seconds from start to answer

    python -m scripts.checks.extras [EXTRA ...] [--sizes] [--write]     # minutes; a quiet machine

Extras that need PyTorch get the CPU build that constraints.txt names first. `--write` puts the
results, with the date, into scripts/checks/extras.json; docs/quickstart.md shows them. `--sizes`
leaves times out, which a busy machine makes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.checks.clean_install import ROOT, add_results, clean_environment, dated, output_of

__all__ = ["BASE", "QUESTIONS", "extras", "main", "measured"]

RESULT = Path(__file__).with_suffix(".json")
BASE = "(none)"
_TORCH = ("torch==2.13.0", "torchvision==0.28.0")
_NEEDS_TORCH = {"train", "torch", "hf", "timm", "profiler", "calibration", "all"}
_TIMES = 5
_GRAPH = "predict datasets/examples/resnet50.pbtxt"
_HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "extras", "version": "1"}},
}  # fmt: skip
_MODEL = """import torch

def build():
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
"""
_CONFIG = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 4, "n_embd": 256,
    "n_head": 4, "n_positions": 512, "vocab_size": 8000,
}  # fmt: skip
_ONNX = """
import onnx
from onnx import TensorProto, helper
value = helper.make_tensor_value_info
node = helper.make_node("MatMul", ["x", "w"], ["y"])
weight = helper.make_tensor("w", TensorProto.FLOAT, [64, 8], [0.1] * 512)
graph = helper.make_graph([node], "g", [value("x", TensorProto.FLOAT, ["batch", 64])],
                          [value("y", TensorProto.FLOAT, ["batch", 8])], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "model.onnx")
"""
_JOB = '{"job": "datasets/examples/resnet20.pbtxt", "setting": "V100-P1w2"}\n'
_CLUSTER = "machines:\n  - {count: 4, devices: 8, device: H100, link: NVLink}\nnetwork: 400G\n"
# A small question to each extra: arguments of `driple`; `serve` and `mcp` until the first answer.
# The others only add to commands that run for minutes, or need a GPU.
QUESTIONS = {
    BASE: _GRAPH,
    "plot": f"{_GRAPH} --plot pattern.png",
    "train": f"{_GRAPH} --method inspector",
    "torch": "predict model.py:build --batch-size 32 --input 64 --setting V100",
    "hf": "predict hf:config.json --batch-size 4 --seq-len 128 --setting V100",
    "timm": "predict timm:resnet18 --batch-size 32 --setting V100",
    "onnx": "predict model.onnx --batch-size 32 --setting V100",
    "yaml": f"{_GRAPH} --setting cluster.yaml",
    "web": "serve --port 0",
    "mcp": "mcp",
    "cluster": "predict --jobs jobs.jsonl -o answers.jsonl --engine ray",
    "all": _GRAPH,
}


def extras() -> list[str]:
    """Names of all extras, `BASE` first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [BASE, *project["optional-dependencies"]]


def measured(extra: str, work: Path, *, sizes: bool = False) -> dict[str, Any]:
    """Install an extra and ask; sizes in MB of 10^6 bytes.

    Args:
        extra: one of `extras`.
        work: an empty folder for its environment.
        sizes: leave times out.

    Raises:
        SystemExit: a command failed.
    """
    variables = clean_environment(Path(sys.executable).resolve(), work)
    variables |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    output_of([sys.executable, "-m", "venv", "venv"], work, variables)
    variables["PATH"] = f"{work / 'venv' / 'bin'}:{variables['PATH']}"
    empty = _bytes(work / "venv")
    pip = ["pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    started = time.monotonic()
    if extra in _NEEDS_TORCH:
        output_of([*pip, *_TORCH], work, variables)
    output_of([*pip, str(ROOT) if extra == BASE else f"{ROOT}[{extra}]"], work, variables)
    installed_s = time.monotonic() - started
    listed = json.loads(output_of(["pip", "list", "--format", "json"], work, variables))
    result: dict[str, Any] = {
        "size_mb": round((_bytes(work / "venv") - empty) / 1e6),
        "packages": len(listed) - 1,  # pip itself
    }
    if sizes:
        return result
    result["installed_s"] = round(installed_s)
    if extra in QUESTIONS:
        _inputs(extra, work, variables)
        times = [_seconds(QUESTIONS[extra].split(), work, variables) for _ in range(_TIMES + 1)]
        result["start_s"] = round(statistics.median(times[1:]), 2)  # the first writes byte code
        result["question"] = f"driple {QUESTIONS[extra]}"
    return result


def _inputs(extra: str, work: Path, variables: Mapping[str, str]) -> None:
    (work / "datasets").symlink_to(ROOT / "datasets")
    for name, text in {
        "model.py": _MODEL, "config.json": json.dumps(_CONFIG), "jobs.jsonl": _JOB,
        "cluster.yaml": _CLUSTER,
    }.items():  # fmt: skip
        (work / name).write_text(text, encoding="utf-8")
    if extra == "onnx":
        output_of(["python", "-c", _ONNX], work, variables)


def _seconds(words: Sequence[str], work: Path, variables: Mapping[str, str]) -> float:
    """From the start of a question to its answer."""
    started = time.monotonic()
    if words[0] == "serve":
        with _started(words, work, variables) as process:
            line = ""
            while "http://" not in line:
                line = process.stderr.readline()  # type: ignore[union-attr]
                if not line:
                    raise SystemExit("driple serve ended without an address")
            address = re.search(r"http://[0-9.]+:\d+", line)[0]  # type: ignore[index]
            with urllib.request.urlopen(f"{address}/healthz", timeout=60) as answer:  # noqa: S310
                answer.read()
            return time.monotonic() - started
    if words[0] == "mcp":
        with _started(words, work, variables) as process:
            process.stdin.write(json.dumps(_HELLO) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            if "serverInfo" not in process.stdout.readline():  # type: ignore[union-attr]
                raise SystemExit("driple mcp gave no answer")
            return time.monotonic() - started
    output_of(["driple", *words], work, variables)
    for file in work.glob("answers.*"):
        file.unlink()
    return time.monotonic() - started


@contextmanager
def _started(
    words: Sequence[str], work: Path, variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    command = ["driple", *words]
    with subprocess.Popen(
        command, cwd=work, env=variables, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate()


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure extras one after another."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=", ".join(extras()))
    parser.add_argument("--sizes", action="store_true", help="leave times out")
    parser.add_argument("--write", action="store_true", help=f"into {RESULT.name}")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.extras) - set(extras())):
        parser.error(f"{unknown[0]} is no extra; give some of {', '.join(extras())}")
    for extra in options.extras or extras():
        with tempfile.TemporaryDirectory() as folder:
            outcome = dated(measured(extra, Path(folder), sizes=options.sizes))
        print(f"{extra}: {json.dumps(outcome)}", flush=True)
        if options.write:
            add_results(RESULT, {extra: outcome})
    return 0


if __name__ == "__main__":
    sys.exit(main())
