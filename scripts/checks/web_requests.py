"""Requests made from the web server's own description: each answer must be what it describes.

    /openapi.json -> schemathesis -> requests that fit it, and others -> driple serve -> findings

    python -m scripts.checks.web_requests --count 100000 --write

A finding is a status, a content type, a header or a body that the description lacks, a request
that does not fit and is answered, a method without a route that is not refused, a status 500, or a
line that the server wrote. Progress lies in build/web_requests.json: a run that was stopped goes
on after its last chunk, with another seed. `--write` puts the counts, with the date, into
scripts/checks/web_requests.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scripts.checks.clean_install import dated
from scripts.checks.web_server import ROOT, running_server

__all__ = ["LIMITS", "Counts", "check_requests", "main"]

BUILD = ROOT / "build" / "web_requests.json"
RESULT = Path(__file__).with_suffix(".json")
CONFIG = Path(__file__).with_suffix(".toml")
HOOKS = Path(__file__).with_name("web_requests_hooks.py")
# A request that takes long is answered with 202 at once, and its work ends soon: requests are what
# is checked.
LIMITS = {
    "wait_s": 0.01, "work_s": 0.3, "read_s": 1, "children": 1, "long": 1, "threads": 2, "waiting": 8
}  # fmt: skip
_CHUNK = 200  # requests for each route
_FIRST = "examples,coverage,stateful,fuzzing"


@dataclass(slots=True)
class Counts:
    """What came of the requests.

    Attributes:
        requests: how many were sent.
        chunks: runs of schemathesis, each with its own seed.
        findings: what is wrong, and where.
        seconds: of all runs.
    """

    requests: int = 0
    chunks: int = 0
    findings: list[str] = field(default_factory=list)
    seconds: float = 0.0


def check_requests(
    address: str, *, phases: str = _FIRST, examples: int = _CHUNK, seed: int = 0
) -> tuple[Counts, str]:
    """One run of schemathesis.

    Args:
        address: of a server.
        phases: which requests; see `schemathesis run --help`.
        examples: random requests for each route.
        seed: of these.

    Returns:
        Counts, and what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG),
            "run", f"{address}/openapi.json", "--phases", phases, "--max-examples", str(examples),
            "--seed", str(seed), "--continue-on-failure", "--no-shrink", "--no-color",
            "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "60",
            "--report", "json", "--report-json-path", str(report),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=os.environ | {"SCHEMATHESIS_HOOKS": str(HOOKS)},
        )
        if not report.exists():
            return Counts(findings=["no run of schemathesis"]), done.stdout + done.stderr
        facts: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    findings = [
        f"{failure['title']}: {', '.join(failure['operations'])}" for failure in facts["failures"]
    ]
    if done.returncode and not findings:
        findings = [f"schemathesis ended with status {done.returncode}"]
    counts = Counts(
        requests=facts["test_cases"]["generated"],
        chunks=1,
        findings=findings,
        seconds=round(facts["running_time"], 1),
    )
    return counts, done.stdout + done.stderr


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="requests in all")
    parser.add_argument("--again", action="store_true", help="from the first request on")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    given = parser.parse_args(argv)
    total = Counts()
    if BUILD.exists() and not given.again:
        total = Counts(**json.loads(BUILD.read_text(encoding="utf-8")))
    BUILD.parent.mkdir(exist_ok=True)
    while total.requests < given.count:
        with running_server(**LIMITS) as server:
            phases = "fuzzing" if total.chunks else _FIRST
            counts, printed = check_requests(server.address, phases=phases, seed=total.chunks)
        if counts.findings:
            print(printed)
        total.findings += (
            counts.findings
            + [line.rstrip() for line in server.lines if "Invalid HTTP" not in line][:10]
        )
        total.requests += counts.requests
        total.seconds = round(total.seconds + counts.seconds, 1)
        total.chunks += 1
        BUILD.write_text(json.dumps(asdict(total), indent=1), encoding="utf-8")
        print(f"{total.requests} requests, {len(total.findings)} findings", flush=True)
    if given.write:
        facts = dated(asdict(total))
        RESULT.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 1 if total.findings else 0


if __name__ == "__main__":
    sys.exit(main())
