"""The README's commands as typed, on a machine with one Python, and then a model of one's own.

    README.md -> its commands, in order -> one shell in a fresh clone, an empty home, no index

    python -m scripts.checks.readme_commands [--python 3.12] [--write]

Packages are downloaded before, so the times leave downloads out. Commands of the README's table of
questions run with the README's own model; those that NOT_RUN names are left out, with the reason.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from scripts.checks.clean_install import (
    BUILD_PACKAGES,
    ROOT,
    clean_environment,
    dated,
    downloaded,
    interpreters,
    readme_blocks,
    readme_packages,
)

__all__ = ["NOT_RUN", "OWN_MODEL", "commands_of", "main", "script_of"]

RESULT = ROOT / "scripts" / "checks" / "readme_commands.json"
_MARK = "@@"
_MODEL_OPTIONS = ("--batch-size 32", "--input 3x224x224")
NOT_RUN = {
    "record": "watches a training, which the model of the README is not",
    "train": "trains for minutes, and needs the extra train",
    "transfer": "trains for minutes, and needs the extra train",
    "evaluate": "trains for hours, and needs the extra train",
    "profile": "watches a training, which the model of the README is not",
    "serve": "runs until it is stopped",
    "measure": "measures the machine for a minute",
    "validate": "needs the extra train",
}
OWN_MODEL = '''"""A model that no page of Driple has: a small transformer over patches."""

import torch
from torch import nn


class Patches(nn.Module):
    def __init__(self, width=192, depth=4):
        super().__init__()
        self.cut = nn.Conv2d(3, width, 16, stride=16)
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, 10)

    def forward(self, images):
        tokens = self.cut(images).flatten(2).transpose(1, 2)
        return self.head(self.blocks(tokens).mean(dim=1))


def build_model():
    return Patches()


if __name__ == "__main__":
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = model(torch.randn(4, 3, 128, 128)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
'''
OWN_COMMAND = (
    "driple predict own_train.py:build_model --batch-size 64 --input 3x128x128 --setting 4xA100"
)


def commands_of(readme: str) -> list[str]:
    """Commands of a README in the order in which a newcomer types them.

    Raises:
        SystemExit: it installs nothing, or has no model with a command.
    """
    blocks = readme_blocks("bash", readme)
    if len(blocks) < 2 or "scripts/quickstart" not in blocks[0]:
        raise SystemExit("README.md has no block that installs and one that predicts a model")
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    shown = [
        line.removeprefix("$ ")
        for block in readme_blocks("console", readme)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    table = re.findall(r"^\|[^|]*\|(.*)\|$", readme, re.MULTILINE)
    asked = [command for row in table for command in re.findall(r"`(driple [^`]+)`", row)]
    model = re.search(r"^driple predict (\S+)", "\n".join(lines), re.MULTILINE)
    if model is None:
        raise SystemExit("README.md predicts no model")
    asked = [
        " ".join([command.replace(" JOB", f" {model[1]}", 1), *_missing(command)])
        for command in asked
        if command.split()[1] not in NOT_RUN
    ]
    return [*lines, *shown, *asked]


def _missing(command: str) -> list[str]:
    """Options without which the README's model is no job, and which a command lacks."""
    return [option for option in _MODEL_OPTIONS if option.split()[0] not in command]


def script_of(commands: Sequence[str]) -> str:
    """A shell script that runs commands one by one, and prints when each begins."""
    steps = [
        f"printf '\\n{_MARK} %s %s\\n' \"$EPOCHREALTIME\" {number}\n{command}"
        for number, command in enumerate(commands)
    ]
    end = f"printf '\\n{_MARK} %s end\\n' \"$EPOCHREALTIME\""
    return "\n".join(["set -eo pipefail", *steps, end, ""])


def times_of(output: str, commands: Sequence[str]) -> list[dict[str, object]]:
    """Seconds of each command, from what the script printed; the last one may be unfinished."""
    marks = re.findall(rf"^{_MARK} ([\d.]+) (\d+|end)$", output, re.MULTILINE)
    return [
        {"command": commands[int(name)], "seconds": round(float(after) - float(before), 1)}
        for (before, name), (after, _) in pairwise(marks)
    ]


def run_all(python: Path, work: Path) -> dict[str, object]:
    """Clone the checkout, install and ask; the dated result.

    Raises:
        SystemExit: a command failed, with the end of what it printed.
    """
    clone, packages = work / "driple", work / "packages"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    readme = (clone / "README.md").read_text(encoding="utf-8")
    wanted = [list(BUILD_PACKAGES), ["."], *readme_packages(readme)]
    fetched_s = downloaded(python, wanted, packages)
    (model,) = [
        block for block in readme_blocks("python", readme) if block.startswith("# train.py")
    ]
    (clone / "train.py").write_text(model, encoding="utf-8")
    (clone / "own_train.py").write_text(OWN_MODEL, encoding="utf-8")
    commands = [*commands_of(readme), OWN_COMMAND]
    started = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", script_of(commands)], cwd=clone, capture_output=True, text=True, check=False,
        env=clean_environment(python, work, packages),
    )  # fmt: skip
    times = times_of(done.stdout, commands)
    if done.returncode:
        failed = commands[len(times)] if len(times) < len(commands) else "the script"
        raise SystemExit(f"{failed} failed: {(done.stderr or done.stdout)[-2000:]}")
    answer = done.stdout.rsplit(f"{_MARK} ", 2)[1]
    if "step " not in answer:
        raise SystemExit(f"a model of one's own got no answer: {answer[-500:]}")
    return dated(
        {
            "python": python.name,
            "downloads_s": round(fetched_s),
            "without_downloads_s": round(time.monotonic() - started),
            "commands": times,
            "not_run": NOT_RUN,
        },
        clone,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the README; 1 if a Python is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default="3.11", help="version that the machine has")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args(arguments)
    python = interpreters([options.python]).get(options.python)
    if python is None:
        print(f"this machine has no Python {options.python}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as work:
        result = run_all(python, Path(work))
    text = json.dumps(result, indent=1) + "\n"
    print(text, end="")
    if options.write:
        RESULT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
