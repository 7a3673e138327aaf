"""Put into README.md what its commands print now, its picture, and the errors on unseen jobs.

    python scripts/refresh_readme.py

Run it when the shipped checkpoints or data sets have changed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import numpy as np
from shipped import DOCS, ROOT

from driple.errors import DripleError
from driple.files import atomic_write
from driple.runs.validation.shipped import read_shipped

COMMAND = re.compile(r"^\$ driple (.*)$", re.MULTILINE)
UNSEEN = re.compile(r"(<!-- unseen families -->)\n.*?(<!-- end -->)", re.DOTALL)
GPU_JOBS = re.compile(r"(<!-- GPU jobs -->)\n.*?(<!-- end -->)", re.DOTALL)
PUBLISHED = ROOT / "datasets" / "published"
OWN_RUNS = ROOT / "scripts" / "studies" / "own_runs" / "results.jsonl"
OWN_JOBS = ROOT / "scripts" / "studies" / "own_jobs" / "results.jsonl"
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
        return f"{median:.0f} % in the median and {p90:.0f} % at the 90th percentile"

    lines = [json.loads(line) for line in OWN_RUNS.read_text(encoding="utf-8").splitlines()]
    ours = [one for one in lines if one["source"] == "ours"]

    def own(device: str, task: str, way: str = "untuned", runs: int = 0) -> str:
        mine = [one for one in ours if (one["device"], one["task"], one["way"], one["runs"]) ==
                (device, task, way, runs)]  # fmt: skip
        means = [np.mean([one[name] for one in mine]) for name in ("median_pct", "p90_pct")]
        return f"{means[0]:.0f} and {means[1]:.0f} %"

    def number(device: str) -> int:
        (whole,) = [one for one in ours if (one["device"], one["task"], one["way"]) ==
                    (device, "both", "untuned")]  # fmt: skip
        return int(whole["steps"])

    return (
        f"**How far off?** Training steps of {len(timm):,} published runs on an RTX 3090, of model "
        f"families that no fit had seen: {errors('family')}. Without any run on that GPU: "
        f"{errors('device')}. {number('H100')} steps that we measured on an H100, families left "
        f"out: {own('H100', 'busy')} where the GPU is the limit, {own('H100', 'both')} of all. "
        f"{number('H200')} steps on an H200, of which no run was known: {own('H200', 'busy')} "
        f"where the GPU is the limit, {own('H200', 'both')} of all. {own_jobs()} "
        "([how accurate](docs/accuracy.md), [these jobs](scripts/studies/own_jobs/page.md), "
        "[your own runs](docs/cluster.md#a-gpu-that-you-have-runs-of), [memory](docs/memory.md))."
    )


def own_jobs() -> str:
    """Jobs as people write them, on a slow host."""
    lines = [json.loads(line) for line in OWN_JOBS.read_text(encoding="utf-8").splitlines()]
    jobs = [one for one in lines if one["kind"] == "job"]
    off = [abs(one["predicted_s"] / one["step_s"] - 1) for one in jobs]
    untold = 100 * np.quantile(off, [0.5, 0.9])
    tuned = np.mean([one["all_pct"] for one in lines if one["kind"] == "draw"], axis=0)
    return (
        f"{len(jobs)} jobs as people write them, on a machine whose host is the slowest known: "
        f"{untold[0]:.0f} and {untold[1]:.0f} % with nothing known of it, {tuned[0]:.0f} and "
        f"{tuned[1]:.0f} % once tuned to ten of them"
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
    text = GPU_JOBS.sub(
        lambda found: f"{found[1]}\n{textwrap.fill(gpu_jobs(), 116)}\n{found[2]}", text
    )
    atomic_write(readme, text.encode(), error=DripleError)
    printed(f"predict {EXAMPLE} --plot {DOCS / 'pictures' / 'resnet50.png'}")


if __name__ == "__main__":
    main()
