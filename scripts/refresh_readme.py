"""Run the commands that README.md shows and put in what they print now, with its picture.

    python scripts/refresh_readme.py

Run it when the shipped checkpoints or data sets have changed.
"""

from __future__ import annotations

import re
import subprocess
import sys

from shipped import DOCS, ROOT

from driple.errors import DripleError
from driple.files import write_whole

COMMAND = re.compile(r"^\$ driple (.*)$", re.MULTILINE)
EXAMPLE = "datasets/examples/resnet50.pbtxt"


def printed(arguments: str) -> str:
    """What a command of Driple writes to stdout."""
    command = [sys.executable, "-m", "driple.cli.main", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def block(arguments: str) -> str:
    """A command and its output, as Markdown."""
    return f"```console\n$ driple {arguments}\n{printed(arguments)}\n```"


def main() -> None:
    """Rewrite the blocks and the picture."""
    readme = ROOT / "README.md"
    text = re.sub(
        r"```console\n(.*?)```",
        lambda found: "\n\n".join(map(block, COMMAND.findall(found[1]))),
        readme.read_text(),
        flags=re.DOTALL,
    )
    write_whole(readme, text.encode(), error=DripleError)
    printed(f"predict {EXAMPLE} --plot {DOCS / 'pictures' / 'resnet50.png'}")


if __name__ == "__main__":
    main()
