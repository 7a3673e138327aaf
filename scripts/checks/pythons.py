"""The wheel of this checkout in a clean environment of each Python that the machine offers.

    wheel (built once) -> virtual environment of each Python -> README's predictions, tests

    python -m scripts.checks.pythons [--pythons 3.12,3.13] [--base] [--write]

Tests run against the installed wheel: the folder they run in has no `driple`. `--base` leaves
PyTorch out, and then only the README's first prediction, a plan and a sweep run: CI does that.
`--write` puts what ran, with the date, in place of what ran before with the same Pythons.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.checks.clean_install import (
    ROOT,
    VERSIONS,
    add_results,
    clean_environment,
    dated,
    interpreters,
    output_of,
    readme_blocks,
)

__all__ = ["SMOKE_TESTS", "TORCH", "built_wheel", "main", "smoke"]

RESULT = ROOT / "scripts" / "checks" / "pythons.json"
SMOKE_TESTS = (
    "tests/api/test_arguments.py", "tests/api/test_questions.py", "tests/api/test_memory.py",
    "tests/api/test_quantiles.py", "tests/cli/test_predict.py", "tests/cli/test_joboptions.py",
    "tests/cli/test_numbers.py", "tests/cli/test_damaged.py", "tests/cli/test_streams.py",
    "tests/cluster", "tests/schemes", "tests/test_codec.py", "tests/test_files.py",
)  # fmt: skip
TORCH = ("torch==2.13.0", "torchvision==0.28.0")
_EXTRAS = "torch,onnx,yaml"
_FOR_TESTS = ("pytest", "hypothesis", "jsonschema")
_GRAPH = "datasets/examples/resnet20.pbtxt"
_BASE = (
    f"driple predict {_GRAPH} --setting 4xV100 --json",
    f"driple plan {_GRAPH} --batch-size 24 --machines 1,2 --json",
    f"driple sweep {_GRAPH} --bandwidth 1G,10G --json",
    "driple list settings",
    "driple --version",
)
_SHARED = ("datasets", "docs", "scripts", "tests", "pyproject.toml", "README.md", "constraints.txt")


def smoke(
    python: Path,
    wheel: Path,
    work: Path,
    *,
    base: bool = False,
    extras: str = _EXTRAS,
    constraints: Path = ROOT / "constraints.txt",
) -> dict[str, object]:
    """Install a wheel into a new environment of a Python, and ask it.

    Args:
        python: the interpreter.
        wheel: built package.
        work: folder for the environment.
        base: leave PyTorch, the extras and the tests out.
        extras: that are installed, with commas.
        constraints: file of the versions that pip may take.

    Raises:
        SystemExit: a command failed, or printed something else than the README shows.
    """
    variables = clean_environment(python, work)
    variables |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    started = time.monotonic()
    output_of([python, "-m", "venv", work / "venv"], work, variables)
    variables["PATH"] = f"{work / 'venv' / 'bin'}:{variables['PATH']}"
    pip = ["pip", "install", "-q", "-c", constraints]
    if not base:
        output_of([*pip, *TORCH], work, variables)
    output_of([*pip, wheel if base else f"{wheel}[{extras}]"], work, variables)
    installed_s = time.monotonic() - started
    for name in _SHARED:  # all but the package itself
        (work / name).symlink_to(ROOT / name)
    for command, output in _shown():
        if output_of(command.split(), work, variables).strip() != output:
            raise SystemExit(f"{python.name}: {command} prints something else than the README")
    for command in _BASE:
        output_of(command.split(), work, variables)
    version = output_of(
        ["python", "-c", "import sys; print(sys.version.split()[0])"], work, variables
    )
    result: dict[str, object] = {
        "version": version.strip(),
        "commands": len(_BASE) + len(_shown()),
        "installed_s": round(installed_s),
    }
    if not base:
        output_of([*pip, *_FOR_TESTS], work, variables)
        output = output_of(
            ["python", "-m", "pytest", "-p", "no:cacheprovider", "-m",
             "not slow and not machine", *SMOKE_TESTS],
            work, variables,
        )  # fmt: skip
        result["tests"] = {
            name: int(count) for count, name in re.findall(r"(\d+) (passed|skipped)", output)
        }
    return result


def built_wheel(work: Path) -> Path:
    """The wheel of this checkout, in a folder."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", work, ROOT]
    output_of(build, work, dict(os.environ))
    (wheel,) = work.glob("driple-*.whl")
    return wheel


def _shown() -> list[tuple[str, str]]:
    """Commands of the README with the output that it shows."""
    shown = []
    for block in readme_blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            shown.append((command, output.strip()))
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Try each Python; 1 if the machine offers none of those asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--pythons", default=",".join(VERSIONS), help="versions, by commas")
    parser.add_argument("--base", action="store_true", help="without PyTorch and tests")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args(arguments)
    offered = interpreters(options.pythons.split(","))
    if not offered:
        print(f"this machine has none of Python {options.pythons}", file=sys.stderr)
        return 1
    results: dict[str, object] = {}
    for version, python in offered.items():
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            wheel = built_wheel(work)
            results[version] = dated(smoke(python, wheel, work, base=options.base))
        print(f"Python {version}: {json.dumps(results[version])}", flush=True)
    if options.write:
        add_results(RESULT, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
