"""Put into README.md what its commands print now, its picture, and the error on unseen families.

    python scripts/refresh_readme.py

Run it when the shipped checkpoints or data sets have changed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

from shipped import DOCS, ROOT

from driple.errors import DripleError
from driple.files import atomic_write

COMMAND = re.compile(r"^\$ driple (.*)$", re.MULTILINE)
UNSEEN = re.compile(r"(<!-- unseen families -->)\n.*?(<!-- end -->)", re.DOTALL)
ACCURACY = ROOT / "scripts" / "studies" / "accuracy"
EXAMPLE = "datasets/examples/resnet50.pbtxt"


def printed(arguments: str) -> str:
    """Output of a command of Driple on stdout."""
    command = [sys.executable, "-m", "driple.cli.main", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def unseen_families() -> str:
    """Sentence on the errors of the shipped inspectors on families that were held out."""
    found = json.loads((ACCURACY / "unseen-families.json").read_text(encoding="utf-8"))

    def span(method: str, name: str) -> str:
        values = [errors[method][name] for errors in found.values()]
        return f"{min(values):.0f} to {max(values):.0f} %"

    smape, time = "smape_pct", "iteration_time_median_pct"
    return (
        "**On model families that the inspector has not seen** the median error of the step "
        f"time is {span('shipped', time)}, and the error of the twelve numbers "
        f"{span('shipped', smape)} (SMAPE), on {len(found)} settings that we measured, each family "
        "held out in turn. "
        "Gradient-boosted trees on summaries of the graphs have "
        f"{span('trees', time)} and {span('trees', smape)} "
        "([study](scripts/studies/accuracy/page.md))."
    )


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
    text = UNSEEN.sub(
        lambda found: f"{found[1]}\n{textwrap.fill(unseen_families(), 116)}\n{found[2]}", text
    )
    atomic_write(readme, text.encode(), error=DripleError)
    printed(f"predict {EXAMPLE} --plot {DOCS / 'pictures' / 'resnet50.png'}")


if __name__ == "__main__":
    main()
