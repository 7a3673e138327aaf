"""Put into pages what the commands that they show print now.

    python -m scripts.pages.commands [--check]

page --run each command that it shows--> the same page with today's output

A console block shows a command and all that it prints; a block after a command with
`--emit NAME > F` shows the file or a part of it.

Run it when prices, the calibration or the model of memory have changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence

from driple.errors import DripleError
from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.written import options_of, written

__all__ = ["BLOCK", "COMMAND", "main", "printed", "refreshed"]

PAGES = tuple(DOCS / name for name in ("questions.md", "cluster.md", "schedulers.md"))

COMMAND = re.compile(r"^\$ driple (.*)$", re.MULTILINE)
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_EMITTED = re.compile(
    r"(```bash\ndriple ([^\n>]* --emit [\w-]+) >[^\n]*\n(?:(?!```)[^\n]*\n)*```\n```\w+\n)(.*?)```",
    re.DOTALL,
)


def printed(arguments: str) -> str:
    """Output of a command of Driple on stdout.

    Raises:
        DripleError: it failed.
    """
    command = [sys.executable, "-m", "driple.cli.main", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DripleError(f"driple {arguments} failed: {done.stderr.strip()}")
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def refreshed(text: str, shown: Callable[[str], str] = printed) -> str:
    """A page with the present output of its commands, one in a block.

    Args:
        text: of the page.
        shown: the output of a command, given its arguments.
    """

    def block(old: re.Match[str]) -> str:
        (arguments,) = COMMAND.findall(old[1])
        return f"```console\n$ driple {arguments}\n{shown(arguments)}\n```"

    def emitted(old: re.Match[str]) -> str:
        return f"{old[1]}{part_of(shown(old[2]), old[3].rstrip())}\n```"

    return _EMITTED.sub(emitted, BLOCK.sub(block, text))


def part_of(output: str, old: str) -> str:
    """The part of an output that a page shows: as many lines as before, from the same one on.

    Args:
        output: as it is now.
        old: the part as it was; one that went to the end still does.
    """
    lines, before = output.splitlines(), old.splitlines()
    start = lines.index(before[0]) if before[0] in lines else 0
    end = len(lines) if before[-1] == lines[-1] else start + len(before)
    return "\n".join(lines[start:end])


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the pages, or check them."""
    given = options_of(__doc__).parse_args(argv)
    files = {page: refreshed(page.read_text(encoding="utf-8")) for page in PAGES}
    return written(files, check=given.check, program="python -m scripts.pages.commands")


if __name__ == "__main__":
    sys.exit(main())
