"""Put into README.md what its commands print now, its picture, and the errors on published runs.

    python -m scripts.pages.readme [--check]

Run it when the shipped checkpoints or data sets have changed.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Sequence

import numpy as np

from driple.errors import DripleError
from driple.runs.validation.shipped import read_shipped
from scripts.pages.commands import printed, refreshed
from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.written import options_of, written

PAGE, PICTURE = ROOT / "README.md", DOCS / "pictures" / "resnet50.png"
GPU_JOBS = re.compile(r"(<!-- GPU jobs -->)\n.*?(<!-- end -->)", re.DOTALL)
PUBLISHED = ROOT / "datasets" / "runs" / "published"
OWN_JOBS = ROOT / "scripts" / "studies" / "own_jobs" / "results.jsonl"
EXAMPLE = "datasets/examples/resnet50.pbtxt"


def gpu_jobs() -> str:
    """Sentences on the simulator's errors on jobs and devices that its fit had not seen."""
    shipped = read_shipped(PUBLISHED, forward=False)
    if shipped is None or shipped.held_out is None:
        raise DripleError(f"{PUBLISHED} has no held-out predictions; make them first")
    held_out = shipped.held_out
    timm = [row for row in shipped.rows if row.source == "timm" and row.scheme == "single"]

    def errors(split: str) -> str:
        predictions = [(row, held_out.of(row.id, split)) for row in timm]
        off = [abs(one.seconds / row.step_s - 1) for row, one in predictions if one is not None]
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


def page_text() -> str:
    """The page with the present output of its commands and the present errors."""
    text = refreshed(PAGE.read_text(encoding="utf-8"))
    return GPU_JOBS.sub(lambda old: f"{old[1]}\n{textwrap.fill(gpu_jobs(), 116)}\n{old[2]}", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the page and draw its picture, or check the page."""
    given = options_of(__doc__).parse_args(argv)
    status = written(
        {PAGE: page_text()}, check=given.check, program="python -m scripts.pages.readme"
    )
    if not given.check:
        printed(f"predict {EXAMPLE} --plot {PICTURE}")
    return status


if __name__ == "__main__":
    sys.exit(main())
