"""Write docs/scaling.md from stored measurements of `driple predict --jobs`.

    python -m scripts.pages.scaling             the page
    python -m scripts.pages.scaling --measure   and scripts/pages/scaling.json anew: a quiet machine

times of tasks --scheduled on more cores--> rates;  scaling.in.md + scaling.json -> docs/scaling.md
"""

from __future__ import annotations

import datetime
import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from driple.api.predicting_jobs import predict_jobs
from driple.api.predicting_lines import MOST_LINE_BYTES, LineBlock, LineOptions, answer_lines
from driple.errors import DripleError
from driple.files import atomic_write
from scripts.studies.kit.page import fill
from scripts.studies.kit.written import options_of, written

__all__ = ["main", "page", "rate_on"]

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE, STORED = (
    Path(__file__).with_name("scaling.in.md"),
    Path(__file__).with_name("scaling.json"),
)
CHAOS = ROOT / "scripts" / "checks" / "chaos.json"
PAGE = ROOT / "docs" / "scaling.md"
_JOBS = ("mobilenet_v2", "resnet50", "bert-base")
_DEVICES = ("A100", "H100", "V100", "T4", "A10G", "L4", "4090")
_BLOCK = 32
_TURNS = 10  # of all jobs on all clusters, each with another seed of the jitter
_MANY, _CORES = 1_000_000, (16, 128)
_SERVERS = ("V100-P1w2", "2080Ti-P1w3", "K80-P1w2/ho-PCIe")


def _settings() -> list[str]:
    within = [f"{count}x{device}" for device in _DEVICES for count in (1, 2, 4, 8)]
    between = [f"{count}x8x{device}/NVLink+100G" for device in _DEVICES[:3] for count in (2, 4, 8)]
    return within + between


def _lines() -> list[bytes]:
    return [
        json.dumps({"job": job, "setting": setting, "seed": seed}).encode()
        for seed in range(_TURNS)
        for job in _JOBS
        for setting in _settings()
    ]


def _answered(lines: Sequence[bytes]) -> float:
    """Seconds of a processor for lines."""
    begin_s = time.process_time()
    answer_lines(LineOptions(), LineBlock(first=1, lines=tuple(lines)))
    return time.process_time() - begin_s


def measure() -> dict[str, Any]:
    """Times of tasks in this process, and of whole runs with one and two processes."""
    lines = _lines()
    command = [
        sys.executable,
        "-c",
        "import driple.api.predicting; import time; print(time.process_time())",
    ]
    start_s = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    begin = lines[: len(_JOBS) * len(_settings())]
    first_s, again_s = _answered(begin), _answered(begin)
    blocks = [lines[place : place + _BLOCK] for place in range(0, len(lines), _BLOCK)]
    block_s = [_answered(block) for block in blocks]
    servers = [json.dumps({"job": _JOBS[0], "setting": name}).encode() for name in _SERVERS]
    runs = {}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "jobs.jsonl"
        file.write_bytes(b"\n".join(lines) + b"\n")
        driver_s = 0.0
        for workers in (1, 2):
            before_s, began_s = time.process_time(), time.perf_counter()
            seen: list[tuple[float, int]] = []
            predict_jobs(
                file,
                Path(place) / f"{workers}.jsonl",
                workers=workers,
                progress=lambda done, _: seen.append((time.perf_counter(), done)),  # noqa: B023
            )
            half_s, half = next(each for each in seen if each[1] >= len(lines) / 2)
            end_s, end = seen[-1]
            runs[str(workers)] = {
                "whole_s": end_s - began_s,
                "read_per_s": (end - half) / (end_s - half_s),
            }
            driver_s = time.process_time() - before_s
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} before",
        "lines": len(lines),
        "jobs": len(_JOBS),
        "settings": len(_settings()),
        "start_s": start_s,
        "read_s": (first_s - again_s) / len(_JOBS),
        "block_s": [round(seconds, 5) for seconds in block_s],
        "driver_block_s": driver_s / len(blocks),
        "servers_per_s": len(_SERVERS) / _answered(servers),
        "runs": runs,
    }


def rate_on(cores: int, stored: dict[str, Any], num_lines: int) -> float:
    """Lines a second on a number of cores, as a free worker takes the next block.

    Args:
        cores: each a worker.
        stored: measured times.
        num_lines: to answer.
    """
    ready_s = stored["start_s"] + stored["jobs"] * stored["read_s"]
    free_s = [ready_s] * cores
    block_s, num_blocks = stored["block_s"], -(-num_lines // _BLOCK)
    for number in range(num_blocks):
        heapq.heappush(free_s, heapq.heappop(free_s) + block_s[number % len(block_s)])
    written_s = ready_s + num_blocks * stored["driver_block_s"]
    return float(num_lines / max(*free_s, written_s))


def page(stored: dict[str, Any]) -> str:
    """The page with these measurements."""
    measured = [
        "| processes | predictions a second of read jobs | seconds of the whole run |",
        "|---:|---:|---:|",
    ]
    measured += [
        f"| {workers} | {run['read_per_s']:.0f} | {run['whole_s']:.0f} |"
        for workers, run in stored["runs"].items()
    ]
    simulated = ["| cores (simulated) | predictions a second | over one core |", "|---:|---:|---:|"]
    alone = rate_on(1, stored, _MANY)
    for cores in _CORES:
        rate = rate_on(cores, stored, _MANY)
        simulated.append(f"| {cores} | {rate:,.0f} | {rate / alone:.1f} |")
    parts = {
        "line_kib": f"{MOST_LINE_BYTES // 1024}",
        "chaos": _chaos(),
        "lines": f"{stored['lines']:,}",
        "jobs": f"{stored['jobs']}",
        "settings": f"{stored['settings']}",
        "date": stored["date"],
        "machine": stored["machine"],
        "measured": measured,
        "block": f"{_BLOCK}",
        "one_ms": f"{1000 * mean(stored['block_s']) / _BLOCK:.1f}",
        "block_ms": f"{1000 * mean(stored['block_s']):.0f}",
        "start_s": f"{stored['start_s']:.1f}",
        "read_s": f"{stored['read_s']:.1f}",
        "driver_ms": f"{1000 * stored['driver_block_s']:.1f}",
        "simulated": simulated,
        "servers": f"{stored['servers_per_s']:.0f}",
    }
    return fill(TEMPLATE.read_text(encoding="utf-8"), parts)


def _chaos() -> str:
    record = json.loads(CHAOS.read_text(encoding="utf-8"))
    rounds = sum(record["rounds"].values())
    return (
        f"{rounds} rounds on {record['date']}, {record['nodes_killed']} nodes killed, every result "
        "was there once and equal to the bit."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    parser = options_of(__doc__)
    parser.add_argument("--measure", action="store_true", help="measure anew")
    options = parser.parse_args(argv)
    if options.measure:
        atomic_write(STORED, (json.dumps(measure()) + "\n").encode(), error=DripleError)
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return written(
        {PAGE: page(stored)}, check=options.check, program="python -m scripts.pages.scaling"
    )


if __name__ == "__main__":
    sys.exit(main())
