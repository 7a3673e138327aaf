"""Put into README.md what its commands print now, its picture, and the errors on published runs.

    python -m scripts.pages.readme

Run it when the shipped checkpoints or data sets have changed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import numpy as np

from driple.errors import DripleError
from driple.files import atomic_write
from driple.runs.validation.shipped import read_shipped
from scripts.settings.shipped import DOCS, ROOT

COMMAND = re.compile(r"^\$ driple (.*)$", re.MULTILINE)
GPU_JOBS = re.compile(r"(<!-- GPU jobs -->)\n.*?(<!-- end -->)", re.DOTALL)
PUBLISHED = ROOT / "datasets" / "runs" / "published"
OWN_JOBS = ROOT / "scripts" / "studies" / "own_jobs" / "results.jsonl"
EXAMPLE = "datasets/examples/resnet50.pbtxt"


def printed(arguments: str) -> str:
    """Output of a command of Driple on stdout."""
    command = [sys.executable, "-m", "driple.cli.main", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def gpu_jobs() -> str:
    """Sentences on the simulator's errors on jobs and devices that its fit had not seen."""
    shipped = read_shipped(PUBLISHED, forward=False)
    if shipped is None or shipped.held_out is None:
        raise DripleError(f"{PUBLISHED} has no held-out predictions; make them first")
    held_out = shipped.held_out
    timm = [row for row in shipped.rows if row.source == "timm" and row.scheme == "single"]

    def errors(split: str) -> str:
        found = [(row, held_out.of(row.id, split)) for row in timm]
        off = [abs(one.seconds / row.step_s - 1) for row, one in found if one is not None]
        median, p90 = 100 * np.quantile(off, [0.5, 0.9])
        return f"{median:.0f} % off in the median, {p90:.0f} % at the 90th percentile"

    return (
        f"Training steps of {len(timm):,} published runs on an RTX 3090, of model families that no "
        f"fit had seen: {errors('family')}; without any run on that GPU {errors('device')}. "
        f"{own_jobs()}. [Errors by kind of job and device](docs/accuracy.md)."
    )


def own_jobs() -> str:
    """Jobs as people write them, on a slow host."""
    lines = [json.loads(line) for line in OWN_JOBS.read_text(encoding="utf-8").splitlines()]
    jobs = [one for one in lines if one["kind"] == "job"]
    off = [abs(one["predicted_s"] / one["step_s"] - 1) for one in jobs]
    untold = 100 * np.quantile(off, [0.5, 0.9])
    tuned = np.mean([one["all_pct"] for one in lines if one["kind"] == "draw"], axis=0)
    return (
        f"{len(jobs)} jobs as people write them, on an H200 with a slow host: {untold[0]:.0f} and "
        f"{untold[1]:.0f} %, and {tuned[0]:.0f} and {tuned[1]:.0f} % once tuned to ten of them"
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
    text = GPU_JOBS.sub(
        lambda found: f"{found[1]}\n{textwrap.fill(gpu_jobs(), 116)}\n{found[2]}", text
    )
    atomic_write(readme, text.encode(), error=DripleError)
    printed(f"predict {EXAMPLE} --plot {DOCS / 'pictures' / 'resnet50.png'}")


if __name__ == "__main__":
    main()
