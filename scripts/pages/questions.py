"""Put into docs/questions.md what its commands print now.

    python -m scripts.pages.questions

Run it when prices, the calibration or the model of memory have changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from driple.errors import DripleError
from driple.files import atomic_write

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "questions.md"
COMMAND = re.compile(r"^\$ driple (.*)$", re.MULTILINE)
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def printed(arguments: str) -> str:
    """Output of a command of Driple on stdout."""
    command = [sys.executable, "-m", "driple.cli.main", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def refreshed(text: str) -> str:
    """The page with the present output of its commands."""

    def block(found: re.Match[str]) -> str:
        (arguments,) = COMMAND.findall(found[1])
        return f"```console\n$ driple {arguments}\n{printed(arguments)}\n```"

    return BLOCK.sub(block, text)


def main() -> None:
    """Rewrite the page."""
    text = refreshed(PAGE.read_text(encoding="utf-8"))
    atomic_write(PAGE, text.encode(), error=DripleError)


if __name__ == "__main__":
    main()
